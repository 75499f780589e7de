"""The admission handlers: a request in; Allowed, Patched or Denied out. No HTTP, no clock; chance is an argument."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from jobset_gate.barrier.source import Source
from jobset_gate.injection import inject, restore, validate, warnings
from jobset_gate.injection.verify import not_injected
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.json_patch import PatchTooLarge
from jobset_gate.objects.unstructured import as_text, nested
from jobset_gate.podgroups import admission
from jobset_gate.settings import Settings
from jobset_gate.sources.objects import is_gated_alone, source_of
from jobset_gate.sources.table import POD_SOURCES, WORKLOAD_SOURCES
from webhook.registration import BARRIER_POD_PATH
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

_SOURCES: Final = {
    GroupVersionResource(group, version, source.plural): source
    for source in WORKLOAD_SOURCES.values()
    for group, version in [source.api_version.split("/")]
}
_GATED: Final = " and ".join(f"{it.group}/{it.version} {it.resource}" for it in _SOURCES)
_PODS: Final = GroupVersionResource("", "v1", "pods")
_OPERATIONS: Final = ("CREATE", "UPDATE")


def mutating_handler(settings: Settings, suffix: Callable[[], str], token: Callable[[], str]) -> Handler:
    """The handler of /mutate.

    `suffix` returns five random characters for an object without a name, `token` a new gang's secret for the gate
    stream.
    """

    def mutate(request: ReviewRequest) -> AdmissionResponse:
        new, old = request.object, request.old_object
        errors = validate.field_errors(new, old, settings=settings)
        if errors:
            return _denied(request, errors)
        drawn = {"suffix": suffix(), "token": token()} if old is None else {}
        waits = None if old is None else restore.too_early(new, old)
        if waits is not None:
            return replace(_denied(request, [waits]), code=409, reason="Conflict")
        operations = inject.injected(new, old, settings=settings, **drawn).operations
        return Patched(operations) if operations else Allowed()

    return _for_gangs(mutate, settings)


def validating_handler(settings: Settings) -> Handler:
    """The handler of /validate: it runs after all mutating webhooks, and so verifies their result, too."""

    def judge(request: ReviewRequest) -> AdmissionResponse:
        new, old = request.object, request.old_object
        errors = validate.field_errors(new, old, settings=settings) or not_injected(new, old)
        if errors:
            return _denied(request, errors)
        return Allowed(tuple(warnings.warnings(new, old, settings=settings)))

    return _for_gangs(judge, settings)


def pod_handler(settings: Settings) -> Handler:
    """The handler of /mutate-pods: pods of groups get a scheduling gate, no other pod is changed."""

    def gate(request: ReviewRequest) -> AdmissionResponse:
        result = admission.admit_pod(request.object, request.namespace, settings.groups)
        if isinstance(result, FieldError):
            return _denied(request, [result])
        return Patched(result) if result else Allowed()

    return _for_new_pods(gate)


def barrier_pod_handler(settings: Settings, token: Callable[[], str]) -> Handler:
    """The handler of /mutate-barrier-pods: pods of pod sources get their barrier, no other pod is changed.

    `token` returns a pod's secret for the gate stream.
    """

    def mutate(request: ReviewRequest) -> AdmissionResponse:
        pod = request.object
        if not is_gated_alone(pod, settings.gangs.sources):
            return Allowed()
        if errors := validate.field_errors(pod, settings=settings):
            return _denied(request, errors)
        try:
            made = inject.injected(pod, None, settings=settings, token=token(), namespace=request.namespace)
        except PatchTooLarge:
            return _denied(request, [validate.patch_too_large(pod)])
        said = tuple(warnings.warnings(pod, settings=settings))
        return Patched(made.operations, said) if made.operations else Allowed(said)

    return _for_new_pods(mutate)


def source_name(path: str, request: ReviewRequest) -> str:
    """The source whose workload a request on this path is about; "" for any other resource."""
    if path == BARRIER_POD_PATH:
        name = source_of(request.object).name
        return name if name in POD_SOURCES else ""
    source = _SOURCES.get(request.resource)
    return "" if source is None else source.name


def _for_new_pods(handler: Handler) -> Handler:
    """Responds to requests that no webhook configuration of jobset-gate selects; `handler` to new pods."""

    def handle(request: ReviewRequest) -> AdmissionResponse:
        if request.resource != _PODS:
            return _wrong_resource(request, "v1 pods")
        if request.sub_resource or request.operation != "CREATE":
            return Allowed()
        return handler(request) if isinstance(request.object, dict) else errored("the request holds no object")

    return handle


def _for_gangs(handler: Handler, settings: Settings) -> Handler:
    """Responds to requests that no webhook configuration of jobset-gate selects; `handler` to all others."""

    def handle(request: ReviewRequest) -> AdmissionResponse:
        source = _SOURCES.get(request.resource)
        if source is None:
            return _wrong_resource(request, _GATED)
        if request.sub_resource or request.operation == "DELETE" or source.name not in settings.gangs.sources:
            return Allowed()
        if problem := _problem(request, source):
            return errored(problem)
        try:
            return handler(request)
        except PatchTooLarge:
            return _denied(request, [validate.patch_too_large(request.object)])

    return handle


def _problem(request: ReviewRequest, source: Source) -> str:
    if request.operation not in _OPERATIONS:
        return f"this webhook judges {' and '.join(_OPERATIONS)}, not {request.operation!r}"
    if not isinstance(request.object, dict):
        return "the request holds no object"
    if any(it is not None and source_of(it) is not source for it in (request.object, request.old_object)):
        return f"the request holds no {source.kind}"
    fits = (request.operation == "UPDATE") == isinstance(request.old_object, dict)
    return "" if fits else f"the request is of operation {request.operation}, and oldObject does not fit that"


def _denied(request: ReviewRequest, errors: Sequence[FieldError]) -> Denied:
    """With the object's kind, and its name: metadata.name, or else metadata.generateName."""
    meta = nested(request.object, "metadata")
    name = request.name or nested(meta, "name") or nested(meta, "generateName")
    source = _SOURCES.get(request.resource)
    kind = ("", "Pod") if source is None else (request.resource.group, source.kind)
    return denied(errors, as_text(name), kind)


def _wrong_resource(request: ReviewRequest, expected: str) -> Denied:
    what = request.resource
    return errored(f"this webhook judges {expected}, not {f'{what.group}/{what.version} {what.resource}'.lstrip('/')}")
