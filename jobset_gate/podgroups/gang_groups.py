"""Gangs that open together: who is in a GangGroup, and whether there is one at all (G3)."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path
from jobset_gate.podgroups.model import Flavor, MergedGroup, PodGroupKey
from jobset_gate.podgroups.text import truncate_list

MAX_GANGS_NAMED: Final = 10
"""Gangs by name in one message; a hundred would say no more."""


class GangGroupState(Enum):
    """How far a GangGroup has come."""

    ALONE = auto()
    """The gang has no others."""
    BROKEN = auto()
    """What the gang lists is no GangGroup: the others go their own way, it waits until its list is put right."""
    WAITING = auto()
    """Others are not there yet, have not gathered, or are wrong in themselves."""
    READY = auto()
    """All are gathered and may be opened in one decision."""


class GangGroup(Value, frozen=True):
    """A gang's GangGroup as that gang sees it."""

    bond: GangGroupState
    keys: tuple[PodGroupKey, ...]
    """All gangs that open in the decision, the gang itself among them."""
    waits_for: tuple[str, ...] = ()
    """`namespace/name: what lacks`."""
    problem: FieldError | None = None


def gang_group_of(
    group: MergedGroup, groups: Mapping[PodGroupKey, MergedGroup], *, across_namespaces: bool = False
) -> GangGroup:
    """What comes of the list of `group`, given all groups there are.

    A list that not all carry alike is the fault of the gang that made it: one that a stranger lists is not bound by it.
    A gang that is not there yet may still come to agree, so it is waited for.
    """
    listed = group.gangs
    if not listed or listed == (group.key.path,):
        return GangGroup(bond=GangGroupState.ALONE, keys=(group.key,))
    problem = _own(group, across_namespaces=across_namespaces)
    if problem is None:
        problem = _not_mutual(group, groups)
    if problem is not None:
        return GangGroup(bond=GangGroupState.BROKEN, keys=(group.key,), problem=problem)
    keys = tuple(gang_key(path) for path in listed)
    waits = tuple(
        f"{it.path}: {lacking}" for it in keys if it != group.key and (lacking := _unmet(groups.get(it))) is not None
    )
    bond = GangGroupState.WAITING if waits or not (group.gathered and group.valid) else GangGroupState.READY
    return GangGroup(bond=bond, keys=keys, waits_for=waits)


def gang_key(path: str) -> PodGroupKey:
    """The gang that an entry of a list names: lists are Koordinator's, and so are the gangs in them."""
    namespace, _, name = path.partition("/")
    return PodGroupKey(design=Flavor.KOORDINATOR, namespace=namespace, name=name)


def _own(group: MergedGroup, *, across_namespaces: bool) -> FieldError | None:
    """What is wrong with a list by itself."""
    if group.key.path not in group.gangs:
        return _wrong(group, f"must contain the gang itself: {group.key.path}")
    others = [it for it in group.gangs if gang_key(it).namespace != group.key.namespace]
    if others and not across_namespaces:
        named = truncate_list(others, MAX_GANGS_NAMED)
        message = f"must stay in namespace {group.key.namespace} unless a setting allows others: {named}"
        return _wrong(group, message, CauseType.FORBIDDEN)
    return None


def _not_mutual(group: MergedGroup, groups: Mapping[PodGroupKey, MergedGroup]) -> FieldError | None:
    """A gang that is there and lists others, or none: then the list is one-sided."""
    for path in group.gangs:
        other = groups.get(gang_key(path))
        # One that is wrong in itself has said nothing yet that could be held against this list.
        if other is not None and other.valid and not other.pod_group_missing and other.gangs != group.gangs:
            said = truncate_list(other.gangs, MAX_GANGS_NAMED) or "no GangGroup"
            return _wrong(group, f"must be the same on all of its gangs: {path} has {said}")
    return None


def _unmet(other: MergedGroup | None) -> str | None:
    if other is None:
        return "not there yet"
    if not other.valid:
        return "invalid"
    if other.pod_group_missing:
        return "its PodGroup is missing"
    return None if other.gathered else f"{other.present}/{other.minimum} pods"


def _wrong(group: MergedGroup, message: str, fault: CauseType = CauseType.INVALID) -> FieldError:
    return FieldError(annotation_path(names.KOORDINATOR_GANGS), list(group.gangs), message, fault)
