"""Rules of one source alone, such as that pods of a start group have an owner (K2, K6, K8)."""

from collections.abc import Callable, Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import Config
from jobset_gate.injection import ownership
from jobset_gate.injection.template_rules import ENDLESS, RESERVED, can_fail, empty
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path, child_path
from jobset_gate.objects.template import GROUP_PATH, PodView, annotations_of, group_size, is_pod, templates_of
from jobset_gate.objects.unstructured import Json, as_int, as_list, as_map, format_path, nested
from jobset_gate.podgroups.fields import is_dns_label
from jobset_gate.settings import Barrier
from jobset_gate.sources.startgroup import MAX_SIZE
from jobset_gate.sources.table import JOB, JOBSET, LWS, START_GROUP

_LABELS: Final = "metadata.labels"
_OWNERS: Final = "metadata.ownerReferences"

# --- JobSets and Jobs -------------------------------------------------------------------------------------------------

_GATED_BY_JOBSET = "Jobs of a JobSet are gated by the JobSet: put it there"
_NEEDS_INDEXES = "a gang of a Job needs indexes: set completionMode Indexed, or use the start-group label on its pods"


def _of_job(obj: Json, config: Config, _: Barrier) -> list[FieldError]:
    """A Job: whose it is, and whether its indexes can start together."""
    return [*_of_a_jobset(obj), *(list(_shape(obj)) or empty(obj, config))]


def _of_jobset(obj: Json, config: Config, _: Barrier) -> list[FieldError]:
    """A JobSet: gated as a whole, never by its Job templates; and not without pods."""
    found = []
    for job in templates_of(obj):
        value = annotations_of(job.job).get(names.CONFIG)
        if value is not None:
            path = format_path((*job.job_path, "metadata", "annotations", names.CONFIG))
            found.append(FieldError(path, value, _GATED_BY_JOBSET, CauseType.FORBIDDEN))
    return found + empty(obj, config)


def _of_a_jobset(obj: Json) -> Iterator[FieldError]:
    for owner in as_list(nested(obj, "metadata", "ownerReferences")):
        if nested(owner, "controller") is True and nested(owner, "kind") == JOBSET.kind:
            value = annotations_of(obj).get(names.CONFIG)
            yield FieldError(annotation_path(names.CONFIG), value, _GATED_BY_JOBSET, CauseType.FORBIDDEN)


def _shape(obj: Json) -> Iterator[FieldError]:
    spec = nested(obj, "spec")
    mode = nested(spec, "completionMode")
    if mode != "Indexed":
        yield FieldError("spec.completionMode", mode, _NEEDS_INDEXES)
    parallelism, completions = as_int(nested(spec, "parallelism"), 1), as_int(nested(spec, "completions"), 0)
    if parallelism < completions:
        later = f"{completions - parallelism} of the {completions} indexes would start later"
        message = f"{later}: parallelism must equal completions (an elastic Job may change both afterwards)"
        yield FieldError("spec.parallelism", parallelism, message)
    if nested(spec, "manualSelector") is True:
        yield FieldError("spec.manualSelector", True, "its pods would not carry the Job's UID: leave it out")


# --- Pods of start groups ---------------------------------------------------------------------------------------------

_LEAVE_OUT: Final = f"leave the label {names.START_GROUP} out"
_REPLACED_A_FEW_AT_A_TIME: Final = ("ReplicaSet", "ReplicationController", "DaemonSet")
_NO_RUNS: Final = "nothing distinguishes one run from the next"
_NEVER_COMPLETE: Final = (
    f"{_NO_RUNS}; these controllers replace pods a few at a time, so a gang may never be complete: "
    "use a Job, or a StatefulSet with podManagementPolicy Parallel"
)
_NO_OWNER: Final = f"{_NO_RUNS} of pods without a controller owner: make them by a Job, a StatefulSet or an operator"
_FOREIGN_LABELS: Final = {
    names.LWS_NAME: f"pods of a LeaderWorkerSet cannot be a start group: {_LEAVE_OUT}, and put the config on the "
    "LeaderWorkerSet",
    "ray.io/cluster": "Ray workers wait for a running head in an init container before ours: the gang could never "
    f"start: {_LEAVE_OUT}",
}
_RESTARTS_IN_PLACE: Final = ("Always", "OnFailure")
_JOB: Final = (JOB.api_version, JOB.kind)


def _of_start_group(pod: Json, config: Config, settings: Barrier) -> list[FieldError]:
    """Whose it is, how many wait for each other, and whether they can start and end together."""
    return [*_name_and_size(pod), *_owner(pod), *_foreign(pod), *_restarted_pod(pod, config, settings)]


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


def _restarted_pod(pod: Json, config: Config, settings: Barrier) -> Iterator[FieldError]:
    """A kubelet restarts a barrier that has exited with 124. Only a Job counts that, by its backoffLimit."""
    given, owner = nested(pod, "spec", "restartPolicy"), _controller(pod)[1]
    policy = "Always" if given is None else given
    counted = (nested(owner, "apiVersion"), nested(owner, "kind")) == _JOB
    if policy in _RESTARTS_IN_PLACE and not counted and can_fail(pod, config, settings):
        yield FieldError("spec.restartPolicy", policy, f"{ENDLESS}, or restartPolicy to Never")


