"""Rules for LeaderWorkerSets, whose groups are gangs, and for the pods of those (K6, K8)."""

from collections.abc import Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import Config
from jobset_gate.injection import ownership
from jobset_gate.injection.template_rules import ENDLESS, RESERVED, can_fail
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path, child_path
from jobset_gate.objects.template import GROUP_PATH, PodView, annotations_of, group_size
from jobset_gate.objects.unstructured import Json, as_list, format_path, nested
from jobset_gate.settings import Barrier
from jobset_gate.sources.startgroup import MAX_SIZE

_LABELS: Final = "metadata.labels"
_OWNERS: Final = "metadata.ownerReferences"
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


def of_workload(obj: Json, config: Config, settings: Barrier) -> list[FieldError]:
    """CREATE and UPDATE of a LeaderWorkerSet: whether its groups can start, and end when their time is up."""
    return [*_size(obj), *_startup(obj), *_claims(obj), *_endless(obj, config, settings)]


def of_pod(pod: Json) -> list[FieldError]:
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
    owners = nested(pod, "metadata", "ownerReferences")
    if not any(nested(it, "controller") is True for it in as_list(owners)):
        yield FieldError(_OWNERS, owners, _NOT_OF_LWS, CauseType.REQUIRED)


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


def _endless(obj: Json, config: Config, settings: Barrier) -> Iterator[FieldError]:
    """Only the recreation of the group ends barriers that have exited with 124: their kubelets restart them."""
    if not can_fail(obj, config, settings):
        return
    policy, key = nested(obj, *GROUP_PATH, "restartPolicy"), names.LWS_RECREATE_AFTER_START
    if policy in _KEEPS_PODS:
        yield FieldError(f"{_GROUP}.restartPolicy", policy, f"{ENDLESS}, or restartPolicy to {_RECREATES}")
    if (value := annotations_of(obj).get(key)) is not None:
        yield FieldError(annotation_path(key), value, f"{ENDLESS}, or leave this annotation out")
