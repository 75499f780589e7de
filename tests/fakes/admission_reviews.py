"""Builders of AdmissionReviews, and of what comes back."""

import json
from base64 import b64decode
from typing import Any

import msgspec

from jobset_gate import names
from tests.fakes.jobsets import Json, applied

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(new: Any, old: Any = None, **request: Any) -> Json:
    """An AdmissionReview as an API server sends it; `request` overrides members of it."""
    asked = {
        "uid": UID,
        "kind": {"group": names.JOBSET_GROUP, "version": names.JOBSET_VERSION, "kind": "JobSet"},
        "resource": {"group": names.JOBSET_GROUP, "version": names.JOBSET_VERSION, "resource": "jobsets"},
        "requestKind": {"group": names.JOBSET_GROUP, "version": names.JOBSET_VERSION, "kind": "JobSet"},
        "name": "gang",
        "namespace": "default",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": asked | request}


def body(new: Any, old: Any = None, **request: Any) -> bytes:
    return msgspec.json.encode(review(new, old, **request))


def response(answer: bytes) -> Json:
    """The response in an answer, after a look at its envelope."""
    review = json.loads(answer)
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert review["response"]["uid"] == UID
    found: Json = review["response"]
    return found


def patched(new: Json, answer: bytes) -> Json:
    """What the API server would make of the object."""
    review = response(answer)
    assert review["allowed"] is True
    if "patch" not in review:
        return new
    assert review["patchType"] == "JSONPatch"
    found: Json = applied(new, json.loads(b64decode(review["patch"])))
    return found
