"""JSON encoding and times of the API, and every answer other than success as a Status body."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from jobset_gate.fake.apiserver.kinds import ServedKind

Obj = dict[str, Any]

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_EMPTY_DETAILS = (405, 415, 422)
"""Codes whose Status has details even when they are empty."""


def copy(value: Any) -> Any:
    """A deep copy of JSON, several times faster than copy.deepcopy."""
    kind = type(value)
    if kind is dict:
        return {key: copy(item) for key, item in value.items()}
    if kind is list:
        return [copy(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A whole JSON body."""

    code: int
    body: bytes
    retry_after: int | None = None


class StatusError(Exception):
    """A refusal; the HTTP handler turns it into a Status body with this code. `retry_after` is in seconds."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: Obj | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = _REASONS.get(code, "") if reason is None else reason
        self.details = dict(details or {})
        self.retry_after = retry_after
        if retry_after is not None:
            self.details.setdefault("retryAfterSeconds", retry_after)

    def status(self) -> Obj:
        body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        if self.reason:
            body["reason"] = self.reason
        if self.details or self.code in _EMPTY_DETAILS:
            body["details"] = self.details
        body["code"] = self.code
        return body


def _about(kind: ServedKind, name: str) -> Obj:
    details: Obj = {"name": name, "kind": kind.plural}
    if kind.group:
        details["group"] = kind.group
    return details


def not_found(kind: ServedKind, name: str) -> StatusError:
    return StatusError(404, f'{kind.qualified} "{name}" not found', details=_about(kind, name))


def already_exists(kind: ServedKind, name: str) -> StatusError:
    message = f'{kind.qualified} "{name}" already exists'
    return StatusError(409, message, reason="AlreadyExists", details=_about(kind, name))


def conflict(kind: ServedKind, name: str, why: str = "") -> StatusError:
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return StatusError(409, message, details=_about(kind, name))


def cause(field: str, message: str, reason: str = "FieldValueInvalid") -> Obj:
    """One wrong field, for `invalid`. The message starts with its sort: "Invalid value: ...", "Required value"."""
    return {"reason": reason, "message": message, "field": field}


def invalid(kind: ServedKind, name: str, causes: Iterable[Obj]) -> StatusError:
    """422 with all causes in one answer."""
    listed = list(causes)
    texts = [f"{item['field']}: {item['message']}" for item in listed]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {**({"name": name} if name else {}), "kind": kind.kind, "causes": listed}
    if kind.group:
        details["group"] = kind.group
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return StatusError(422, f'{qualified} "{name}" is invalid: {text}', details=details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, message)


def not_allowed() -> StatusError:
    return StatusError(405, "the server does not allow this method on the requested resource")


def no_such_path() -> StatusError:
    return StatusError(404, "the server could not find the requested resource")
