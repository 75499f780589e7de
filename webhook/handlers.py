"""The admission handlers: a request in; Allowed, Patched or Denied out. No HTTP, no clock; chance is an argument."""

from collections.abc import Callable
from functools import wraps
from typing import Final

from jobset_gate import names
from jobset_gate.injection import inject, validate, warnings
from jobset_gate.injection.verify import not_injected
from jobset_gate.objects.json_patch import PatchTooLarge
from jobset_gate.objects.unstructured import nested
from jobset_gate.podgroups import admission
from jobset_gate.settings import Settings
from webhook.review import (
    AdmissionResponse,
    Allowed,
    GroupVersionResource,
    ObjectKind,
    Patched,
    ReviewRequest,
    denied,
    errored,
)

Handler = Callable[[ReviewRequest], AdmissionResponse]

POD: Final = ObjectKind("", "Pod")
_JOBSETS: Final = GroupVersionResource(names.JOBSET_GROUP, names.JOBSET_VERSION, "jobsets")
_PODS: Final = GroupVersionResource("", "v1", "pods")
_OPERATIONS: Final = ("CREATE", "UPDATE")


def mutating_handler(settings: Settings, suffix: Callable[[], str], token: Callable[[], str]) -> Handler:
    """The handler of /mutate.

    `suffix` returns five random characters for a JobSet without a name, `token` a new gang's secret for the gate
    stream.
    """

    @_bounded
    def mutate(request: ReviewRequest) -> AdmissionResponse:
        early = _jobset_early_response(request)
        if early is not None:
            return early
        new, old = request.object, request.old_object
        errors = validate.field_errors(new, old, settings=settings)
        if errors:
            return denied(errors, _display_name(request))
        prefix = inject.needs_name(new) if old is None else None
        name = inject.generated_name(prefix, suffix()) if prefix is not None else None
        key = token() if old is None else ""
        operations = inject.patch(new, old, settings=settings, generated_name=name, token=key)
        return Patched(operations) if operations else Allowed()

    return mutate


def validating_handler(settings: Settings) -> Handler:
    """The handler of /validate: it runs after all mutating webhooks, and so verifies their result, too."""

    @_bounded
    def judge(request: ReviewRequest) -> AdmissionResponse:
        early = _jobset_early_response(request)
        if early is not None:
            return early
        new, old = request.object, request.old_object
        errors = validate.field_errors(new, old, settings=settings) or not_injected(new, old)
        if errors:
            return denied(errors, _display_name(request))
        return Allowed(tuple(warnings.warnings(new, old, settings=settings)))

    return judge


def pod_handler(settings: Settings) -> Handler:
    """The handler of /mutate-pods: pods of groups get a scheduling gate, no other pod is changed."""

    def gate(request: ReviewRequest) -> AdmissionResponse:
        early = _pod_early_response(request)
        if early is not None:
            return early
        result = admission.admit_pod(request.object, request.namespace, settings.groups)
        if result.violations:
            return denied(result.violations, _display_name(request), POD)
        return Patched(result.operations) if result.operations else Allowed()

    return gate


def _bounded(handler: Handler) -> Handler:
    @wraps(handler)
    def refusing(request: ReviewRequest) -> AdmissionResponse:
        try:
            return handler(request)
        except PatchTooLarge:
            return denied([validate.patch_too_large(request.object)], _display_name(request))

    return refusing


def _display_name(request: ReviewRequest) -> str:
    """The object's name in messages: metadata.name, or else metadata.generateName."""
    name = (
        request.name or nested(request.object, "metadata", "name") or nested(request.object, "metadata", "generateName")
    )
    return name if isinstance(name, str) else ""


def _jobset_early_response(request: ReviewRequest) -> AdmissionResponse | None:
    """The response to requests that no webhook configuration of jobset-gate selects; None for all others."""
    if request.resource != _JOBSETS:
        return _wrong_resource(request, f"{names.JOBSET_API_VERSION} jobsets")
    if request.sub_resource or request.operation == "DELETE":
        return Allowed()
    if request.operation not in _OPERATIONS:
        return errored(f"this webhook judges {' and '.join(_OPERATIONS)}, not {request.operation!r}")
    if not isinstance(request.object, dict):
        return errored("the request holds no object")
    if (request.operation == "UPDATE") != isinstance(request.old_object, dict):
        return errored(f"the request is of operation {request.operation}, and oldObject does not fit that")
    return None


def _pod_early_response(request: ReviewRequest) -> AdmissionResponse | None:
    """The response to requests that no webhook configuration of jobset-gate selects; None for all others."""
    if request.resource != _PODS:
        return _wrong_resource(request, "v1 pods")
    if request.sub_resource or request.operation != "CREATE":
        return Allowed()
    return None if isinstance(request.object, dict) else errored("the request holds no object")


def _wrong_resource(request: ReviewRequest, expected: str) -> AdmissionResponse:
    what = request.resource
    return errored(f"this webhook judges {expected}, not {f'{what.group}/{what.version} {what.resource}'.lstrip('/')}")
