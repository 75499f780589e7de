"""Opens groups: the one place where it is chosen who is next, on the leader only (G3).

The choice is made in memory, one group after the other, so that no two can be promised the same room. The decision is
a write on the group's home; those of different groups are under way side by side, and count as opened from the moment
they are chosen. What does not change is not looked at again: a pass costs what has changed, and a little for each
group that waits.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Final

import structlog

from controllers.gates import LookAgain
from controllers.groups.lobby import AT_LEAST_EVERY, Lobby, View
from controllers.groups.records import InDoubt, Records
from controllers.groups.setbacks import EXCUSED, Setbacks
from jobset_gate.groups import opening
from jobset_gate.groups.candidates import Candidate, Check, Hold, Open, Opened, order
from jobset_gate.groups.certainty import Ground
from jobset_gate.groups.decision import decision
from jobset_gate.groups.model import DESIGN, POD_GROUPS, Key
from jobset_gate.groups.outlook import Outlook
from jobset_gate.groups.record import How
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
"""Seconds after which the API is asked again what stands, when nobody knows whether a decision was written."""

_log = structlog.get_logger(__name__)


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
        self._index, self._records, self._settings = index, records, settings
        # Groups that the scheduler places by itself need no room of ours.
        self._check = Check.OFF if settings.native is Native.ON else settings.capacity_check
        designs = {DESIGN[way] for way in settings.ways}
        self._apis = sorted({api for design in designs for api in POD_GROUPS[design]})
        self._now, self._told, self._measured, self._opened = now, told, measured, opened
        self._lobby = Lobby(index, outlook, checks=self._check is not Check.OFF, told=told)
        self._work = asyncio.Event()
        self._ground = Ground()
        self._words = opening.Words()
        self._deciding: dict[Key, Open] = {}
        self._setbacks = Setbacks()
        self._choices = 0
        """How often what is being decided was found different."""
        self._writes = asyncio.Semaphore(WRITES)

    def look(self, key: Key | None) -> None:
        """Something has changed that matters to opening."""
        if key is not None:
            self._lobby.dirty.add(key)
        self._work.set()

    def placed(self, key: Key) -> None:
        """Of an open group some pod has come on: it needs no more room than before."""
        if self._check is not Check.OFF:
            self._lobby.resting.add(key)
        if self._lobby.waiting:
            self._work.set()

    def why(self, key: Key) -> Hold | Standing | None:
        """What holds a group up; None: nothing that is known, or it is open."""
        return self._lobby.why(key)

    def since(self) -> list[float]:
        """Since when each group, or GangGroup, waits that is gathered and not open."""
        return [it.since for it in self._lobby.waiting.values()]

    async def run(self) -> None:
        """Until cancelled, or until this process no longer leads (NotLeader)."""
        await self._records.catch_up(self._apis)
        self._lobby.look_at_all()
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
        turns, now, lobby = _Turns(), self._now(), self._lobby
        lobby.sweep()
        if lobby.dirty or lobby.waiting:
            lobby.survey()
        await self._refresh(turns, now)
        if not lobby.waiting:
            self._words.forget_all()
            return []
        chosen = await self._choose(turns, now)
        self._measured(turns.spent)
        return chosen

    async def _refresh(self, turns: "_Turns", now: float) -> None:
        while self._lobby.dirty:
            self._lobby.refresh(self._lobby.dirty.pop(), now)
            await turns.end()

    async def _choose(self, turns: "_Turns", now: float) -> list[Open]:
        chosen: list[Open] = []
        going, roughly = self._begin(now), bool(self._lobby.resting)
        for candidate in sorted(self._lobby.waiting.values(), key=order):
            if not self._is_next(candidate):
                continue  # while others had their turn: the next pass knows more, and comes at once
            if self._setbacks.holds(candidate.key):
                self._say(candidate, self._setbacks.told(candidate.key))
                continue
            verdict = going.consider(candidate)
            if roughly and self._doubts(verdict):
                # Whoever has come on since the last look may have left more room than was reckoned with.
                self._lobby.dirty |= self._lobby.resting
                await self._refresh(turns, now)
                going, roughly = self._begin(now), False
                if not self._is_next(candidate):
                    continue
                verdict = going.consider(candidate)
            if isinstance(verdict, Open):
                self._deciding[candidate.key] = verdict
                self._choices += 1
                chosen.append(verdict)
            else:
                self._say(candidate, verdict)
            await turns.end()
        return chosen

    def _say(self, candidate: Candidate, why: Hold | Standing | None) -> None:
        for demand in candidate.demands:
            self._lobby.say(demand.key, why)

    def _is_next(self, candidate: Candidate) -> bool:
        return candidate.key not in self._deciding and self._lobby.is_current(candidate)

    def _doubts(self, verdict: Open | Hold) -> bool:
        return isinstance(verdict, Hold) or not (verdict.proven or self._check is Check.OFF)

    def _begin(self, now: float) -> opening.Pass:
        """A pass over the rooms as they are, and all that is to be placed in them.

        Both at one moment: a pod that is reckoned as placed has to be missing in the rooms.
        """
        self._lobby.survey()
        self._ground.renew(self._lobby.rooms)
        opened = [it for several in self._lobby.opened.values() for it in several]
        opened += [_promised(it) for it in self._deciding.values()]
        return opening.Pass(
            opened,
            self._ground,
            words=self._words,
            now=now,
            check=self._check,
            starved_since=now - self._settings.starvation_seconds,
            state=(self._ground.changes, self._lobby.changes, self._choices),
        )

    # --- Decisions -------------------------------------------------------------------------------------------------

    async def _decide(self, verdict: Open) -> None:
        """Writes a decision. Whatever comes of it, the group is looked at again."""
        lead = verdict.candidate.key
        try:
            async with self._writes:
                await self._write(verdict)
        except LookAgain as lost:
            _log.debug("decision not taken", group=lead.path, why=str(lost))
            self._set_back(lead, lost, excused=EXCUSED)
        except NotLeader:
            raise
        except InDoubt as doubt:
            await self._clear_up(doubt)
        except KubeError as error:
            _log.error("decision not written", group=lead.path, error=str(error))
            self._set_back(lead, error)
        else:
            self._setbacks.forget(lead)
        finally:
            del self._deciding[lead]
            self._choices += 1
            for demand in verdict.candidate.demands:
                self.look(demand.key)

    def _set_back(self, lead: Key, why: Exception, *, excused: int = 0) -> None:
        pause = self._setbacks.note(lead, str(why), excused=excused)
        if pause > 0:
            asyncio.get_running_loop().call_later(pause, self.look, lead)

    async def _clear_up(self, doubt: InDoubt) -> None:
        """Perhaps it was written: its room stays promised until the API has said."""
        while True:
            _log.error("decision in doubt", group=doubt.key.path, error=str(doubt))
            await asyncio.sleep(AGAIN)
            try:
                await self._records.look(doubt)
            except NotLeader:
                raise
            except KubeError as error:
                _log.debug("record not read", group=doubt.key.path, error=str(error))
            else:
                return

    async def _write(self, verdict: Open) -> None:
        now, keys = self._now(), [it.key for it in verdict.candidate.demands]
        still = self._lobby.candidate(keys[0], now)
        if still is None or [it.key for it in still.demands] != keys:
            raise LookAgain(f"group {keys[0].path} has changed")
        seen = [it for key in keys if (it := self._index.observe(key)) is not None]
        record = decision(seen, self._how(verdict), now)
        await self._records.write(seen[0], record)
        _log.info("group opened", group=keys[0].path, generation=record.generation, how=record.how.value)
        self._opened(record.how, verdict.candidate.since)
        for key in keys:
            self._lobby.say(key, None)
            self._told(key)

    def _how(self, verdict: Open) -> How:
        if self._settings.native is Native.ON:
            return How.NATIVE
        if self._check is Check.OFF:
            return How.OFF
        return How.FIT if verdict.proven else How.PROBE


def _promised(verdict: Open) -> Opened:
    """What was chosen and is being written counts as open."""
    it = verdict.candidate
    return Opened(demands=it.demands, domain=it.domain, proven=verdict.proven)


class _Turns:
    """Lets others have their turn after every slice of work, and counts the work."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since = perf_counter()

    @property
    def spent(self) -> float:
        """Seconds of work."""
        return self._before + perf_counter() - self._since

    async def end(self) -> None:
        """One piece of work is done."""
        now = perf_counter()
        if now - self._since < SLICE:
            return
        self._before += now - self._since
        await asyncio.sleep(0)
        self._since = perf_counter()
