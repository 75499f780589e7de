"""The admission handlers: a request in; Allowed, Patched or Denied out. No HTTP, no clock; chance is an argument."""

from collections.abc import Callable, Sequence
from typing import Final

from jobset_gate import names
from jobset_gate.injection import inject, validate, warnings
from jobset_gate.injection.verify import not_injected
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.json_patch import PatchTooLarge
from jobset_gate.objects.unstructured import nested
from jobset_gate.podgroups import admission
from jobset_gate.settings import Settings
from webhook.review import (
    AdmissionResponse,
    Allowed,
    Denied,
    GroupVersionResource,
    Patched,
    ReviewRequest,
    denied,
    errored,
)

Handler = Callable[[ReviewRequest], AdmissionResponse]

_JOBSETS: Final = GroupVersionResource(names.JOBSET_GROUP, names.JOBSET_VERSION, "jobsets")
_PODS: Final = GroupVersionResource("", "v1", "pods")
_OPERATIONS: Final = ("CREATE", "UPDATE")


def mutating_handler(settings: Settings, suffix: Callable[[], str], token: Callable[[], str]) -> Handler:
    """The handler of /mutate.

    `suffix` returns five random characters for a JobSet without a name, `token` a new gang's secret for the gate
    stream.
    """

    def mutate(request: ReviewRequest) -> AdmissionResponse:
        new, old = request.object, request.old_object
        errors = validate.field_errors(new, old, settings=settings)
        if errors:
            return _denied(request, errors)
        drawn = {"suffix": suffix(), "token": token()} if old is None else {}
        operations = inject.injected(new, old, settings=settings, **drawn).operations
        return Patched(operations) if operations else Allowed()

    return _for_jobsets(mutate)


def validating_handler(settings: Settings) -> Handler:
    """The handler of /validate: it runs after all mutating webhooks, and so verifies their result, too."""

    def judge(request: ReviewRequest) -> AdmissionResponse:
        new, old = request.object, request.old_object
        errors = validate.field_errors(new, old, settings=settings) or not_injected(new, old)
        if errors:
            return _denied(request, errors)
        return Allowed(tuple(warnings.warnings(new, old, settings=settings)))

    return _for_jobsets(judge)


def pod_handler(settings: Settings) -> Handler:
    """The handler of /mutate-pods: pods of groups get a scheduling gate, no other pod is changed."""

    def gate(request: ReviewRequest) -> AdmissionResponse:
        if request.resource != _PODS:
            return _wrong_resource(request, "v1 pods")
        if request.sub_resource or request.operation != "CREATE":
            return Allowed()
        if not isinstance(request.object, dict):
            return errored("the request holds no object")
        result = admission.admit_pod(request.object, request.namespace, settings.groups)
        if result.violations:
            return _denied(request, result.violations)
        return Patched(result.operations) if result.operations else Allowed()

    return gate


def _for_jobsets(handler: Handler) -> Handler:
    """Responds to requests that no webhook configuration of jobset-gate selects; `handler` to all others."""

    def handle(request: ReviewRequest) -> AdmissionResponse:
        if request.resource != _JOBSETS:
            return _wrong_resource(request, f"{names.JOBSET_API_VERSION} jobsets")
        if request.sub_resource or request.operation == "DELETE":
            return Allowed()
        if problem := _problem(request):
            return errored(problem)
        try:
            return handler(request)
        except PatchTooLarge:
            return _denied(request, [validate.patch_too_large(request.object)])

    return handle


def _problem(request: ReviewRequest) -> str:
    if request.operation not in _OPERATIONS:
        return f"this webhook judges {' and '.join(_OPERATIONS)}, not {request.operation!r}"
    if not isinstance(request.object, dict):
        return "the request holds no object"
    fits = (request.operation == "UPDATE") == isinstance(request.old_object, dict)
    return "" if fits else f"the request is of operation {request.operation}, and oldObject does not fit that"


def _denied(request: ReviewRequest, errors: Sequence[FieldError]) -> Denied:
    """With the object's kind, and its name: metadata.name, or else metadata.generateName."""
    meta = nested(request.object, "metadata")
    name = request.name or nested(meta, "name") or nested(meta, "generateName")
    kind = (names.JOBSET_GROUP, "JobSet") if request.resource == _JOBSETS else ("", "Pod")
    return denied(errors, name if isinstance(name, str) else "", kind)


def _wrong_resource(request: ReviewRequest, expected: str) -> Denied:
    what = request.resource
    return errored(f"this webhook judges {expected}, not {f'{what.group}/{what.version} {what.resource}'.lstrip('/')}")
