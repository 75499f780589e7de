"""Gangs that open together: who is in a GangGroup, and whether there is one at all (G3)."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from jobset_gate import names
from jobset_gate.groups.few import first
from jobset_gate.groups.model import Design, Group, Key
from jobset_gate.model import Word
from jobset_gate.violation import Fault, Violation, note

MOST_TOLD: Final = 10
"""Gangs by name in one message; a hundred would say no more."""


class Bond(Enum):
    """How far a GangGroup has come."""

    ALONE = auto()
    """The gang has no others."""
    BROKEN = auto()
    """What the gang lists is no GangGroup: the others go their own way, it waits until its list is put right."""
    WAITING = auto()
    """Others are not there yet, have not gathered, or are wrong in themselves."""
    READY = auto()
    """All are gathered and may be opened in one decision."""


class GangGroup(Word, frozen=True):
    """A gang's GangGroup as that gang sees it."""

    bond: Bond
    keys: tuple[Key, ...]
    """All gangs that open in the decision, the gang itself among them."""
    waits_for: tuple[str, ...] = ()
    """`namespace/name: what lacks`."""
    problem: Violation | None = None


def of(group: Group, groups: Mapping[Key, Group], *, across_namespaces: bool = False) -> GangGroup:
    """What comes of the list of `group`, given all groups there are.

    A list that not all carry alike is the fault of the gang that made it: one that a stranger lists is not bound by it.
    A gang that is not there yet may still come to agree, so it is waited for.
    """
    listed = group.gangs
    if not listed or listed == (group.key.path,):
        return GangGroup(bond=Bond.ALONE, keys=(group.key,))
    problem = _own(group, across_namespaces=across_namespaces)
    if problem is None:
        problem = _one_sided(group, groups)
    if problem is not None:
        return GangGroup(bond=Bond.BROKEN, keys=(group.key,), problem=problem)
    keys = tuple(key(path) for path in listed)
    waits = tuple(
        f"{it.path}: {lacking}" for it in keys if it != group.key and (lacking := _lacking(groups.get(it))) is not None
    )
    bond = Bond.WAITING if waits or not (group.gathered and group.valid) else Bond.READY
    return GangGroup(bond=bond, keys=keys, waits_for=waits)


def key(path: str) -> Key:
    """The gang that an entry of a list names: lists are Koordinator's, and so are the gangs in them."""
    namespace, _, name = path.partition("/")
    return Key(design=Design.KOORDINATOR, namespace=namespace, name=name)


def _own(group: Group, *, across_namespaces: bool) -> Violation | None:
    """What is wrong with a list by itself."""
    if group.key.path not in group.gangs:
        return _wrong(group, f"must contain the gang itself: {group.key.path}")
    others = [it for it in group.gangs if key(it).namespace != group.key.namespace]
    if others and not across_namespaces:
        message = (
            f"must stay in namespace {group.key.namespace} unless a setting allows others: {first(others, MOST_TOLD)}"
        )
        return _wrong(group, message, Fault.FORBIDDEN)
    return None


def _one_sided(group: Group, groups: Mapping[Key, Group]) -> Violation | None:
    """A gang that is there and lists others, or none: then the list is one-sided."""
    for path in group.gangs:
        other = groups.get(key(path))
        # One that is wrong in itself has said nothing yet that could be held against this list.
        if other is not None and other.valid and not other.lacks_pod_group and other.gangs != group.gangs:
            said = first(other.gangs, MOST_TOLD) or "no GangGroup"
            return _wrong(group, f"must be the same on all of its gangs: {path} has {said}")
    return None


def _lacking(other: Group | None) -> str | None:
    if other is None:
        return "not there yet"
    if not other.valid:
        return "invalid"
    if other.lacks_pod_group:
        return "its PodGroup is missing"
    return None if other.gathered else f"{other.present}/{other.minimum} pods"


def _wrong(group: Group, message: str, fault: Fault = Fault.INVALID) -> Violation:
    return Violation(note(names.KOORDINATOR_GANGS), list(group.gangs), message, fault)
