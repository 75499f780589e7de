"""The handler for pods of start groups (K3)."""

import pytest

from jobset_gate import names
from jobset_gate.settings import Barrier, Gangs, Settings
from tests.fakes import start_groups
from tests.fakes.admission_reviews import body, patched, response
from tests.fakes.jobsets import Json, jobset, without
from tests.fakes.wire_objects import owner
from webhook.handlers import barrier_pod_handler
from webhook.review import decode, encode

CORE = {"group": "", "version": "v1", "resource": "pods"}
ENABLED = Settings(
    gangs=Gangs(sources=("jobset", "startgroup")), barrier=Barrier(stream_url="http://gate.system.svc:8082")
)


def pod(**notes: str) -> Json:
    return start_groups.pod("set-0", owner("StatefulSet", "set", "u"), notes=notes)


def asked(new: Json, **request: object) -> bytes:
    """The review of a pod's creation."""
    return body(new, **({"resource": CORE, "namespace": "team", "name": ""} | request))


def answered(data: bytes, settings: Settings = ENABLED) -> bytes:
    """The review of the answer."""
    request = decode(data)
    return encode(request.uid, barrier_pod_handler(settings, lambda: "secret")(request))


def test_a_pod_of_a_start_group_comes_out_with_its_barrier_and_again_as_it_is() -> None:
    made = patched(pod(), answered(asked(pod())))
    assert [it["name"] for it in made["spec"]["initContainers"]] == [names.BARRIER_CONTAINER]
    assert made["metadata"]["annotations"][names.TOKEN] == "secret"
    env = {it["name"]: it.get("value") for it in made["spec"]["initContainers"][0]["env"]}
    assert env[names.ENV_STREAM] == "http://gate.system.svc:8082/v1/pods/team/$(JOBSET_GATE_TOKEN)"
    assert set(response(answered(asked(made)))) == {"uid", "allowed"}, "nothing to do a second time"


def test_a_refusal_is_of_the_pod_by_its_generated_name() -> None:
    given = without(pod(), "metadata", "annotations")
    given["metadata"] = {key: it for key, it in given["metadata"].items() if key != "name"} | {"generateName": "set-"}
    message = response(answered(asked(given)))
    status = message["status"]
    assert (message["allowed"], status["code"], status["reason"]) == (False, 422, "Invalid")
    assert (status["details"]["group"], status["details"]["kind"], status["details"]["name"]) == ("", "Pod", "set-")
    (cause,) = status["details"]["causes"]
    assert (cause["reason"], cause["field"]) == (
        "FieldValueRequired",
        f"metadata.annotations[{names.START_SIZE}]",
    )


def test_warnings_go_with_the_patch() -> None:
    message = response(answered(asked(pod(**{"jobset-gate.dev/bypas": "true"}))))
    assert message["patchType"] == "JSONPatch"
    (warning,) = message["warnings"]
    assert warning.endswith("did you mean jobset-gate.dev/bypass?")


@pytest.mark.parametrize(
    "data",
    [
        asked(without(pod(), "metadata", "labels")),
        asked(without(pod(), "metadata", "annotations"), operation="UPDATE"),
        asked(pod(), subResource="binding"),
    ],
)
def test_what_is_no_new_pod_of_a_start_group_goes_through(data: bytes) -> None:
    assert set(response(answered(data))) == {"uid", "allowed"}


def test_what_is_sent_although_the_source_is_off_goes_through() -> None:
    """A configuration that was left behind refuses nobody."""
    bad = without(pod(), "metadata", "annotations")
    assert set(response(answered(asked(bad), Settings()))) == {"uid", "allowed"}


def test_what_is_no_pod_is_a_bad_request() -> None:
    other = {"group": "", "version": "v1", "resource": "services"}
    for raw in (asked(pod(), resource=other), body(None, resource=CORE), body(jobset())):
        message = response(answered(raw))
        assert (message["allowed"], message["status"]["code"]) == (False, 400)


def test_a_patch_beyond_the_limit_is_refused_with_its_place() -> None:
    given = pod(**{names.PREFETCH_IMAGES: "true"})
    given["spec"]["containers"] = [{"name": f"c{number}", "image": f"{number}"} for number in range(500)]
    limits = {f"example.com/{number}": "1" for number in range(400)}
    large = Settings(gangs=ENABLED.gangs, barrier=Barrier.model_validate({"resources": {"limits": limits}}))
    message = response(answered(asked(given), large))
    assert message["allowed"] is False
    assert message["status"]["message"].startswith("spec.initContainers: 1: too much: ")
