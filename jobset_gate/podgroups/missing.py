"""Members of a group without a node, by what holds them: the same for conditions, pages and people (A9, G5)."""

from collections.abc import Callable, Iterable

from jobset_gate import names
from jobset_gate.barrier.missing import MAX_NAMED_SLOTS, without_numbers
from jobset_gate.barrier.model import MissingByReason
from jobset_gate.podgroups.snapshot import MemberPod


def missing_members(members: Iterable[MemberPod]) -> tuple[MissingByReason, ...]:
    """Those that are not bound, longest-waiting first."""
    groups: dict[tuple[str, str], list[MemberPod]] = {}
    for member in sorted(members, key=lambda it: (it.created, it.name)):
        if not (member.bound and member.alive):
            why, words = waiting_for(member)
            groups.setdefault((why, without_numbers(words)), []).append(member)
    return tuple(_lack(why, some) for (why, _), some in groups.items())


def waiting_for(member: MemberPod) -> tuple[str, str]:
    """A class, and words of its own."""
    return next(told for holds, told in _HELD if holds(member))(member)


def _lack(why: str, members: list[MemberPod]) -> MissingByReason:
    first = members[0]
    return MissingByReason(
        reason=why,
        message=waiting_for(first)[1],
        count=len(members),
        slots=tuple(it.name for it in members[:MAX_NAMED_SLOTS]),
        oldest_created_at=first.created or None,
        command=f"kubectl describe pod {first.name} -n {first.namespace}",
    )


_Told = Callable[[MemberPod], tuple[str, str]]
_HELD: tuple[tuple[Callable[[MemberPod], bool], _Told], ...] = (
    (lambda it: it.deleting, lambda _: ("Terminating", "is being deleted")),
    (lambda it: it.phase == "Failed", lambda _: ("Failed", "the pod has failed")),
    (lambda it: bool(it.foreign_gates), lambda it: (names.REASON_OTHER_GATE, f"held by {', '.join(it.foreign_gates)}")),
    (lambda it: it.gated, lambda _: ("Held", "until the whole group is opened")),
    (lambda _: True, lambda it: ("Unscheduled", it.unschedulable or "no scheduler has looked at it yet")),
)
