"""The handlers: which requests are allowed, patched, denied; and AdmissionReview bytes in and out."""

import json
from base64 import b64encode
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.objects.field_error import CauseType, FieldError
from jobset_gate.settings import Barrier, Gangs, Settings
from tests.fakes import jobs
from tests.fakes.admission_reviews import UID, body, response
from tests.fakes.jobsets import Json, applied, barrier, changed, created, jobset
from tests.fakes.leader_worker_sets import leader_worker_set
from webhook.handlers import mutating_handler, validating_handler
from webhook.review import AdmissionResponse, Allowed, Denied, MalformedReview, Patched, decode, denied, encode

EVERY_SOURCE = Settings(gangs=Gangs(sources=("jobset", "job", "lws", "startgroup")))


def mutate(new: Any, old: Any = None, **request: Any) -> AdmissionResponse:
    return mutating_handler(EVERY_SOURCE, lambda: "x7k2p", lambda: "a-token")(decode(body(new, old, **request)))


def judge(new: Any, old: Any = None, **request: Any) -> AdmissionResponse:
    return validating_handler(EVERY_SOURCE)(decode(body(new, old, **request)))


JOBS = {"resource": {"group": "batch", "version": "v1", "resource": "jobs"}}
LWS = {"resource": {"group": "leaderworkerset.x-k8s.io", "version": "v1", "resource": "leaderworkersets"}}
GROUPS = leader_worker_set(notes={names.CONFIG: "{}"})


def test_both_refuse_for_the_same_reasons() -> None:
    bad = jobset(config={"timeoutAfterSeconds": 0, "targetReplicatedJobs": ["nobody"]})
    first, second = mutate(bad), judge(bad)
    assert isinstance(first, Denied)
    assert first == second
    stored = created(jobset())
    changes = changed(stored, {"timeoutAfterSeconds": 1}, "spec", "groupSchedulingConfig")
    third = mutate(changes, stored)
    assert isinstance(third, Denied)
    assert (third, "is immutable" in third.message) == (judge(changes, stored), True)
    assert [it.path for it in first.field_errors] == [
        "spec.groupSchedulingConfig.timeoutAfterSeconds",
        "spec.groupSchedulingConfig.targetReplicatedJobs[0]",
    ]


def test_each_new_gang_gets_a_token_of_its_own_and_keeps_it() -> None:
    settings = Settings(barrier=Barrier(stream_url="http://gate:8082"))
    tokens = iter(["first", "second"])
    handler = mutating_handler(settings, lambda: "x7k2p", lambda: next(tokens))
    stored = []
    for name in ("one", "two"):
        given = jobset(name=name)
        answer = handler(decode(body(given, None)))
        assert isinstance(answer, Patched)
        stored.append(applied(given, answer.operations))
    ends = [it["value"] for made in stored for it in barrier(made)["env"] if it["name"] == names.ENV_STREAM]
    assert ends == ["http://gate:8082/v1/gangs/default/one/first", "http://gate:8082/v1/gangs/default/two/second"]
    assert handler(decode(body(stored[0], stored[0]))) == Allowed()
    assert judge(stored[0]) == Allowed()


POD = {"group": "", "version": "v1", "resource": "pods"}
OLDER = {"group": names.JOBSET_GROUP, "version": "v1alpha1", "resource": "jobsets"}


@pytest.mark.parametrize("handler", [mutate, judge])
@pytest.mark.parametrize(
    ("new", "old", "request_", "hint"),
    [
        ({}, None, {"resource": POD}, "not v1 pods"),
        ({}, None, {"resource": OLDER}, "not jobset.x-k8s.io/v1alpha1 jobsets"),
        ({}, None, {"resource": {}}, "judges"),
        (jobs.job(), None, {}, "holds no JobSet"),
        (jobset(), jobs.job(), {}, "holds no JobSet"),
        ({}, None, {"operation": "CONNECT"}, "not 'CONNECT'"),
        (None, None, {}, "holds no object"),
        ({}, None, {"operation": "UPDATE"}, "oldObject"),
        ({}, {}, {"operation": "CREATE"}, "oldObject"),
        ({}, 3, {}, "oldObject"),
    ],
)
def test_what_no_registration_of_ours_sends_is_refused_with_a_reason(
    handler: Any, new: Any, old: Any, request_: Json, hint: str
) -> None:
    answer = handler(new, old, **request_)
    assert isinstance(answer, Denied)
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert hint in answer.message


