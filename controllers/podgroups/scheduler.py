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

from controllers.podgroups.inflight import InflightAdmissions
from controllers.podgroups.pending import RESYNC_SECONDS, PendingQueue, PodGroupReader
from controllers.podgroups.record_store import RecordStore
from jobset_gate.podgroups import cycle
from jobset_gate.podgroups.candidate import Admit, Candidate, CapacityCheck, Hold, admission_order
from jobset_gate.podgroups.cycle_memos import FitMemo, MessageMemo
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.fit.guaranteed import NodeSnapshot
from jobset_gate.podgroups.model import FLAVOR_OF, POD_GROUP_APIS, PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode
from jobset_gate.runtime.clock import monotonic
from jobset_gate.settings import Groups, Native

DEBOUNCE_SECONDS: Final = 0.02
"""Seconds in which changes are gathered before a pass."""

REST_FACTOR: Final = 4
"""Between two passes, in times of what the first has taken: where many groups wait or are open that is long, and one
for many changes costs no more than for one."""

MAX_REST_SECONDS: Final = 0.2
"""Seconds."""

SLICE_SECONDS: Final = 0.005
"""Seconds of work after which others get their turn."""


class PodGroupScheduler:
    """`look(key)` for each group of which something has changed; `look(None)` for nodes and what is bound to them."""

    def __init__(
        self,
        *,
        index: PodGroupReader,
        outlook: GroupEvaluator,
        records: RecordStore,
        settings: Groups,
        now: Callable[[], float],
        told: Callable[[PodGroupKey], None],
        measured: Callable[[float], None] = lambda _: None,
        opened: Callable[[AdmissionMode, float], None] = lambda _, __: None,
    ) -> None:
        """`told` hears of each group of which something else is to be said than before; `measured`, in seconds, of the
        work of each pass; `opened` of each decision, and since when it could have been.
        """
        self._index, self._records, self._settings = index, records, settings
        # Groups that the scheduler places by itself need no room of ours.
        self._check = CapacityCheck.OFF if settings.native is Native.ON else settings.capacity_check
        designs = {FLAVOR_OF[way] for way in settings.ways}
        self._apis = sorted({api for design in designs for api in POD_GROUP_APIS[design]})
        self._now, self._measured, self._told = now, measured, told
        self._lobby = PendingQueue(index, outlook, checks=self._check is not CapacityCheck.OFF, told=told)
        self._work, self._runs = asyncio.Event(), False
        self._rests_until = 0.0
        self._ends: set[PodGroupKey] = set()
        self._ground = NodeSnapshot()
        self._words, self._prospects = MessageMemo(), FitMemo()
        self._decisions = InflightAdmissions(
            index, records, settings, self._check, self._lobby, now=now, told=told, opened=opened, look=self.mark_dirty
        )

    def mark_dirty(self, key: PodGroupKey | None) -> None:
        """Something has changed that matters to opening; on a standby it is all looked at later."""
        if not self._runs:
            return
        if key is not None:
            self._lobby.dirty.add(key)
        if key is not None or self._lobby.waiting:  # nodes are looked at when somebody wants room
            self._work.set()

    def mark_progress(self, key: PodGroupKey) -> None:
        """Of an open group some pod has come on: it needs no more room than before."""
        if self._runs and self._check is not CapacityCheck.OFF:
            self._lobby.progressed.add(key)
        if self._lobby.waiting:
            self._work.set()

    def why_pending(self, key: PodGroupKey) -> Hold | GroupReason | None:
        """What holds a group up; None: nothing that is known, or it is open."""
        return self._lobby.why_pending(key)

    def must_yield(self, key: PodGroupKey) -> bool:
        """Whether a group of higher priority waits for the place that this one has without proof."""
        return key in self._ends

    def waiting_since(self) -> list[float]:
        """Since when each group, or GangGroup, waits that is gathered and not open."""
        return [it.ready_since for it in self._lobby.waiting.values() if not it.backs_off]

    async def run(self) -> None:
        """Until cancelled, or until this process no longer leads (NotLeader)."""
        await self._records.load_records(self._apis)
        self._runs = True
        self._lobby.mark_all_dirty()
        self._work.set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wait()
                for verdict in await self._pass():
                    tasks.create_task(self._decisions.write_admission(verdict), name="decision of a group")

    # --- Passes ----------------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(RESYNC_SECONDS):
                await self._work.wait()
        await asyncio.sleep(max(DEBOUNCE_SECONDS, self._rests_until - monotonic()))
        self._work.clear()

    async def _pass(self) -> list[Admit]:
        """Looks at all that has changed, then at all that wait; gives those that are to be opened."""
        turns, now, lobby = _Yielder(), self._now(), self._lobby
        lobby.mark_timed_dirty()
        if lobby.dirty or lobby.waiting:
            lobby.refresh_nodes()
        await self._refresh(turns, now)
        if not lobby.waiting:
            self._words.forget_all()
            self._ends.clear()
            return []
        chosen = await self._choose(turns, now)
        self._measured(turns.spent)
        self._rests_until = monotonic() + min(MAX_REST_SECONDS, REST_FACTOR * turns.spent)
        return chosen

    async def _refresh(self, turns: "_Yielder", now: float) -> None:
        while self._lobby.dirty:
            for key in self._lobby.take_dirty():
                try:
                    self._lobby.evaluate_group(key, now)
                except Exception as error:  # noqa: BLE001 - as in `leave_out`
                    self._lobby.set_faulty(key, error)
                await turns.end()

    async def _choose(self, turns: "_Yielder", now: float) -> list[Admit]:
        chosen: list[Admit] = []
        ends: set[PodGroupKey] = set()
        going, roughly = self._begin(now), bool(self._lobby.progressed)
        for candidate in sorted(self._lobby.waiting.values(), key=admission_order):
            if not self._is_next(candidate):
                continue  # while others had their turn: the next pass knows more, and comes at once
            if self._decisions.is_backing_off(candidate.key):
                self._say(candidate, self._decisions.why_backing_off(candidate.key))
                continue
            verdict = self._verdict(going, candidate)
            if roughly and verdict is not None and self._doubts(verdict):
                # Whoever has come on since the last look may have left more room than was reckoned with.
                self._lobby.dirty |= self._lobby.progressed
                await self._refresh(turns, now)
                going, roughly = self._begin(now), False
                if not self._is_next(candidate):
                    continue
                verdict = self._verdict(going, candidate)
            if isinstance(verdict, Admit):
                self._decisions.assume(verdict)
                chosen.append(verdict)
            elif verdict is not None:
                ends.update(verdict.must_yield)
                self._say(candidate, verdict)
            await turns.end()
        new, self._ends = ends - self._ends, ends
        for key in new:
            self._told(key)
        return chosen

    def _verdict(self, going: cycle.SchedulingCycle, candidate: Candidate) -> Admit | Hold | None:
        try:
            return going.decide_candidate(candidate)
        except Exception as error:  # noqa: BLE001 - as in `leave_out`
            for demand in candidate.requests:
                self._lobby.set_faulty(demand.key, error)
            return None

    def _say(self, candidate: Candidate, why: Hold | GroupReason | None) -> None:
        for demand in candidate.requests:
            self._lobby.set_reason(demand.key, why)

    def _is_next(self, candidate: Candidate) -> bool:
        return not self._decisions.is_inflight(candidate.key) and self._lobby.is_current(candidate)

    def _doubts(self, verdict: Admit | Hold) -> bool:
        return isinstance(verdict, Hold) or not (verdict.proven or self._check is CapacityCheck.OFF)

    def _begin(self, now: float) -> cycle.SchedulingCycle:
        """A pass over the rooms as they are, and all that is to be placed in them.

        Both at one moment: a pod that is reckoned as placed has to be missing in the rooms.
        """
        self._lobby.refresh_nodes()
        self._ground.refresh(self._lobby.node_infos)
        opened = [it for several in self._lobby.admitted.values() for it in several]
        opened += self._decisions.assumed
        return cycle.SchedulingCycle(
            opened,
            self._ground,
            words=self._words,
            prospects=self._prospects,
            now=now,
            avoided=self._index.excluded_nodes,
            check=self._check,
            starvation_seconds=self._settings.starvation_seconds,
            state=(self._ground.changes, self._lobby.changes, self._decisions.changes),
        )


class _Yielder:
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
        if now - self._since < SLICE_SECONDS:
            return
        self._before += now - self._since
        await asyncio.sleep(0)
        self._since = perf_counter()
