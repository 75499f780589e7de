"""Native gang scheduling: the native PodGroup of a group, and why a group cannot be handed over (G6)."""

from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef

VERSIONS: Final = ("v1beta1", "v1alpha3", "v1alpha2")
"""Those of scheduling.k8s.io whose PodGroups have `spec.schedulingPolicy.gang.minCount`, the newer first: of Kubernetes
1.37 the first two, of 1.36 the last. API servers of before 1.22 had a v1beta1 without PodGroups.
"""
PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
"""Finalizer on every native PodGroup, removed when no pod names it."""
MOST_NAMED: Final = 3
"""In a message."""


def native_name(label: str) -> str:
    """Name of a group's native PodGroup, which its pods have in spec.schedulingGroup."""
    return names.NATIVE_PREFIX + label


def native_pod_group(seen: GroupSnapshot, record: AdmissionRecord) -> dict[str, Any]:
    """The native PodGroup of this generation, owned by the object that stores the record."""
    meta: dict[str, Any] = {
        "name": native_name(seen.label),
        "namespace": seen.group.key.namespace,
        "labels": {names.MANAGED_BY_LABEL: names.PROGRAM, names.POD_GROUP_LABEL: seen.label},
        "annotations": {names.NATIVE_GENERATION: str(seen.generation)},
    }
    if seen.record_ref is not None and seen.record_ref.namespace == seen.group.key.namespace:
        meta["ownerReferences"] = [_owner(seen.record_ref)]
    return {"metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": max(1, record.minimum)}}}}


def is_current(stored: dict[str, Any], seen: GroupSnapshot) -> bool:
    """Whether the stored native PodGroup is of this generation, and its owner the object that stores the record."""
    meta = stored.get("metadata", {})
    notes, owners = meta.get("annotations") or {}, [it.get("uid") for it in meta.get("ownerReferences") or ()]
    stays = not owners or seen.record_ref is None or seen.record_ref.uid in owners
    return stays and bool(notes.get(names.NATIVE_GENERATION) == str(seen.generation))


def native_hold(seen: GroupSnapshot, version: str | None) -> GroupReason | None:
    """Why a gathered group cannot be handed over. `version`: the supported one ("": none; None: not known)."""
    lacking = sorted(one.name for one in generation.gated_members(seen) if one.native != native_name(seen.label))
    if version is None:
        why = "whether the API server has PodGroups of its own is not known yet"
    elif not version:
        wanted = ", ".join(VERSIONS)
        why = f"groups.native is On, and the API server serves PodGroups of {names.NATIVE_GROUP} in none of {wanted}"
    elif seen.group.gangs:
        why = "groups.native is On, and the scheduler's own gangs know no GangGroups"
    elif lacking:
        why = (
            f"groups.native is On, and {truncate_list(lacking, MOST_NAMED)} came without spec.schedulingGroup: made "
            "before it was switched on, or the API server's feature gate GenericWorkload is off"
        )
    else:
        return None
    return GroupReason(reason=names.REASON_NATIVE_UNAVAILABLE, message=why)


def _owner(home: RecordRef) -> dict[str, str]:
    kind, api = ("ConfigMap", "v1") if not home.api else (names.POD_GROUP, f"{home.api}/{names.POD_GROUP_VERSION}")
    return {"apiVersion": api, "kind": kind, "name": home.name, "uid": home.uid}
