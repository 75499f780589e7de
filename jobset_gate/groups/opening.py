"""Which of the gathered groups are opened now: in order, as far as there is room, one doubtful one per domain (G3)."""

from collections.abc import Iterable, Sequence

from jobset_gate import names
from jobset_gate.groups import fit
from jobset_gate.groups.candidates import Candidate, Check, Hold, Open, Opened, order
from jobset_gate.groups.certainty import Ground, Room, Shape, alike
from jobset_gate.groups.model import Key


def consider(
    candidates: Sequence[Candidate],
    opened: Sequence[Opened],
    rooms: Sequence[Room],
    *,
    now: float,
    check: Check = Check.FIT,
    starvation_seconds: float,
) -> list[Open | Hold]:
    """What becomes of each, in order: priority, then age, then name.

    `rooms` are what is allocatable less what is bound. What has been opened is reckoned with as if it were still to
    be placed, since the scheduler need not have put it where it was reckoned to go.
    """
    going = Pass(opened, Ground(rooms), check=check, starved_since=now - starvation_seconds)
    return [going.consider(it) for it in sorted(candidates, key=order)]


class _Yard:
    """What has become of the groups of one domain so far."""

    def __init__(self) -> None:
        self.held: Candidate | None = None
        self.starved: Candidate | None = None
        self.probing: Key | None = None
        self.sure: list[Shape] = []
        self.unsure: list[Shape] = []

    def opened(self, group: Opened) -> None:
        """Its pods take up room, or may."""
        shapes = [shape for demand in group.demands for shape in demand.shapes]
        if group.proven and not group.placed:
            self.sure = alike([*self.sure, *shapes])
            return
        self.unsure = alike([*self.unsure, *shapes])
        if group.placed:
            return
        self.probing = self.probing or group.demands[0].key


class Pass:
    """One pass over the groups that wait. What is free only shrinks while it lasts."""

    def __init__(self, opened: Iterable[Opened], ground: Ground, *, check: Check, starved_since: float) -> None:
        self._ground = ground
        self._check = check
        self._starved_since = starved_since
        self._yards: dict[frozenset[str], _Yard] = {}
        self._doubtful: dict[object, str] = {}
        for group in opened:
            self._yards.setdefault(group.domain, _Yard()).opened(group)

    def consider(self, candidate: Candidate) -> Open | Hold:
        """What becomes of the next in order."""
        verdict = self._verdict(candidate)
        yard = self._yards.setdefault(candidate.domain, _Yard())
        if isinstance(verdict, Open):
            yard.opened(Opened(demands=candidate.demands, domain=candidate.domain, proven=verdict.proven))
            return verdict
        yard.held = yard.held or candidate
        if candidate.since <= self._starved_since:
            yard.starved = yard.starved or candidate
        return verdict

    def _verdict(self, candidate: Candidate) -> Open | Hold:
        near = self._near(candidate.domain)
        starved = _first(it.starved for it in near)
        if starved is not None:
            return _behind(candidate, starved.key, "which has waited too long to be passed")
        if self._check is Check.OFF:
            return Open(candidate=candidate, proven=False)
        proven, lacks = self._room(candidate, near)
        if proven:
            return Open(candidate=candidate, proven=True)
        if lacks and self._check is Check.FIT:
            return Hold(candidate=candidate, reason=names.REASON_WAITING_FOR_CAPACITY, message=lacks)
        return _probe(candidate, near, _doubt(candidate, lacks))

    def _near(self, domain: frozenset[str]) -> list[_Yard]:
        """The yards that share nodes with a domain. Most groups have one and the same, so there are few."""
        return [yard for it, yard in self._yards.items() if it is domain or not it.isdisjoint(domain)]

    def _room(self, candidate: Candidate, near: Sequence[_Yard]) -> tuple[bool, str]:
        """Whether the group is known to have room, and what it lacks if it has none.

        It has to fit with those that were sure of theirs, and beside those that were not and take what they find.
        """
        like = _likeness(candidate)
        if like in self._doubtful:  # then it still is: there is no more room than before
            return False, self._doubtful[like]
        sure = [shape for it in near for shape in it.sure]
        unsure = [shape for it in near for shape in it.unsure]
        shapes = [shape for it in candidate.demands for shape in it.shapes]
        plain = not candidate.unmodelled and not any(it.resources for it in candidate.demands)
        if plain and self._ground.certain([*sure, *shapes], unsure):
            return True, ""  # without placing anybody, which takes longer
        answer = fit.check(candidate.demands, self._ground, first=sure, beside=unsure)
        proven = answer.fits and answer.certain and not candidate.unmodelled
        if not proven:
            self._doubtful[like] = answer.lacks
        return proven, answer.lacks


def _probe(candidate: Candidate, near: Sequence[_Yard], doubt: str) -> Open | Hold:
    """The first in order of a domain may be opened though nothing proves that it fits, one at a time."""
    earlier = _first(it.held for it in near)
    if earlier is not None:
        return _behind(candidate, earlier.key, doubt)
    probing = next((it.probing for it in near if it.probing is not None), None)
    if probing is not None:
        return _behind(candidate, probing, f"which is being placed; {doubt}")
    return Open(candidate=candidate, proven=False)


def _first(held: Iterable[Candidate | None]) -> Candidate | None:
    return min((it for it in held if it is not None), key=order, default=None)


def _likeness(candidate: Candidate) -> object:
    """The same for groups that need the same room: what one of them lacks, the others lack too."""
    return candidate.unmodelled, tuple(
        (it.minimum, tuple(sorted(it.resources.items())), tuple((shape.likeness, shape.count) for shape in it.shapes))
        for it in candidate.demands
    )


def _behind(candidate: Candidate, other: Key, why: str) -> Hold:
    return Hold(candidate=candidate, reason=names.REASON_BEHIND_OTHER, message=f"behind {other.path}, {why}")


def _doubt(candidate: Candidate, lacks: str) -> str:
    if lacks:
        return lacks
    if candidate.unmodelled:
        return f"{', '.join(candidate.unmodelled)} is not reckoned with"
    return "its room depends on where the scheduler puts the others"
