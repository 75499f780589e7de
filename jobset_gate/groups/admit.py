"""A pod at its creation: is it held for a group, and what has to be written into it for that (G2).

Values are not judged here but two names on one pod: whoever makes the pods would try for ever. The keeper says what is
wrong on the group and its pods.
"""

from dataclasses import dataclass
from typing import Any, Final

from jobset_gate import names
from jobset_gate.edit import Edit
from jobset_gate.groups.identity import label
from jobset_gate.groups.model import Key, Meta
from jobset_gate.groups.pods import claim, two_names
from jobset_gate.settings import Groups, Native
from jobset_gate.template import Json, Path, dig, items, mapping
from jobset_gate.violation import Violation

_GATES: Final[Path] = ("spec", "schedulingGates")
_STALE: Final = (names.GANG_OPENED, names.GANG_TAKEN_BACK)
"""What only the keeper writes; a pod that comes with it was copied from one that it had opened."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a pod: it is refused, changed, or let through as it is."""

    operations: list[Json]
    violations: list[Violation]


AS_IT_IS: Final = Verdict([], [])


def admitted(pod: Json, namespace: str, groups: Groups) -> Verdict:
    """The verdict on a pod that is about to be created. A second look at what came of the first changes nothing."""
    if not takes(pod, groups):
        return AS_IT_IS
    meta = Meta.of(pod, namespace)
    claimed = claim(meta, groups.ways)
    if claimed is None:
        return AS_IT_IS
    twice = two_names(meta, groups.ways)
    return Verdict([], [twice]) if twice else Verdict(_patch(pod, claimed.key, groups.native), [])


def takes(pod: Json, groups: Groups) -> bool:
    """Whether a pod, or a template of pods, is ours if it names a group: what the match conditions say."""
    spec, notes = mapping(pod.get("spec")), mapping(dig(pod, "metadata", "annotations"))
    return (
        groups.enabled
        and (spec.get("schedulerName") or names.DEFAULT_SCHEDULER) in groups.scheduler_names
        and not spec.get("nodeName")
        and names.MIRROR_POD not in notes
        and not any(_is_daemon_set(it) for it in items(dig(pod, "metadata", "ownerReferences")))
        and "schedulingGroup" not in spec
    )


def _is_daemon_set(owner: Any) -> bool:
    return dig(owner, "kind") == "DaemonSet" and dig(owner, "controller") is True


def _patch(pod: Json, key: Key, native: Native) -> list[Json]:
    edit, held = Edit(pod), label(key)
    if dig(pod, "metadata", "labels", names.GANG) != held:
        edit.set(("metadata", "labels", names.GANG), held)
    for stale in _STALE:
        if stale in mapping(dig(pod, "metadata", "annotations")):
            edit.remove(("metadata", "annotations", stale))
    gates = items(dig(pod, *map(str, _GATES)))
    if not gates:
        edit.set(_GATES, [{"name": names.GANG_GATE}])
    elif not any(dig(gate, "name") == names.GANG_GATE for gate in gates):
        edit.insert((*_GATES, len(gates)), {"name": names.GANG_GATE})
    if native is Native.ON and key.name:
        # The scheduler's own gangs hold the pod from then on; a group without a name has none.
        edit.set(("spec", "schedulingGroup"), {"podGroupName": names.NATIVE_PREFIX + held})
    return edit.operations
