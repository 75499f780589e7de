"""What the door answers about pods: those of groups go out with a gate, and no other is touched. No HTTP, no clock."""

from typing import Final

from jobset_gate.objects.unstructured import nested
from jobset_gate.podgroups import admission
from jobset_gate.settings import Settings
from webhook.handlers import Handler
from webhook.review import AdmissionResponse, Allowed, ObjectKind, Patched, ReviewRequest, denied, errored

POD: Final = ObjectKind("", "Pod")


def pod_handler(settings: Settings) -> Handler:
    """The handler behind /mutate-pods."""

    def hold(request: ReviewRequest) -> AdmissionResponse:
        early = _early_response(request)
        if early is not None:
            return early
        verdict = admission.admit_pod(request.object, request.namespace, settings.groups)
        if verdict.violations:
            return denied(verdict.violations, _display_name(request), POD)
        return Patched(verdict.operations) if verdict.operations else Allowed()

    return hold


def _display_name(request: ReviewRequest) -> str:
    """What to call the pod in a message; one without a name goes by the beginning of the one it will get."""
    name = (
        request.name or nested(request.object, "metadata", "name") or nested(request.object, "metadata", "generateName")
    )
    return name if isinstance(name, str) else ""


def _early_response(request: ReviewRequest) -> AdmissionResponse | None:
    """The answer to what no registration of ours sends here; None for what is to be judged."""
    what = request.resource
    if (what.group, what.version, what.resource) != ("", "v1", "pods"):
        told = f"{what.group}/{what.version} {what.resource}".lstrip("/")
        return errored(f"this webhook judges v1 pods, not {told}")
    if request.sub_resource or request.operation != "CREATE":
        return Allowed()
    return None if isinstance(request.object, dict) else errored("the request holds no object")
