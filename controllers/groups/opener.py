"""Opens groups: the one place where it is chosen who is next, on the leader only (G3).

The choice is made in memory, one group after the other, so that no two can be promised the same room. The decision is
a write on the group's home; those of different groups are under way side by side, and count as opened from the moment
they are chosen. What does not change is not looked at again: a pass costs what has changed, and a little for each
group that waits.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Final, Protocol

import structlog

from controllers.gates import LookAgain
from controllers.groups.records import Records
from controllers.ticks import ticks
from jobset_gate.groups import ganggroups, generation, opening
from jobset_gate.groups.candidates import Candidate, Check, Hold, Open, Opened, order
from jobset_gate.groups.certainty import Ground, Room
from jobset_gate.groups.model import DESIGN, POD_GROUPS, Key
from jobset_gate.groups.outlook import Domains, Outlook, outstanding
from jobset_gate.groups.record import How, Record, Share, Stage
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.standing import Standing
from jobset_gate.kube.errors import KubeError, NotLeader
from jobset_gate.settings import Groups, Native

DEBOUNCE: Final = 0.02
"""Seconds in which changes are gathered before a pass."""

SLICE: Final = 0.005
"""Seconds of work after which others get their turn."""

WRITES: Final = 32
"""Decisions that are being written at once."""

AGAIN: Final = 1.0
"""Seconds after which a group is looked at again whose decision could not be written."""

AT_LEAST_EVERY: Final = 5.0
"""Seconds between two passes while groups wait: time alone ends a back-off, and takes others out of the reckoning."""

_log = structlog.get_logger(__name__)


class View(Protocol):
    """What the opener needs of the index."""

    def observe(self, key: Key) -> GroupSeen | None:
        """All that is known of a group."""

    def keys(self) -> Iterable[Key]:
        """All groups."""

    def rooms(self) -> Sequence[Room]:
        """What is free on each node."""

    def bound(self, uid: str) -> bool:
        """Whether what this pod takes is reckoned with in `rooms`."""


class Opener:
    """`look(key)` for each group of which something has changed; `look(None)` for nodes and what is bound to them."""

    def __init__(
        self,
        *,
        index: View,
        outlook: Outlook,
        records: Records,
        settings: Groups,
        now: Callable[[], float],
        told: Callable[[Key], None],
        measured: Callable[[float], None] = lambda _: None,
        opened: Callable[[How, float], None] = lambda _, __: None,
    ) -> None:
        """`told` hears of each group of which something else is to be said than before; `measured`, in seconds, of the
        work of each pass; `opened` of each decision, and since when it could have been.
        """
        self._index, self._outlook, self._records, self._settings = index, outlook, records, settings
        # Groups that the scheduler places by itself need no room of ours.
        self._check = Check.OFF if settings.native is Native.ON else settings.capacity_check
        designs = {DESIGN[way] for way in settings.ways}
        self._apis = sorted({api for design in designs for api in POD_GROUPS[design]})
        self._now, self._told, self._measured, self._opened_by = now, told, measured, opened
        self._dirty: set[Key] = set()
        self._work = asyncio.Event()
        self._domains = Domains()
        self._rooms: Sequence[Room] = ()
        self._ground = Ground()
        self._words = opening.Words()
        self._swept = ticks()
        self._waiting: dict[Key, Candidate] = {}
        self._leads: dict[Key, Key] = {}
        self._listing: dict[Key, set[Key]] = {}
        self._lists: dict[Key, tuple[Key, ...]] = {}
        self._opened: dict[Key, tuple[Opened, ...]] = {}
        self._deciding: dict[Key, Open] = {}
        self._openings = 0
        """How often what is open was found different."""
        self._why: dict[Key, Hold | Standing] = {}
        self._writes = asyncio.Semaphore(WRITES)

    def look(self, key: Key | None) -> None:
        """Something has changed that matters to opening."""
        if key is not None:
            self._dirty.add(key)
        self._work.set()

    def why(self, key: Key) -> Hold | Standing | None:
        """What holds a group up; None: nothing that is known, or it is open."""
        return self._why.get(key)

    def since(self) -> list[float]:
        """Since when each group, or GangGroup, waits that is gathered and not open."""
        return [it.since for it in self._waiting.values()]

    async def run(self) -> None:
        """Until cancelled, or until this process no longer leads (NotLeader)."""
        await self._records.catch_up(self._apis)
        self._dirty.update(self._index.keys())
        self._work.set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wait()
                for verdict in await self._pass():
                    tasks.create_task(self._decide(verdict), name="decision of a group")

    # --- Passes ----------------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_LEAST_EVERY):
                await self._work.wait()
        await asyncio.sleep(DEBOUNCE)
        self._work.clear()

    async def _pass(self) -> list[Open]:
        """Looks at all that has changed, then at all that wait; gives those that are to be opened."""
        turns = _Turns()
        now = self._now()
        self._survey()
        self._sweep()
        while self._dirty:
            self._refresh(self._dirty.pop(), now)
            await turns.end()
        chosen = await self._choose(turns, now)
        if self._waiting or chosen:
            self._measured(turns.spent)
        return chosen

    async def _choose(self, turns: "_Turns", now: float) -> list[Open]:
        chosen: list[Open] = []
        if not self._waiting:
            self._words.forget_all()
            return chosen
        self._ground.renew(self._rooms)
        settings = self._settings
        opened = [it for several in self._opened.values() for it in several]
        opened += [_promised(it) for it in self._deciding.values()]
        going = opening.Pass(
            opened,
            self._ground,
            words=self._words,
            now=now,
            check=self._check,
            starved_since=now - settings.starvation_seconds,
            state=(self._ground.changes, self._openings),
        )
        for candidate in sorted(self._waiting.values(), key=order):
            if self._changed(candidate):
                continue  # while others had their turn: the next pass knows more, and comes at once
            verdict = going.consider(candidate)
            if isinstance(verdict, Open):
                self._promise(verdict)
                chosen.append(verdict)
            else:
                self._say(verdict)
            await turns.end()
        return chosen

    def _changed(self, candidate: Candidate) -> bool:
        return any(it.key in self._dirty for it in candidate.demands) or candidate.key not in self._waiting

    def _survey(self) -> None:
        """The nodes as they are now. If other nodes are there, or other labels, all domains are made anew."""
        before, self._rooms = self._rooms, self._index.rooms()
        if before is self._rooms:
            return
        same = len(before) == len(self._rooms) and all(
            old.node is new.node or old.node == new.node for old, new in zip(before, self._rooms, strict=True)
        )
        if not same:
            self._domains = Domains([it.node for it in self._rooms])
            self._dirty.update(self._index.keys())

    def _sweep(self) -> None:
        """Time alone changes some: those are looked at now and then."""
        if ticks() - self._swept >= AT_LEAST_EVERY:
            self._swept = ticks()
            self._dirty.update(self._why.keys() | self._opened.keys())

    def _refresh(self, key: Key, now: float) -> None:
        """One group is as it is now, and so are those whose GangGroup it is in, or says it is."""
        partners = self._lists.get(key, ())
        seen = self._index.observe(key)
        self._relist(key, seen)
        for each in {key, *partners, *self._lists.get(key, ()), *self._listing.get(key, ())}:
            self._judge(each, seen if each == key else self._index.observe(each), now)

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

    def _judge(self, key: Key, seen: GroupSeen | None, now: float) -> None:
        lead = self._leads.pop(key, None)
        if lead is not None:
            self._waiting.pop(lead, None)
        before = self._opened.pop(key, ())
        still = self._outstanding(seen, now)
        if still:
            self._opened[key] = still
        self._openings += before != still
        if seen is None:
            self._why.pop(key, None)
            return
        answer = self._outlook.of(seen, self._domains, now)
        if isinstance(answer, Candidate):
            if answer.key not in self._deciding:
                self._waiting[answer.key] = answer
                self._leads |= dict.fromkeys((it.key for it in answer.demands), answer.key)
        else:
            self._tell(key, answer)

    def _outstanding(self, seen: GroupSeen | None, now: float) -> tuple[Opened, ...]:
        if seen is None or not self._checks:
            return ()
        return outstanding(seen, self._index.bound, self._domains, now)

    @property
    def _checks(self) -> bool:
        return self._check is not Check.OFF

    def _say(self, verdict: Hold) -> None:
        for demand in verdict.candidate.demands:
            self._tell(demand.key, verdict)

    def _tell(self, key: Key, why: Hold | Standing | None) -> None:
        before = self._why.pop(key, None)
        if why is not None:
            self._why[key] = why
        if _words(before) != _words(why):
            self._told(key)

    # --- Decisions -------------------------------------------------------------------------------------------------

    def _promise(self, verdict: Open) -> None:
        self._deciding[verdict.candidate.key] = verdict
        self._openings += 1
        self._waiting.pop(verdict.candidate.key, None)

    async def _decide(self, verdict: Open) -> None:
        """Writes a decision. Whatever comes of it, the group is looked at again."""
        lead, keys = verdict.candidate.key, [it.key for it in verdict.candidate.demands]
        try:
            async with self._writes:
                await self._write(verdict)
        except LookAgain as lost:
            _log.debug("decision not taken", group=lead.path, why=str(lost))
        except NotLeader:
            raise
        except KubeError as error:
            _log.error("decision not written", group=lead.path, error=str(error))
            await asyncio.sleep(AGAIN)
        finally:
            del self._deciding[lead]
            self._openings += 1
            for key in keys:
                self.look(key)

    async def _write(self, verdict: Open) -> None:
        keys = [it.key for it in verdict.candidate.demands]
        seen = [it for key in keys if (it := self._index.observe(key)) is not None]
        if len(seen) < len(keys) or any(it.record is not None and it.record.stage is not Stage.CLOSED for it in seen):
            raise LookAgain(f"group {keys[0].path} has changed")
        record = decision(seen, self._how(verdict), self._now())
        await self._records.write(seen[0], record)
        _log.info("group opened", group=keys[0].path, generation=record.generation, how=record.how.value)
        self._opened_by(record.how, verdict.candidate.since)
        for key in keys:
            self._tell(key, None)
            self._told(key)

    def _how(self, verdict: Open) -> How:
        if self._settings.native is Native.ON:
            return How.NATIVE
        if not self._checks:
            return How.OFF
        return How.FIT if verdict.proven else How.PROBE


def decision(seen: list[GroupSeen], how: How, now: float) -> Record:
    """The record that opens these gangs together; it stands on the home of the first."""
    groups = [it.group for it in seen]
    shares = [_share(it) for it in seen]
    before = [it.record for it in seen if it.record is not None]
    return Record(
        generation=generation.upcoming(seen[0]),
        stage=Stage.OPEN,
        how=how,
        at=now,
        gangs=tuple((it.group.key, generation.upcoming(it)) for it in seen),
        minimum=shares[0].minimum,
        wait=max(it.wait for it in groups),
        mode=shares[0].mode,
        many=shares[0].many,
        newest=shares[0].newest,
        shares=tuple(shares) if len(shares) > 1 else (),
        rolled_back=max((it.rolled_back for it in before), default=0),
    )


def _share(seen: GroupSeen) -> Share:
    members = generation.waiting(seen)
    return Share(
        minimum=seen.group.minimum or 0,
        mode=seen.group.mode,
        many=len(members),
        newest=max((it.created for it in members), default=0.0),
    )


def _promised(verdict: Open) -> Opened:
    """What was chosen and is being written counts as open."""
    it = verdict.candidate
    return Opened(demands=it.demands, domain=it.domain, proven=verdict.proven)


def _words(why: Hold | Standing | None) -> tuple[str, str] | None:
    return None if why is None else (why.reason, why.message)


class _Turns:
    """Lets others have their turn after every slice of work, and counts the work."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._since = perf_counter()

    async def end(self) -> None:
        """One piece of work is done."""
        now = perf_counter()
        if now - self._since < SLICE:
            return
        self.spent += now - self._since
        await asyncio.sleep(0)
        self._since = perf_counter()
