"""Who waits to be opened, and what is open and not placed yet: kept up to date group by group, as each changes (G3).

What does not change is not looked at again, so that a thousand groups cost nothing while one of them changes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import structlog

from controllers.ticks import ticks
from jobset_gate import names
from jobset_gate.groups import ganggroups
from jobset_gate.groups.anti_affinity import Mark
from jobset_gate.groups.candidates import Candidate, Hold, Opened
from jobset_gate.groups.certainty import Room, Shape
from jobset_gate.groups.domains import Domains
from jobset_gate.groups.model import Key
from jobset_gate.groups.outlook import Outlook, Together, domains
from jobset_gate.groups.outstanding import absent, is_being_placed, living, outstanding
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.standing import Standing

AT_LEAST_EVERY: Final = 5.0
"""Seconds between two looks at what time alone changes: it ends back-offs, and takes others out of the reckoning."""


MOST_SAID: Final = 500
"""Characters of what went wrong in us."""

_log = structlog.get_logger(__name__)


class View(Protocol):
    """What the opener needs of the index."""

    def observe(self, key: Key) -> GroupSeen | None:
        """All that is known of a group."""

    def keys(self) -> Iterable[Key]:
        """All groups."""

    def rooms(self) -> Sequence[Room]:
        """What is free on each node."""

    def avoided(self, marks: Iterable[Mark]) -> frozenset[str]:
        """The nodes from which bound pods keep one of such pods away."""

    def bound(self, uid: str) -> bool:
        """Whether what this pod takes is reckoned with in `rooms`."""


class Lobby:
    """`dirty` are the groups to be looked at, `waiting` those that may be opened, by the first gang of each GangGroup,
    and `opened` what is to be reckoned with.
    """

    def __init__(
        self,
        index: View,
        outlook: Outlook,
        *,
        checks: bool,
        told: Callable[[Key], None],
    ) -> None:
        """`checks`: whether room is looked at; `told` hears of each group of which something else is to be said."""
        self._index, self._outlook, self._checks, self._told = index, outlook, checks, told
        self.dirty: set[Key] = set()
        self.resting: set[Key] = set()
        """Open groups that need no more room than they are reckoned with, and perhaps less: enough to know that as long
        as nobody is held up."""
        self.waiting: dict[Key, Candidate] = {}
        self.opened: dict[Key, tuple[Opened, ...]] = {}
        self.changes = 0
        """How often what is open was found different."""
        self.rooms: Sequence[Room] = ()
        self._domains = Domains()
        self._swept = ticks()
        self._leads: dict[Key, Key] = {}
        self._listing: dict[Key, set[Key]] = {}
        self._lists: dict[Key, tuple[Key, ...]] = {}
        self._why: dict[Key, Hold | Standing] = {}
        self._together: Together = {}
        """What was found of GangGroups since `concerned` was asked the last time."""
        self._shapes: dict[Key, tuple[int, tuple[Shape, ...]]] = {}
        """Generation, and its pods when there were most of them, of groups that are being placed."""

    def why(self, key: Key) -> Hold | Standing | None:
        """What holds a group up; None: nothing that is known, or it is open."""
        return self._why.get(key)

    def say(self, key: Key, why: Hold | Standing | None) -> None:
        """This holds it up by now."""
        before = self._why.pop(key, None)
        if why is not None:
            self._why[key] = why
        if _words(before) != _words(why):
            self._told(key)

    def is_current(self, candidate: Candidate) -> bool:
        """Whether nothing has changed in its gangs since it was judged."""
        return candidate.key in self.waiting and not any(it.key in self.dirty for it in candidate.demands)

    def candidate(self, key: Key, now: float) -> Candidate | None:
        """The group, or GangGroup, as it is at this very moment; None: it may not be opened any more."""
        seen = self._index.observe(key)
        answer = None if seen is None else self._outlook.of(seen, self._domains, now)
        return answer if isinstance(answer, Candidate) else None

    def look_at_all(self) -> None:
        """Nothing is known yet."""
        self.dirty.update(self._index.keys())

    def survey(self) -> None:
        """The nodes as they are now. If other nodes are there, or other labels, all domains are made anew."""
        before, self.rooms = self.rooms, self._index.rooms()
        if before is self.rooms:
            return
        same = len(before) == len(self.rooms) and all(
            (old.node is new.node or old.node == new.node) and (old.whole is new.whole or old.whole == new.whole)
            for old, new in zip(before, self.rooms, strict=True)
        )
        if not same:
            self._domains = domains(self.rooms)
            self.dirty.update(self._index.keys())

    def sweep(self) -> None:
        """Time alone changes some: those are looked at now and then."""
        if ticks() - self._swept >= AT_LEAST_EVERY:
            self._swept = ticks()
            self.dirty.update(self._why)
            self.resting.update(self.opened)
            kept = self._listing.keys() | self.opened.keys()
            self._shapes = {key: known for key, known in self._shapes.items() if key in kept}

    def concerned(self) -> set[Key]:
        """Who is to be judged, since something has changed: who has, and those whose GangGroup they are in, or say they
        are. None of them is dirty any more.
        """
        changed, self.dirty = self.dirty, set()
        self.resting -= changed
        self._together = {}
        found = set(changed)
        for key in changed:
            found.update(self._lists.get(key, ()))
            try:
                self._relist(key, self._index.observe(key))
            except Exception as error:  # noqa: BLE001 - as in `leave_out`
                self.leave_out(key, error)
            found.update(self._lists.get(key, ()), self._listing.get(key, ()))
        return found

    def leave_out(self, key: Key, error: Exception) -> None:
        """A fault of ours that shows on this group must not hold up all others: it waits, and is tried now and then."""
        self._leave(key)
        message = f"cannot be judged, which is a fault of jobset-gate's own that its log has more of: {error!r}"
        told = Standing(reason=names.REASON_INVALID_GROUP, message=message[:MOST_SAID])
        if _words(self._why.get(key)) != _words(told):
            _log.error("group not judged", group=key.path, error=repr(error), exc_info=error)
        self.say(key, told)

    def judge(self, key: Key, now: float) -> None:
        """One group is as it is now."""
        seen = self._index.observe(key)
        self._reckon(key, seen, now)
        self._leave(key)
        if seen is None:
            self._why.pop(key, None)
            return
        answer = self._outlook.of(seen, self._domains, now, self._together)
        if isinstance(answer, Candidate):
            self.waiting[answer.key] = answer
            self._leads |= dict.fromkeys((it.key for it in answer.demands), answer.key)
        else:
            self.say(key, answer)

    def _leave(self, key: Key) -> None:
        lead = self._leads.pop(key, None)
        if lead is not None:
            self.waiting.pop(lead, None)

    def _relist(self, key: Key, seen: GroupSeen | None) -> None:
        """Who lists whom, so that a list that has changed is noticed by all who are in it."""
        for other in self._lists.pop(key, ()):
            self._listing[other].discard(key)
            if not self._listing[other]:
                del self._listing[other]
        if seen is None or not seen.group.gangs:
            return
        self._lists[key] = tuple(ganggroups.key(it) for it in seen.group.gangs)
        for other in self._lists[key]:
            self._listing.setdefault(other, set()).add(key)

    def _reckon(self, key: Key, seen: GroupSeen | None, now: float) -> None:
        """What of it others have to leave room for."""
        still = self._outstanding(seen, now)
        before = self.opened.pop(key, ())
        if still:
            self.opened[key] = still
        self.changes += before != still

    def _outstanding(self, seen: GroupSeen | None, now: float) -> tuple[Opened, ...]:
        if seen is None or not self._checks:
            return ()
        self._remember(seen)
        here = outstanding(seen, self._index.bound, self._domains, now, self._before(seen.group.key))
        return (*here, *absent(seen, self._index.observe, self._before, self._domains))

    def _before(self, key: Key) -> tuple[Shape, ...]:
        return self._shapes[key][1] if key in self._shapes else ()

    def _remember(self, seen: GroupSeen) -> None:
        record, key = seen.record, seen.group.key
        if record is None or not is_being_placed(record):
            self._shapes.pop(key, None)
            return
        there = living(seen, self._domains)
        known = self._shapes.get(key, (0, ()))
        if known[0] != record.generation or _many(there) >= _many(known[1]):
            self._shapes[key] = record.generation, there


def _many(shapes: Iterable[Shape]) -> int:
    return sum(it.count for it in shapes)


def _words(why: Hold | Standing | None) -> tuple[str, str] | None:
    return None if why is None else (why.reason, why.message)
