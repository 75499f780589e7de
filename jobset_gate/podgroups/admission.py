"""A pod at its creation: is it held for a group, and what has to be written into it for that (G2).

Values are not judged here but two names on one pod: whoever makes the pods would try for ever. The keeper says what is
wrong on the group and its pods.
"""

from dataclasses import dataclass
from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.unstructured import Json, Path, as_list, as_map, nested
from jobset_gate.podgroups.formats import conflicting_names, parse_membership
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.model import PodGroupKey, RawMetadata
from jobset_gate.settings import Groups, Native

_GATES: Final[Path] = ("spec", "schedulingGates")
_CONTROLLER_ONLY: Final = (names.POD_GROUP_OPENED, names.POD_GROUP_TAKEN_BACK)
"""What only the keeper writes; a pod that comes with it was copied from one that it had opened."""


@dataclass(frozen=True, slots=True)
class PodAdmission:
    """What becomes of a pod: it is refused, changed, or let through as it is."""

    operations: list[Json]
    violations: list[FieldError]


UNCHANGED: Final = PodAdmission([], [])


def admit_pod(pod: Json, namespace: str, groups: Groups) -> PodAdmission:
    """The verdict on a pod that is about to be created. A second look at what came of the first changes nothing."""
    if not matches_conditions(pod, groups):
        return UNCHANGED
    meta = RawMetadata.of_object(pod, namespace)
    claimed = parse_membership(meta, groups.ways)
    if claimed is None:
        return UNCHANGED
    twice = conflicting_names(meta, groups.ways)
    return PodAdmission([], [twice]) if twice else PodAdmission(_patch(pod, claimed.key, groups.native), [])


def matches_conditions(pod: Json, groups: Groups) -> bool:
    """Whether a pod, or a template of pods, is ours if it names a group: what the match conditions say."""
    spec, notes = as_map(pod.get("spec")), as_map(nested(pod, "metadata", "annotations"))
    return (
        groups.enabled
        and (spec.get("schedulerName") or names.DEFAULT_SCHEDULER) in groups.scheduler_names
        and not spec.get("nodeName")
        and names.MIRROR_POD not in notes
        and not any(_is_daemon_set(it) for it in as_list(nested(pod, "metadata", "ownerReferences")))
        and "schedulingGroup" not in spec
    )


def _is_daemon_set(owner: Any) -> bool:
    return nested(owner, "kind") == "DaemonSet" and nested(owner, "controller") is True


def _patch(pod: Json, key: PodGroupKey, native: Native) -> list[Json]:
    edit, held = PatchBuilder(pod), group_label(key)
    if nested(pod, "metadata", "labels", names.POD_GROUP_LABEL) != held:
        edit.set(("metadata", "labels", names.POD_GROUP_LABEL), held)
    for stale in _CONTROLLER_ONLY:
        if stale in as_map(nested(pod, "metadata", "annotations")):
            edit.remove(("metadata", "annotations", stale))
    gates = as_list(nested(pod, *map(str, _GATES)))
    if not gates:
        edit.set(_GATES, [{"name": names.POD_GROUP_GATE}])
    elif not any(nested(gate, "name") == names.POD_GROUP_GATE for gate in gates):
        edit.insert((*_GATES, len(gates)), {"name": names.POD_GROUP_GATE})
    if native is Native.ON and key.name:
        # The scheduler's own gangs hold the pod from then on; a group without a name has none.
        edit.set(("spec", "schedulingGroup"), {"podGroupName": names.NATIVE_PREFIX + held})
    return edit.operations
