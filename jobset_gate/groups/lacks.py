"""Members of a group without a node, by what holds them: the same for conditions, pages and people (A9, G5)."""

from collections.abc import Callable, Iterable

from jobset_gate import names
from jobset_gate.groups.seen import MemberSeen
from jobset_gate.lack import Lack
from jobset_gate.lacks import SLOTS, unnumbered


def lacks(members: Iterable[MemberSeen]) -> tuple[Lack, ...]:
    """Those that are not bound, longest-waiting first."""
    groups: dict[tuple[str, str], list[MemberSeen]] = {}
    for member in sorted(members, key=lambda it: (it.created, it.name)):
        if not (member.bound and member.alive):
            why, words = held_by(member)
            groups.setdefault((why, unnumbered(words)), []).append(member)
    return tuple(_lack(why, some) for (why, _), some in groups.items())


def held_by(member: MemberSeen) -> tuple[str, str]:
    """A class, and words of its own."""
    return next(told for holds, told in _HELD if holds(member))(member)


def _lack(why: str, members: list[MemberSeen]) -> Lack:
    first = members[0]
    return Lack(
        why=why,
        detail=held_by(first)[1],
        count=len(members),
        slots=tuple(it.name for it in members[:SLOTS]),
        since=first.created or None,
        command=f"kubectl describe pod {first.name} -n {first.namespace}",
    )


_Told = Callable[[MemberSeen], tuple[str, str]]
_HELD: tuple[tuple[Callable[[MemberSeen], bool], _Told], ...] = (
    (lambda it: it.deleting, lambda _: ("Terminating", "is being deleted")),
    (lambda it: it.phase == "Failed", lambda _: ("Failed", "the pod has failed")),
    (lambda it: bool(it.other_gates), lambda it: (names.REASON_OTHER_GATE, f"held by {', '.join(it.other_gates)}")),
    (lambda it: it.gated, lambda _: ("Held", "until the whole group is opened")),
    (lambda _: True, lambda it: ("Unscheduled", it.unschedulable or "no scheduler has looked at it yet")),
)
