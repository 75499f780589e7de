"""The handler for pods."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups, Settings
from tests.fakes.admission_reviews import body, patched, response
from tests.fakes.grouped_pods import Json, gates, meta_of, pod
from tests.fakes.jobsets import jobset
from webhook.handlers import pod_handler
from webhook.review import decode, encode

CORE = {"group": "", "version": "v1", "resource": "pods"}


def asked(new: Any, **request: Any) -> bytes:
    """The review of a pod's creation."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    usual = {"resource": CORE, "kind": kind, "requestKind": kind, "namespace": "team", "name": ""}
    return body(new, **(usual | request))


def answered(data: bytes, settings: Settings | None = None) -> bytes:
    """The review of the answer."""
    request = decode(data)
    return encode(request.uid, pod_handler(settings or Settings())(request))


def test_a_pod_of_a_group_comes_out_held() -> None:
    made = patched(pod(Format.KEP_24), answered(asked(pod(Format.KEP_24))))
    assert gates(made) == [names.POD_GROUP_GATE]
    assert made["metadata"]["labels"][names.POD_GROUP_LABEL]
    assert set(response(answered(asked(made)))) == {"uid", "allowed"}, "nothing to do a second time"


def test_the_namespace_is_the_requests() -> None:
    """A template's pods have none in their metadata until they are stored."""
    first, second = [
        patched(pod(Format.KEP_24), answered(asked(pod(Format.KEP_24), namespace=it))) for it in ("a", "b")
    ]
    assert first["metadata"]["labels"] != second["metadata"]["labels"]


def test_two_names_are_refused_as_a_fault_of_the_pod() -> None:
    both: Json = pod(Format.KEP_24, "a", meta=meta_of(Format.SCHEDULER_PLUGINS, "b"))
    del both["metadata"]["name"]
    both["metadata"]["generateName"] = "job-"
    message = response(answered(asked(both)))
    status = message["status"]
    assert (message["allowed"], status["code"], status["reason"]) == (False, 422, "Invalid")
    assert (status["details"]["group"], status["details"]["kind"], status["details"]["name"]) == ("", "Pod", "job-")
    (cause,) = status["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", "metadata")


def test_what_is_sent_although_groups_are_off_goes_through() -> None:
    """A configuration that was left behind refuses nobody."""
    off = Settings(groups=Groups(enabled=False))
    assert response(answered(asked(pod(Format.KEP_24)), off))["allowed"] is True


@pytest.mark.parametrize("request_", [{"operation": "UPDATE"}, {"operation": "DELETE"}, {"subResource": "binding"}])
def test_what_is_no_creation_goes_through(request_: Json) -> None:
    message = response(answered(asked(pod(Format.KEP_24), **request_)))
    assert message["allowed"] is True
    assert "patch" not in message


def test_what_is_no_pod_is_a_bad_request() -> None:
    """Only a registration that is wrong sends it, and that should show."""
    other = {"group": "", "version": "v1", "resource": "services"}
    for raw in (asked(pod(), resource=other), asked(None), body(jobset())):
        message = response(answered(raw))
        assert (message["allowed"], message["status"]["code"]) == (False, 400)