@pytest.mark.parametrize("handler", [mutate, judge])
@pytest.mark.parametrize("request_", [{"operation": "DELETE", "object": None}, {"subResource": "status"}])
def test_deletion_and_status_are_never_in_the_way(handler: Any, request_: Json) -> None:
    assert handler(jobset(config={"timeoutAfterSeconds": 0}), **request_) == Allowed()


def test_a_refused_job_is_named_by_its_kind() -> None:
    for handler in (mutate, judge):
        answer = handler(jobs.job(config="x"), **JOBS)
        assert isinstance(answer, Denied)
        assert (answer.code, answer.object_kind) == (422, ("batch", "Job"))
    answer = mutate(jobset(), **JOBS)
    assert isinstance(answer, Denied)
    assert (answer.code, answer.message) == (400, "jobset-gate: the request holds no Job")


def test_while_jobs_are_no_source_nothing_is_done_to_them() -> None:
    """A request may still arrive while a registration is being replaced."""
    alone = Settings(gangs=Gangs(sources=("jobset",)))
    for given in (jobs.job(), jobs.job(config="x")):
        for handler in (mutating_handler(alone, lambda: "x7k2p", lambda: "a-token"), validating_handler(alone)):
            assert handler(decode(body(given, None, **JOBS))) == Allowed()


# --- Bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[" * 1_000_000,
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":""}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":7}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"x","operation":[]}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"\xff"}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"x"}}',
        b'{"kind":"Status","apiVersion":"admission.k8s.io/v1","request":{"uid":"x"}}',
    ],
)
def test_a_body_that_is_no_request_is_unreadable(raw: bytes) -> None:
    with pytest.raises(MalformedReview):
        decode(raw)


def test_an_answer_says_what_it_is_and_nothing_more() -> None:
    operations = [{"op": "add", "path": "/a", "value": 1}]
    patch = b64encode(json.dumps(operations, separators=(",", ":")).encode()).decode()
    assert response(encode(UID, Allowed())) == {"uid": UID, "allowed": True}
    assert response(encode(UID, Allowed(("careful",)))) == {"uid": UID, "allowed": True, "warnings": ["careful"]}
    patched = {"uid": UID, "allowed": True, "patchType": "JSONPatch", "patch": patch}
    assert response(encode(UID, Patched(operations))) == patched
    status = response(encode(UID, Denied("no", code=500, reason="InternalError")))["status"]
    assert (status["code"], status["reason"], status["message"]) == (500, "InternalError", "no")
    assert "details" not in status


def test_a_refusal_names_every_violation_in_message_and_causes() -> None:
    found = [FieldError("spec.a", 0, "must be 1"), FieldError("spec.b", "x", "unknown", CauseType.NOT_FOUND)]
    status = response(encode(UID, denied(found)))["status"]
    assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
    assert status["message"] == 'spec.a: 0: must be 1; spec.b: "x": unknown'
    assert status["details"]["causes"] == [
        {"reason": "FieldValueInvalid", "field": "spec.a", "message": "0: must be 1"},
        {"reason": "FieldValueNotFound", "field": "spec.b", "message": '"x": unknown'},
    ]


def test_of_very_many_errors_a_hundred_are_listed_and_the_rest_is_counted() -> None:
    found = [FieldError(f"spec[{index}]", index, "bad") for index in range(10_000)]
    status = response(encode(UID, denied(found)))["status"]
    assert len(status["details"]["causes"]) == 100
    assert status["message"].endswith("; and 9900 more")
