"""AdmissionReview bytes in and out."""

import json
from base64 import b64encode

import pytest

from jobset_gate.objects.field_error import CauseType, FieldError
from tests.fakes.admission_reviews import UID, body, response
from webhook.review import Allowed, Denied, MalformedReview, Patched, decode, denied, encode


def test_a_request_is_read_whole() -> None:
    request = decode(body({"a": 1}, {"a": 0}, dryRun=True, subResource="status", later={"a": []}))
    assert (request.uid, request.operation, request.namespace, request.name) == (UID, "UPDATE", "default", "gang")
    assert (request.object, request.old_object) == ({"a": 1}, {"a": 0})
    assert request.sub_resource == "status"
    assert request.resource.resource == "jobsets"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"null",
        b"\x00\x01\x02\xff\xfe",
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}',
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
