"""What has happened to a group, as Events: each fact once, on the group and where that helps on some of its pods (G5).

A group without a PodGroup has only its pods to be told of it on.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from jobset_gate import names
from jobset_gate.groups.model import Design
from jobset_gate.groups.phases import Counts
from jobset_gate.groups.record import Stage
from jobset_gate.groups.seen import GroupSeen, MemberSeen
from jobset_gate.groups.standing import Standing
from jobset_gate.model import Word

HANDFUL: Final = 5
"""Pods that bear the Event of a group."""
MOST_PODS: Final = 100
"""Pods that bear an Event of their own for one reason: a group may have thousands of them."""
GATHERING_PATIENCE: Final = 300.0
"""Seconds for which nobody is told that a group is still gathering (G4)."""
KEP24_PATIENCE: Final = 5.0
"""Seconds after the newest member before members of a small KEP-24 group are said to be unschedulable."""

_LASTING: Final = frozenset(
    {
        names.REASON_INVALID_GROUP,
        names.REASON_INVALID_GANG_GROUP,
        names.REASON_CANNOT_GATHER,
        names.REASON_POD_GROUP_MISSING,
        names.REASON_NATIVE_UNAVAILABLE,
        names.REASON_ROLLBACK_BLOCKED,
        names.REASON_FAILED,
        names.REASON_TIMED_OUT,
    }
)
"""Reasons that somebody has to do something about."""
_QUIET: Final = frozenset(
    {
        names.REASON_WAITING_FOR_CAPACITY,
        names.REASON_BEHIND_OTHER,
        names.REASON_OTHER_GATE,
        names.REASON_WAITING_FOR_GANG_GROUP,
    }
)
"""Reasons that pass by themselves."""


class Fact(Word, frozen=True):
    """Something to be told by an Event."""

    reason: str
    message: str
    once: str
    """Facts of one reason with the same word here are one and the same, whatever their message."""
    warning: bool = False
    due: float = 0.0
    """Not to be told before, in seconds since the epoch: it may have passed by then."""
    at: float | None = None
    """When it came about, where that is known: old news is none."""
    on_group: bool = True
    pods: tuple[MemberSeen, ...] = ()
    """Pods that bear it, too."""


class Scene(Word, frozen=True):
    """A group at one moment, with what was made of it."""

    seen: GroupSeen
    counts: Counts
    standing: Standing
    ungated: tuple[MemberSeen, ...] = ()
    """By name."""
    moved: tuple[MemberSeen, ...] = ()
    """By name."""
    doubts: tuple[str, ...] = ()


def scene(seen: GroupSeen, counts: Counts, standing: Standing, doubts: Sequence[str] = ()) -> Scene:
    """A group with those of its members that are not as they should be."""
    ungated = _by_name([it for it in seen.members if it.ungated])
    moved = _by_name(_moved(seen.members))
    return Scene(
        seen=seen,
        counts=counts,
        standing=standing,
        ungated=tuple(ungated),
        moved=tuple(moved),
        doubts=tuple(doubts),
    )


def facts(told: Scene) -> tuple[Fact, ...]:
    """All that is true now and worth an Event; who tells them remembers which were told."""
    return tuple(fact for ask in _ASKED for fact in ask(told))


def _opened(told: Scene) -> Iterator[Fact]:
    record = told.seen.record
    if record is None or record.stage is Stage.CLOSED:
        return
    others = f" together with {len(record.gangs) - 1} more" if len(record.gangs) > 1 else ""
    text = f"opened{others} for {record.minimum} pods or more ({record.how})"
    yield _fact(told.seen, names.REASON_OPENED, text, once=str(record.generation), at=record.at)


def _satisfied(told: Scene) -> Iterator[Fact]:
    record = told.seen.record
    if record is None or record.satisfied is None:
        return
    took = max(0.0, record.satisfied - record.at)
    text = f"{record.minimum} pods are bound, {took:.1f} s after the group was opened"
    yield _fact(told.seen, names.REASON_SATISFIED, text, once=str(record.generation), at=record.satisfied)


def _rolled_back(told: Scene) -> Iterator[Fact]:
    record = told.seen.record
    if record is None or record.stage is Stage.OPEN or not record.why:
        return
    yield _fact(told.seen, names.REASON_ROLLED_BACK, record.why, once=str(record.generation), warning=True)


def _waits(told: Scene) -> Iterator[Fact]:
    """Why it waits, or went wrong: anew for each reason and each text, for the heralds limit how often."""
    if told.standing.reason in _LASTING:
        blamed = {pod for pod, _ in told.seen.group.blamed}
        guilty = [it for it in told.seen.members if it.name in blamed]
        bearers = tuple((guilty or _by_name(told.seen.members))[:HANDFUL])
        once = f"{told.seen.generation} {told.standing.message}"
        yield _fact(told.seen, told.standing.reason, told.standing.message, once=once, warning=True, bearers=bearers)
    if told.standing.reason in _QUIET:
        yield _fact(told.seen, told.standing.reason, told.standing.message, once=f"{told.seen.generation}")


def _gathering(told: Scene) -> Iterator[Fact]:
    if told.standing.reason != names.REASON_GATHERING or not told.seen.members:
        return
    since = min(it.created for it in told.seen.members)
    text = f"still gathering after 5 minutes: {told.standing.message}"
    yield _fact(
        told.seen, names.REASON_GATHERING, text, once=f"{told.seen.generation} {since}", due=since + GATHERING_PATIENCE
    )


def _too_few(told: Scene) -> Iterator[Fact]:
    """KEP-24: the pods of a group with too few of them are unschedulable, each is told so."""
    if told.seen.group.key.design is not Design.KEP_24 or told.standing.reason != names.REASON_GATHERING:
        return
    held = _by_name([it for it in told.seen.members if it.gated and not it.deleting])[:MOST_PODS]
    if not held:
        return
    due = max(it.created for it in held) + KEP24_PATIENCE
    text = f"its group {told.seen.group.key.path} has too few pods: {told.standing.message}"
    yield _on_pods(names.REASON_UNSCHEDULABLE, text, held, once=str(told.seen.generation), due=due)


def _nameless(told: Scene) -> Iterator[Fact]:
    """KEP-24: a pod that names a group by an empty value is to be created again."""
    if told.seen.group.key.design is not Design.KEP_24 or told.seen.group.key.name:
        return
    held = _by_name([it for it in told.seen.members if it.gated and not it.deleting])[:MOST_PODS]
    if held:
        text = f"the annotation {names.KEP24_NAME} is empty: create the pod again with the name of a PodGroup in it"
        yield _on_pods(names.REASON_UNSCHEDULABLE, text, held, once="nameless")


def _depleted(told: Scene) -> Iterator[Fact]:
    """KEP-24: some pods run, but the group cannot come to its minimum any more with those there are."""
    if told.seen.group.key.design is not Design.KEP_24 or told.counts.minimum == 0:
        return
    there = [it for it in told.seen.members if it.alive]
    running = sum(it.phase == "Running" for it in there)
    if running == 0 or len(there) >= told.counts.minimum:
        return
    succeeded = sum(it.phase == "Succeeded" for it in there)
    pending = len(there) - running - succeeded
    parts = f"{running} running, {pending} pending, {succeeded} succeeded"
    text = f"{len(there)} of {told.counts.minimum} pods are left: {parts}"
    yield _fact(told.seen, names.REASON_UNSCHEDULABLE, text, once=f"{told.seen.generation} {text}", warning=True)


def _strangers(told: Scene) -> Iterator[Fact]:
    """Members that were never held, and those that would like to be in another group by now."""
    group = f"{told.seen.group.key.path} ({told.seen.group.key.design})"
    if told.ungated:
        text = f"was bound without being held for its group {group}"
        yield _on_pods(names.REASON_UNGATED, text, told.ungated[:HANDFUL], once="")
    if told.moved:
        text = f"stays in the group {group} that it was created in, whatever it says by now"
        yield _on_pods(names.REASON_MEMBERSHIP_FIXED, text, told.moved[:HANDFUL], once="")


def _doubtful(told: Scene) -> Iterator[Fact]:
    """Its pods may run into something later on."""
    for doubt in told.doubts:
        yield _fact(told.seen, names.REASON_BARRIER_TOO_SHORT, doubt, once=doubt, warning=True)


_ASKED: Final[tuple[Callable[[Scene], Iterator[Fact]], ...]] = (
    _opened,
    _satisfied,
    _rolled_back,
    _waits,
    _gathering,
    _nameless,
    _too_few,
    _depleted,
    _strangers,
    _doubtful,
)


def _fact(
    seen: GroupSeen,
    reason: str,
    message: str,
    *,
    once: str,
    warning: bool = False,
    due: float = 0.0,
    at: float | None = None,
    bearers: tuple[MemberSeen, ...] = (),
) -> Fact:
    """On the group; where there is no PodGroup, on a pod of it."""
    if not bearers and seen.group.pod_group is None:
        bearers = (min(seen.members, key=lambda it: it.name),) if seen.members else ()
    return Fact(reason=reason, message=message, once=once, warning=warning, due=due, at=at, pods=bearers)


def _on_pods(reason: str, message: str, bearers: Sequence[MemberSeen], *, once: str, due: float = 0.0) -> Fact:
    return Fact(reason=reason, message=message, once=once, warning=True, due=due, on_group=False, pods=tuple(bearers))


def _by_name(members: Sequence[MemberSeen]) -> list[MemberSeen]:
    return sorted(members, key=lambda it: it.name)


def _moved(members: Sequence[MemberSeen]) -> list[MemberSeen]:
    """Those that say something else by now. Most have one and the same claim: it is looked into once."""
    known: dict[tuple[int, str], bool] = {}
    found = []
    for member in members:
        said = (id(member.claim), member.held)
        if said not in known:
            known[said] = member.moved
        if known[said]:
            found.append(member)
    return found
