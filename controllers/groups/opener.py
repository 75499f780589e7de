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

from controllers.groups.decisions import Decisions
from controllers.groups.lobby import AT_LEAST_EVERY, Lobby, View
from controllers.groups.records import Records
from controllers.ticks import ticks
from jobset_gate.groups import opening
from jobset_gate.groups.candidates import Candidate, Check, Hold, Open, order
from jobset_gate.groups.certainty import Ground
from jobset_gate.groups.model import DESIGN, POD_GROUPS, Key
from jobset_gate.groups.outlook import Outlook
from jobset_gate.groups.record import How
from jobset_gate.groups.standing import Standing
from jobset_gate.groups.words import Prospects, Words
from jobset_gate.settings import Groups, Native

DEBOUNCE: Final = 0.02
"""Seconds in which changes are gathered before a pass."""

REST: Final = 4
"""Between two passes, in times of what the first has taken: where many groups wait or are open that is long, and one
for many changes costs no more than for one."""

LONGEST_REST: Final = 0.2
"""Seconds."""

SLICE: Final = 0.005
"""Seconds of work after which others get their turn."""


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
        self._now, self._measured, self._told = now, measured, told
        self._lobby = Lobby(index, outlook, checks=self._check is not Check.OFF, told=told)
        self._work, self._runs = asyncio.Event(), False
        self._rests_until = 0.0
        self._ends: set[Key] = set()
        self._ground = Ground()
        self._words, self._prospects = Words(), Prospects()
        self._decisions = Decisions(
            index, records, settings, self._check, self._lobby, now=now, told=told, opened=opened, look=self.look
        )

    def look(self, key: Key | None) -> None:
        """Something has changed that matters to opening; on a standby it is all looked at later."""
        if not self._runs:
            return
        if key is not None:
            self._lobby.dirty.add(key)
        if key is not None or self._lobby.waiting:  # nodes are looked at when somebody wants room
            self._work.set()

    def placed(self, key: Key) -> None:
        """Of an open group some pod has come on: it needs no more room than before."""
        if self._runs and self._check is not Check.OFF:
            self._lobby.resting.add(key)
        if self._lobby.waiting:
            self._work.set()

    def why(self, key: Key) -> Hold | Standing | None:
        """What holds a group up; None: nothing that is known, or it is open."""
        return self._lobby.why(key)

    def makes_way(self, key: Key) -> bool:
        """Whether a group of higher priority waits for the place that this one has without proof."""
        return key in self._ends

    def since(self) -> list[float]:
        """Since when each group, or GangGroup, waits that is gathered and not open."""
        return [it.since for it in self._lobby.waiting.values() if not it.backs_off]

    async def run(self) -> None:
        """Until cancelled, or until this process no longer leads (NotLeader)."""
        await self._records.catch_up(self._apis)
        self._runs = True
        self._lobby.look_at_all()
        self._work.set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wait()
                for verdict in await self._pass():
                    tasks.create_task(self._decisions.write(verdict), name="decision of a group")

    # --- Passes ----------------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_LEAST_EVERY):
                await self._work.wait()
        await asyncio.sleep(max(DEBOUNCE, self._rests_until - ticks()))
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
            self._ends.clear()
            return []
        chosen = await self._choose(turns, now)
        self._measured(turns.spent)
        self._rests_until = ticks() + min(LONGEST_REST, REST * turns.spent)
        return chosen

    async def _refresh(self, turns: "_Turns", now: float) -> None:
        while self._lobby.dirty:
            for key in self._lobby.concerned():
                try:
                    self._lobby.judge(key, now)
                except Exception as error:  # noqa: BLE001 - as in `leave_out`
                    self._lobby.leave_out(key, error)
                await turns.end()

    async def _choose(self, turns: "_Turns", now: float) -> list[Open]:
        chosen: list[Open] = []
        ends: set[Key] = set()
        going, roughly = self._begin(now), bool(self._lobby.resting)
        for candidate in sorted(self._lobby.waiting.values(), key=order):
            if not self._is_next(candidate):
                continue  # while others had their turn: the next pass knows more, and comes at once
            if self._decisions.held_up(candidate.key):
                self._say(candidate, self._decisions.why(candidate.key))
                continue
            verdict = self._verdict(going, candidate)
            if roughly and verdict is not None and self._doubts(verdict):
                # Whoever has come on since the last look may have left more room than was reckoned with.
                self._lobby.dirty |= self._lobby.resting
                await self._refresh(turns, now)
                going, roughly = self._begin(now), False
                if not self._is_next(candidate):
                    continue
                verdict = self._verdict(going, candidate)
            if isinstance(verdict, Open):
                self._decisions.take(verdict)
                chosen.append(verdict)
            elif verdict is not None:
                ends.update(verdict.ends)
                self._say(candidate, verdict)
            await turns.end()
        new, self._ends = ends - self._ends, ends
        for key in new:
            self._told(key)
        return chosen

    def _verdict(self, going: opening.Pass, candidate: Candidate) -> Open | Hold | None:
        try:
            return going.consider(candidate)
        except Exception as error:  # noqa: BLE001 - as in `leave_out`
            for demand in candidate.demands:
                self._lobby.leave_out(demand.key, error)
            return None

    def _say(self, candidate: Candidate, why: Hold | Standing | None) -> None:
        for demand in candidate.demands:
            self._lobby.say(demand.key, why)

    def _is_next(self, candidate: Candidate) -> bool:
        return not self._decisions.under_way(candidate.key) and self._lobby.is_current(candidate)

    def _doubts(self, verdict: Open | Hold) -> bool:
        return isinstance(verdict, Hold) or not (verdict.proven or self._check is Check.OFF)

    def _begin(self, now: float) -> opening.Pass:
        """A pass over the rooms as they are, and all that is to be placed in them.

        Both at one moment: a pod that is reckoned as placed has to be missing in the rooms.
        """
        self._lobby.survey()
        self._ground.renew(self._lobby.rooms)
        opened = [it for several in self._lobby.opened.values() for it in several]
        opened += self._decisions.promised
        return opening.Pass(
            opened,
            self._ground,
            words=self._words,
            prospects=self._prospects,
            now=now,
            avoided=self._index.avoided,
            check=self._check,
            starvation_seconds=self._settings.starvation_seconds,
            state=(self._ground.changes, self._lobby.changes, self._decisions.changes),
        )


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
