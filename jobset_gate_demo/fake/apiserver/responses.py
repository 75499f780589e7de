"""JSON encoding, and every answer other than success as a Status body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from jobset_gate_demo.fake.apiserver.kinds import ServedKind

Obj = dict[str, Any]

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


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
        self, code: int, message: str, *, reason: str = "", details: Obj | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.retry_after = code, message, retry_after
        self._reason, self._details = reason or _REASONS.get(code, ""), details or {}

    def status(self) -> Obj:
        about: Obj = {"message": self.message, "reason": self._reason, "details": self._details, "code": self.code}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", **about}


def not_found(kind: ServedKind, name: str) -> StatusError:
    return StatusError(404, f'{kind.qualified} "{name}" not found')


def already_exists(kind: ServedKind, name: str) -> StatusError:
    return StatusError(409, f'{kind.qualified} "{name}" already exists', reason="AlreadyExists")


def conflict(kind: ServedKind, name: str, why: str = "") -> StatusError:
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    return StatusError(409, f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}')


def invalid(kind: ServedKind, name: str, field: str, why: str) -> StatusError:
    """422 for a wrong field."""
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return StatusError(422, f'{kind.kind} "{name}" is invalid: {field}: {why}', details={"causes": causes})


def no_such_path() -> StatusError:
    return StatusError(404, "the server could not find the requested resource")
