"""Why a group is not opened yet, as far as its sources and its members tell: the first fact that holds it up (G3)."""

from collections.abc import Callable, Mapping
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.podgroups import gang_groups
from jobset_gate.podgroups import owner_capacity as creators
from jobset_gate.podgroups.gang_groups import GangGroup, GangGroupState
from jobset_gate.podgroups.model import MergedGroup, PodGroupKey
from jobset_gate.podgroups.owner_capacity import OwnerCapacity
from jobset_gate.podgroups.text import truncate_list

MAX_PROBLEMS_NAMED: Final = 5
MAX_GANGS_NAMED: Final = 10
"""Of those that are waited for; a hundred would say no more."""


class GroupReason(Value, frozen=True):
    """What a person is told about a group that waits."""

    reason: str
    message: str


class PreconditionInput(Value, frozen=True):
    """All that one group's standing depends on."""

    group: MergedGroup
    gang_group: GangGroup
    creators: tuple[OwnerCapacity, ...] = ()
    """Of all pods of the group, where they are known; () where not."""
    other_gates: tuple[str, ...] = ()
    """Names of scheduling gates that are not ours, on members that it needs for its minimum."""


def precondition_input(
    group: MergedGroup,
    groups: Mapping[PodGroupKey, MergedGroup],
    *,
    made_by: tuple[OwnerCapacity, ...] = (),
    other_gates: tuple[str, ...] = (),
    across_namespaces: bool = False,
) -> PreconditionInput:
    """The facts about a group, given all groups there are."""
    bond = gang_groups.gang_group_of(group, groups, across_namespaces=across_namespaces)
    return PreconditionInput(group=group, gang_group=bond, creators=made_by, other_gates=other_gates)


def first_unmet(seen: PreconditionInput) -> GroupReason | None:
    """The first thing that holds the group up; None: it is gathered and may be considered for opening."""
    return next((told for ask in _ORDER if (told := ask(seen)) is not None), None)


def _invalid(seen: PreconditionInput) -> GroupReason | None:
    group = seen.group
    lines = [str(it) for it in group.problems] + [f"pod {pod}: {it}" for pod, it in group.blamed]
    if not lines:
        return None
    return GroupReason(reason=names.REASON_INVALID_GROUP, message=truncate_list(lines, MAX_PROBLEMS_NAMED, "; "))


def _missing(seen: PreconditionInput) -> GroupReason | None:
    if not seen.group.pod_group_missing:
        return None
    return GroupReason(
        reason=names.REASON_POD_GROUP_MISSING,
        message=f"{seen.group.present} pods name PodGroup {seen.group.key.path}, which does not exist",
    )


def _broken(seen: PreconditionInput) -> GroupReason | None:
    problem = seen.gang_group.problem
    return None if problem is None else GroupReason(reason=names.REASON_INVALID_GANG_GROUP, message=str(problem))


def _cannot(seen: PreconditionInput) -> GroupReason | None:
    why = creators.capacity_shortage(seen.group, seen.creators)
    return None if why is None else GroupReason(reason=names.REASON_CANNOT_GATHER, message=why)


def _gathering(seen: PreconditionInput) -> GroupReason | None:
    group = seen.group
    if group.gathered:
        return None
    return GroupReason(reason=names.REASON_GATHERING, message=f"{group.present}/{group.minimum} pods exist")


def _others(seen: PreconditionInput) -> GroupReason | None:
    if seen.gang_group.bond is not GangGroupState.WAITING:
        return None
    told = truncate_list(seen.gang_group.waits_for, MAX_GANGS_NAMED, "; ")
    return GroupReason(reason=names.REASON_WAITING_FOR_GANG_GROUP, message=told)


def _gates(seen: PreconditionInput) -> GroupReason | None:
    if not seen.other_gates:
        return None
    return GroupReason(
        reason=names.REASON_OTHER_GATE, message=f"also held by {', '.join(sorted(set(seen.other_gates)))}"
    )


_ORDER: Final[tuple[Callable[[PreconditionInput], GroupReason | None], ...]] = (
    _invalid,  # nothing below can be trusted
    _missing,  # without it the minimum is not known
    _broken,  # no waiting will mend it
    _cannot,  # nor this
    _gathering,
    _others,
    _gates,  # last: theirs may open at any time, and ours is held until the gang could use it
)
