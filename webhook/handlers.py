"""What the door answers: a request in, Allowed, Patched or Denied out. No HTTP, no clock; chance comes in."""

from collections.abc import Callable
from functools import wraps
from typing import Final

from jobset_gate import names
from jobset_gate.injection import inject, validate, warnings
from jobset_gate.injection.verify import not_injected
from jobset_gate.objects.json_patch import PatchTooLarge
from jobset_gate.objects.unstructured import nested
from jobset_gate.settings import Settings
from webhook.review import AdmissionResponse, Allowed, Patched, ReviewRequest, denied, errored

Handler = Callable[[ReviewRequest], AdmissionResponse]
_JUDGED: Final = ("CREATE", "UPDATE")


def mutating_handler(settings: Settings, suffix: Callable[[], str], token: Callable[[], str]) -> Handler:
    """The handler behind /mutate.

    `suffix` gives five random characters for a JobSet without a name, `token` what nobody can guess: a new gang's key
    to its verdict on the gate stream.
    """

    @_bounded
    def mutate(request: ReviewRequest) -> AdmissionResponse:
        early = _early_response(request)
        if early is not None:
            return early
        new, old = request.object, request.old_object
        violations = validate.field_errors(new, old, settings=settings)
        if violations:
            return denied(violations, _display_name(request))
        prefix = inject.needs_name(new) if old is None else None
        name = inject.generated_name(prefix, suffix()) if prefix is not None else None
        key = token() if old is None else ""
        operations = inject.patch(new, old, settings=settings, generated_name=name, token=key)
        return Patched(operations) if operations else Allowed()

    return mutate


def validating_handler(settings: Settings) -> Handler:
    """The handler behind /validate: it sees the object after all mutating webhooks, so it also looks at their work."""

    @_bounded
    def judge(request: ReviewRequest) -> AdmissionResponse:
        early = _early_response(request)
        if early is not None:
            return early
        new, old = request.object, request.old_object
        violations = validate.field_errors(new, old, settings=settings) or not_injected(new, old)
        if violations:
            return denied(violations, _display_name(request))
        return Allowed(tuple(warnings.warnings(new, old, settings=settings)))

    return judge


def _bounded(handler: Handler) -> Handler:
    @wraps(handler)
    def refusing(request: ReviewRequest) -> AdmissionResponse:
        try:
            return handler(request)
        except PatchTooLarge:
            return denied([validate.patch_too_large(request.object)], _display_name(request))

    return refusing


def _display_name(request: ReviewRequest) -> str:
    """What to call the JobSet in a message; one without a name goes by the beginning of the one it will get."""
    name = (
        request.name or nested(request.object, "metadata", "name") or nested(request.object, "metadata", "generateName")
    )
    return name if isinstance(name, str) else ""


def _early_response(request: ReviewRequest) -> AdmissionResponse | None:
    """The answer to what no registration of ours sends here; None for what is to be judged."""
    what = request.resource
    if (what.group, what.resource) != (names.JOBSET_GROUP, "jobsets") or what.version != names.JOBSET_VERSION:
        told = f"{what.group}/{what.version} {what.resource}".lstrip("/")
        return errored(f"this webhook judges {names.JOBSET_API_VERSION} jobsets, not {told}")
    if request.sub_resource or request.operation == "DELETE":
        return Allowed()
    if request.operation not in _JUDGED:
        return errored(f"this webhook judges {' and '.join(_JUDGED)}, not {request.operation!r}")
    if not isinstance(request.object, dict):
        return errored("the request holds no object")
    if (request.operation == "UPDATE") != isinstance(request.old_object, dict):
        return errored(f"the request is of operation {request.operation}, and oldObject does not fit that")
    return None
