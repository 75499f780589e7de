"""AdmissionReview: bytes to a request, an answer to bytes (admission.k8s.io/v1)."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.unstructured import Json

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
MOST_CAUSES: Final = 100
LONGEST_MESSAGE: Final = 32_000
"""Characters of a message, which clients show."""


class MalformedReview(ValueError):
    """A body that is no AdmissionReview; the answer is HTTP 400, since there is no UID to answer to."""


class GroupVersionResource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class ReviewRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of an AdmissionRequest that the handlers read."""

    uid: str
    operation: str = ""
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    object: Any = None
    old_object: Any = None


class AdmissionReview(msgspec.Struct, frozen=True, rename="camel"):
    """The envelope of a request."""

    api_version: str = ""
    kind: str = ""
    request: ReviewRequest | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """Admitted unchanged."""

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Patched:
    """Admitted with a JSON patch (RFC 6902)."""

    operations: list[Json]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Denied:
    """Denied. `field_errors` become the causes of the Status."""

    message: str
    code: int = 422
    reason: str = "Invalid"
    field_errors: tuple[FieldError, ...] = ()
    name: str = ""
    """Of the object, if it has one."""
    object_kind: tuple[str, str] = ("", "")
    """Its group and kind."""


AdmissionResponse = Allowed | Patched | Denied

_decoder: Final = msgspec.json.Decoder(AdmissionReview)
_encode: Final = msgspec.json.Encoder().encode


def decode(body: bytes | bytearray) -> ReviewRequest:
    """The request in a body; raises MalformedReview for whatever is no AdmissionReview v1 request."""
    try:
        review = _decoder.decode(body)
    except (ValueError, RecursionError) as problem:  # msgspec's own errors are ValueErrors.
        raise MalformedReview(f"the body is no JSON of an {KIND}: {problem}") from problem
    if review.kind != KIND or review.api_version != API_VERSION:
        raise MalformedReview(f"expected {API_VERSION} {KIND}, got {review.api_version!r} {review.kind!r}")
    if review.request is None or not review.request.uid:
        raise MalformedReview(f"the {KIND} holds no request with a uid")
    return review.request


def encode(uid: str, answer: AdmissionResponse) -> bytes:
    """The AdmissionReview that answers the request of that UID."""
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": uid, **_response(answer)}})


def errored(message: str) -> Denied:
    """A refusal of a request that no registration of ours sends."""
    return Denied(f"{names.PROGRAM}: {message}", code=400, reason="BadRequest")


def denied(errors: Sequence[FieldError], name: str = "", object_kind: tuple[str, str] = ("", "")) -> Denied:
    """A refusal that names every field error in its message (up to 100, then says how many more)."""
    more = len(errors) - MOST_CAUSES
    message = "; ".join(map(str, errors[:MOST_CAUSES])) + (f"; and {more} more" if more > 0 else "")
    return Denied(message[:LONGEST_MESSAGE], field_errors=tuple(errors), name=name, object_kind=object_kind)


def _response(answer: AdmissionResponse) -> Json:
    match answer:
        case Allowed(warnings=()):
            return {"allowed": True}
        case Allowed(warnings=warnings):
            return {"allowed": True, "warnings": warnings}
        case Patched(operations=operations, warnings=warnings):
            said = {"warnings": warnings} if warnings else {}
            patch = b64encode(_encode(operations)).decode()
            return {"allowed": True, "patchType": "JSONPatch", "patch": patch, **said}
        case Denied():
            return {"allowed": False, "status": _status(answer)}


def _status(answer: Denied) -> Json:
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": answer.code,
        "reason": answer.reason,
        "message": answer.message,
    }
    if answer.field_errors:
        causes = [
            {"reason": it.cause_type.value, "field": it.path, "message": str(it).removeprefix(f"{it.path}: ")}
            for it in answer.field_errors[:MOST_CAUSES]
        ]
        group, kind = answer.object_kind
        status["details"] = {"group": group, "kind": kind, "name": answer.name, "causes": causes}
    return status