# --- LeaderWorkerSets and their pods ----------------------------------------------------------------------------------

_GROUP: Final = format_path(GROUP_PATH)
_LEADER_READY: Final = "LeaderReady"
_RECREATES: Final = "RecreateGroupOnPodRestart"
_KEEPS_PODS: Final = ("None", "Default", "RecreateGroupAfterStart")
"""Restart policies by which the pods of a group that timed out stay: the last one skips groups with a pending pod."""
_NEVER_STARTS: Final = (
    "the group could never start: workers are created when the leader is ready, and the leader waits for them"
)
_NOT_OF_LWS: Final = (
    "LeaderWorkerSet has not made this pod: put the config on the LeaderWorkerSet, and leave the label "
    f"{names.GATED} out"
)
_TWO_GANGS: Final = (
    "pods of a LeaderWorkerSet cannot be a start group: put the config on the LeaderWorkerSet, and leave the label "
    f"{names.START_GROUP} out"
)


def of_leader_worker_set(obj: Json, config: Config, settings: Barrier) -> list[FieldError]:
    """CREATE and UPDATE of a LeaderWorkerSet: whether its groups can start, and end when their time is up."""
    return [*_size(obj), *_startup(obj), *_claims(obj), *_recreated(obj, config, settings)]


def _of_group_pod(pod: Json) -> list[FieldError]:
    """CREATE of a pod that is marked as one of a LeaderWorkerSet: whether LWS has made it."""
    return [*_made_by_lws(pod), *_start_group(pod)]


def _made_by_lws(pod: Json) -> Iterator[FieldError]:
    """What the controller finds the group of a pod by."""
    for key in (names.LWS_NAME, names.LWS_GROUP_INDEX, names.LWS_WORKER_INDEX):
        value = nested(pod, "metadata", "labels", key)
        if not (isinstance(value, str) and value):
            yield FieldError(child_path(_LABELS, key), value, _NOT_OF_LWS, CauseType.REQUIRED)
    if not 1 <= PodView(pod).expected_pods <= MAX_SIZE:
        size = annotations_of(pod).get(names.LWS_SIZE)
        yield FieldError(annotation_path(names.LWS_SIZE), size, f"must be a number from 1 to {MAX_SIZE}: {_NOT_OF_LWS}")
    if _controller(pod)[1] is None:
        yield FieldError(_OWNERS, nested(pod, "metadata", "ownerReferences"), _NOT_OF_LWS, CauseType.REQUIRED)


def _start_group(pod: Json) -> Iterator[FieldError]:
    group = nested(pod, "metadata", "labels", names.START_GROUP)
    if group is not None:
        yield FieldError(child_path(_LABELS, names.START_GROUP), group, _TWO_GANGS, CauseType.FORBIDDEN)


def _size(obj: Json) -> Iterator[FieldError]:
    if (size := group_size(obj)) > MAX_SIZE:
        yield FieldError(f"{_GROUP}.size", size, f"must be at most {MAX_SIZE}: so many pods can wait for each other")


def _startup(obj: Json) -> Iterator[FieldError]:
    if nested(obj, "spec", "startupPolicy") == _LEADER_READY and group_size(obj) > 1:
        yield FieldError("spec.startupPolicy", _LEADER_READY, _NEVER_STARTS)


def _claims(obj: Json) -> Iterator[FieldError]:
    """Volumes of the pods, made of claims."""
    for index, claim in enumerate(as_list(nested(obj, *GROUP_PATH, "volumeClaimTemplates"))):
        if ownership.is_reserved_volume(nested(claim, "metadata")):
            path = f"{_GROUP}.volumeClaimTemplates[{index}].metadata.name"
            yield FieldError(path, claim["metadata"]["name"], RESERVED)


def _recreated(obj: Json, config: Config, settings: Barrier) -> Iterator[FieldError]:
    """Only the recreation of the group ends barriers that have exited with 124: their kubelets restart them."""
    if not can_fail(obj, config, settings):
        return
    policy, key = nested(obj, *GROUP_PATH, "restartPolicy"), names.LWS_RECREATE_AFTER_START
    if policy in _KEEPS_PODS:
        yield FieldError(f"{_GROUP}.restartPolicy", policy, f"{ENDLESS}, or restartPolicy to {_RECREATES}")
    if (value := annotations_of(obj).get(key)) is not None:
        yield FieldError(annotation_path(key), value, f"{ENDLESS}, or leave this annotation out")


ON_CREATE: Final[dict[str, Callable[[Json, Config, Barrier], list[FieldError]]]] = {
    JOBSET.name: _of_jobset,
    JOB.name: _of_job,
    LWS.name: lambda obj, *_: _of_group_pod(obj) if is_pod(obj) else [],
    START_GROUP.name: _of_start_group,
}
"""By source."""
