"""Errors of requests to an API server."""

from enum import IntEnum
from typing import Any

import msgspec

from jobset_gate.errors import JobsetGateError


class KubeError(JobsetGateError):
    """Base of all errors of this package."""


class RequestFailed(KubeError):
    """A request to the API server that did not succeed."""

    retry_after: float | None = None
    """Seconds, where the API server says when to try again."""


class ConnectionStage(IntEnum):
    """The steps on the way to an answer of an API server."""

    DNS = 1
    TCP = 2
    TLS = 3
    HTTP = 4
    LOGIN = 5


class Unreachable(RequestFailed):
    """No HTTP response: refused, reset or timed out; whether it did the work is unknown."""

    stage: ConnectionStage | None = None
    """The step that failed, where that is known."""


class WatchIdleTimeout(Unreachable):
    """No byte for longer than a working server would be silent."""


class InvalidResponse(RequestFailed):
    """A 2xx response whose body does not have the expected form."""


class ResponseTooLarge(KubeError):
    """The response has more bytes than the caller wants in memory at once: list fewer objects."""


class NotLeader(KubeError):
    """A guarded write was not sent, since this process does not surely hold the lease."""


class LeadershipLost(KubeError):
    """Another replica may lead now: stop."""


class InvalidKubeConfig(KubeError):
    """There is no usable kubeconfig or service account."""


class ApiError(RequestFailed):
    """An HTTP status of 300 or above. `retry_after` is in seconds; `details` is the Status' details object."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status, self.reason, self.message, self.retry_after = status, reason, message, retry_after
        self.details: dict[str, Any] = details or {}


class BadRequest(ApiError):
    """400."""


class Unauthorized(ApiError):
    """401."""

    hint = "the API server takes these credentials for nobody's"


class Forbidden(ApiError):
    """403, also quota and webhook denials."""


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: another resourceVersion, UID or field owner."""


class AlreadyExists(Conflict):
    """409, the name is taken."""


class Expired(ApiError):
    """410: a resourceVersion or continue token too old."""


class Invalid(ApiError):
    """422."""


class Throttled(ApiError):
    """429."""


class ServerError(ApiError):
    """5xx."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: Throttled,
}
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are no JSON, or not of the expected form."""
_LONGEST_TEXT = 1024  # characters of a body that is no Status; a proxy's error page can be huge
_LONGEST_MESSAGE = 4096  # characters of a Status' message: it repeats the refused value, which may be of any length


class _Status(msgspec.Struct):
    message: str | None = None
    reason: str | None = None
    details: dict[str, Any] | None = None


def error_from_response(
    status: int, body: bytes, retry_after: str | None = None, *, default_message: str = ""
) -> ApiError:
    """The exception for a response with any body: a Status, other JSON, a proxy's HTML, nothing.

    `retry_after` is the header (whole seconds; an HTTP date counts as absent), `default_message` is for an empty body.
    """
    try:
        found = msgspec.json.decode(body, type=_Status)
    except DECODE_ERRORS:
        found = _Status(message=body[:_LONGEST_TEXT].decode("utf-8", "replace").strip())
    details = found.details or {}
    wait = _seconds(retry_after) or _seconds(details.get("retryAfterSeconds"))
    message, reason = (found.message or default_message)[:_LONGEST_MESSAGE], found.reason or ""
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    if kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(status, reason, message, wait, details)


def _seconds(value: object) -> float | None:
    """A positive number of seconds in a header or a field, else None."""
    text = str(value).strip()
    return float(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def is_namespace_terminating(error: Exception) -> bool:
    """Whether a create was refused because the namespace is terminating (A10)."""
    return isinstance(error, Forbidden) and _has_cause(error, "reason", "NamespaceTerminating")


def is_uid_mismatch(error: Exception) -> bool:
    """Whether a patch was refused because the object of that name has another UID."""
    return isinstance(error, Invalid) and _has_cause(error, "field", "metadata.uid")


def is_stale_patch(error: Conflict | Invalid | NotFound) -> bool:
    """Whether a JSON patch failed its `test`, or the object is another one or gone; false for a refused value."""
    # A failed `test` is a 422 without causes; a refused value has causes, another object's UID is one of them.
    if not isinstance(error, Invalid) or not error.details.get("causes"):
        return True
    return _has_cause(error, "field", "metadata.uid")


def _has_cause(error: ApiError, key: str, value: str) -> bool:
    return any(cause.get(key) == value for cause in error.details.get("causes") or ())
