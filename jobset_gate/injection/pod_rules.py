"""CREATE: rules for pods of a start group, whose barrier goes into each of them alone (K2, K6, K8)."""

from collections.abc import Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import Config
from jobset_gate.injection.template_rules import ENDLESS, can_fail
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path, child_path
from jobset_gate.objects.template import PodView, annotations_of
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.podgroups.fields import is_dns_label
from jobset_gate.settings import Barrier
from jobset_gate.sources.startgroup import MAX_SIZE
from jobset_gate.sources.table import JOB

_LABELS: Final = "metadata.labels"
_OWNERS: Final = "metadata.ownerReferences"
_LEAVE_OUT: Final = f"leave the label {names.START_GROUP} out"
_REPLACED_A_FEW_AT_A_TIME: Final = ("ReplicaSet", "ReplicationController", "DaemonSet")
_NO_RUNS: Final = "nothing distinguishes one run from the next"
_NEVER_COMPLETE: Final = (
    f"{_NO_RUNS}; these controllers replace pods a few at a time, so a gang may never be complete: "
    "use a Job, or a StatefulSet with podManagementPolicy Parallel"
)
_NO_OWNER: Final = f"{_NO_RUNS} of pods without a controller owner: make them by a Job, a StatefulSet or an operator"
_RAY: Final = "ray.io/cluster"
_FOREIGN_LABELS: Final = {
    names.LWS_NAME: f"pods of a LeaderWorkerSet cannot be a start group: {_LEAVE_OUT}, and put the config on the "
    "LeaderWorkerSet",
    _RAY: "Ray workers wait for a running head in an init container before ours: the gang could never "
    f"start: {_LEAVE_OUT}",
}
_RESTARTS_IN_PLACE: Final = ("Always", "OnFailure")
_JOB: Final = (JOB.api_version, JOB.kind)


def of_pod(pod: Json, config: Config, settings: Barrier) -> list[FieldError]:
    """Whose it is, how many wait for each other, and whether they can start and end together."""
    return [*_name_and_size(pod), *_owner(pod), *_foreign(pod), *_endless(pod, config, settings)]


def _name_and_size(pod: Json) -> Iterator[FieldError]:
    name = nested(pod, "metadata", "labels", names.START_GROUP)
    if not (isinstance(name, str) and is_dns_label(name)):
        message = "must be a DNS label: lower-case letters, digits and -, at most 63, none of them - at an end"
        yield FieldError(child_path(_LABELS, names.START_GROUP), name, message)
    size = annotations_of(pod).get(names.START_SIZE)
    if not 1 <= PodView(pod).expected_pods <= MAX_SIZE:
        kind = CauseType.REQUIRED if size is None else CauseType.INVALID
        message = f"must be a number from 1 to {MAX_SIZE}, in quotes: how many pods wait for each other"
        yield FieldError(annotation_path(names.START_SIZE), size, message, kind)


def _owner(pod: Json) -> Iterator[FieldError]:
    index, owner = _controller(pod)
    if owner is None:
        yield FieldError(_OWNERS, nested(pod, "metadata", "ownerReferences"), _NO_OWNER, CauseType.REQUIRED)
    elif (kind := nested(owner, "kind")) in _REPLACED_A_FEW_AT_A_TIME:
        yield FieldError(f"{_OWNERS}[{index}].kind", kind, _NEVER_COMPLETE, CauseType.FORBIDDEN)


def _controller(pod: Json) -> tuple[int, Json | None]:
    owners = enumerate(as_list(nested(pod, "metadata", "ownerReferences")))
    return next((it for it in owners if nested(it[1], "controller") is True), (0, None))


def _foreign(pod: Json) -> Iterator[FieldError]:
    labels = as_map(nested(pod, "metadata", "labels"))
    for key, message in _FOREIGN_LABELS.items():
        if key in labels:
            yield FieldError(child_path(_LABELS, key), labels[key], message, CauseType.FORBIDDEN)


def _endless(pod: Json, config: Config, settings: Barrier) -> Iterator[FieldError]:
    """A kubelet restarts a barrier that has exited with 124. Only a Job counts that, by its backoffLimit."""
    given, owner = nested(pod, "spec", "restartPolicy"), _controller(pod)[1]
    policy = "Always" if given is None else given
    counted = (nested(owner, "apiVersion"), nested(owner, "kind")) == _JOB
    if policy in _RESTARTS_IN_PLACE and not counted and can_fail(pod, config, settings):
        yield FieldError("spec.restartPolicy", policy, f"{ENDLESS}, or restartPolicy to Never")
