"""Why a group is not opened yet, as far as its sources and its members tell: the first fact that holds it up (G3)."""

from collections.abc import Callable, Mapping
from typing import Final

from jobset_gate import names
from jobset_gate.groups import creators, ganggroups
from jobset_gate.groups.creators import Creator
from jobset_gate.groups.few import first
from jobset_gate.groups.ganggroups import Bond, GangGroup
from jobset_gate.groups.model import Group, Key
from jobset_gate.model import Word

MOST_PROBLEMS_TOLD: Final = 5
MOST_GANGS_TOLD: Final = 10
"""Of those that are waited for; a hundred would say no more."""


class Standing(Word, frozen=True):
    """What a person is told about a group that waits."""

    reason: str
    message: str


class Facts(Word, frozen=True):
    """All that one group's standing depends on."""

    group: Group
    gang_group: GangGroup
    creators: tuple[Creator, ...] = ()
    """Of all pods of the group, where they are known; () where not."""
    other_gates: tuple[str, ...] = ()
    """Names of scheduling gates that are not ours, on members that it needs for its minimum."""


def facts(
    group: Group,
    groups: Mapping[Key, Group],
    *,
    made_by: tuple[Creator, ...] = (),
    other_gates: tuple[str, ...] = (),
    across_namespaces: bool = False,
) -> Facts:
    """The facts about a group, given all groups there are."""
    bond = ganggroups.of(group, groups, across_namespaces=across_namespaces)
    return Facts(group=group, gang_group=bond, creators=made_by, other_gates=other_gates)


def standing(seen: Facts) -> Standing | None:
    """The first thing that holds the group up; None: it is gathered and may be considered for opening."""
    return next((told for ask in _ORDER if (told := ask(seen)) is not None), None)


def _invalid(seen: Facts) -> Standing | None:
    group = seen.group
    lines = [str(it) for it in group.problems] + [f"pod {pod}: {it}" for pod, it in group.blamed]
    if not lines:
        return None
    return Standing(reason=names.REASON_INVALID_GROUP, message=first(lines, MOST_PROBLEMS_TOLD, "; "))


def _missing(seen: Facts) -> Standing | None:
    if not seen.group.lacks_pod_group:
        return None
    return Standing(
        reason=names.REASON_POD_GROUP_MISSING,
        message=f"{seen.group.present} pods name PodGroup {seen.group.key.path}, which does not exist",
    )


def _broken(seen: Facts) -> Standing | None:
    problem = seen.gang_group.problem
    return None if problem is None else Standing(reason=names.REASON_INVALID_GANG_GROUP, message=str(problem))


def _cannot(seen: Facts) -> Standing | None:
    why = creators.short(seen.group, seen.creators)
    return None if why is None else Standing(reason=names.REASON_CANNOT_GATHER, message=why)


def _gathering(seen: Facts) -> Standing | None:
    group = seen.group
    if group.gathered:
        return None
    return Standing(reason=names.REASON_GATHERING, message=f"{group.present}/{group.minimum} pods exist")


def _others(seen: Facts) -> Standing | None:
    if seen.gang_group.bond is not Bond.WAITING:
        return None
    told = first(seen.gang_group.waits_for, MOST_GANGS_TOLD, "; ")
    return Standing(reason=names.REASON_WAITING_FOR_GANG_GROUP, message=told)


def _gates(seen: Facts) -> Standing | None:
    if not seen.other_gates:
        return None
    return Standing(reason=names.REASON_OTHER_GATE, message=f"also held by {', '.join(sorted(set(seen.other_gates)))}")


_ORDER: Final[tuple[Callable[[Facts], Standing | None], ...]] = (
    _invalid,  # nothing below can be trusted
    _missing,  # without it the minimum is not known
    _broken,  # no waiting will mend it
    _cannot,  # nor this
    _gathering,
    _others,
    _gates,  # last: theirs may open at any time, and ours is held until the gang could use it
)
