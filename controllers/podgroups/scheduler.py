"""The admission cycle: the one place that chooses which group is admitted next, on the leader only (G3).

The choice is made in memory, one group after the other, so that no two can be promised the same room. The admission is
a write to the group's record object; those of different groups are in flight side by side, and count as admitted from
the moment of the choice.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.inflight import InflightAdmissions
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.pending import PendingQueue
from jobset_gate.podgroups.candidate import Admit, Candidate, CapacityCheck, Hold, admission_order
from jobset_gate.podgroups.cycle import SchedulingCycle
from jobset_gate.podgroups.fit.guaranteed import NodeSnapshot
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.runtime.clock import monotonic

DEBOUNCE_SECONDS: Final = 0.02
"""In which changes are gathered before a cycle."""

REST_FACTOR: Final = 4
"""The pause after a cycle, in times of its work: where many groups wait a cycle is long, and one for many changes costs
no more than one for each."""

MAX_REST_SECONDS: Final = 0.2

SLICE_SECONDS: Final = 0.005
"""Of work, after which other tasks of the event loop get their turn."""


class PodGroupScheduler:
    """Evaluates dirty groups, then decides on all that wait."""

    def __init__(
        self,
        cache: PodGroupCache,
        pending: PendingQueue,
        admissions: InflightAdmissions,
        *,
        check: CapacityCheck,
        starvation_seconds: float,
        clock: Callable[[], float],
        metrics: PodGroupMetrics,
    ) -> None:
        self._cache, self._pending, self._admissions = cache, pending, admissions
        self._check, self._starvation_seconds = check, starvation_seconds
        self._clock, self._metrics = clock, metrics
        self._rests_until = 0.0
        self._nodes = NodeSnapshot()

    async def run(self) -> None:
        """Until cancelled, or until this process no longer leads (NotLeader)."""
        self._pending.start()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._pending.wait()
                await asyncio.sleep(max(DEBOUNCE_SECONDS, self._rests_until - monotonic()))
                for admission in await self._cycle():
                    tasks.create_task(self._admissions.write_admission(admission), name="admission of a group")

    async def _cycle(self) -> list[Admit]:
        """One admission cycle; returns the groups to admit."""
        slices, now, pending = _Slices(), self._clock(), self._pending
        pending.begin()
        while groups := pending.take_dirty():
            for key in groups:
                pending.evaluate_group(key, now)
                await slices.end_step()
        if not pending.waiting:
            pending.set_yielding(set())
            return []
        admitted = await self._decide(slices, now)
        self._metrics.observe_cycle(slices.spent)
        self._rests_until = monotonic() + min(MAX_REST_SECONDS, REST_FACTOR * slices.spent)
        return admitted

    async def _decide(self, slices: "_Slices", now: float) -> list[Admit]:
        """Decides on all candidates, in order."""
        admitted: list[Admit] = []
        yielding: set[PodGroupKey] = set()
        cycle = self._new_cycle(now)
        for candidate in sorted(self._pending.waiting.values(), key=admission_order):
            if self._admissions.is_inflight(candidate.key) or not self._pending.is_current(candidate):
                continue  # it has changed during an earlier slice: the next cycle decides, and comes at once
            if self._admissions.is_backing_off(candidate.key):
                self._pending.set_reasons(candidate, self._admissions.why_backing_off(candidate.key))
                continue
            verdict = self._verdict(cycle, candidate)
            if isinstance(verdict, Admit):
                self._admissions.assume(verdict)
                admitted.append(verdict)
            elif verdict is not None:
                yielding.update(verdict.must_yield)
                self._pending.set_reasons(candidate, verdict)
            await slices.end_step()
        self._pending.set_yielding(yielding)
        return admitted

    def _verdict(self, cycle: SchedulingCycle, candidate: Candidate) -> Admit | Hold | None:
        try:
            return cycle.decide_candidate(candidate)
        except Exception as error:  # noqa: BLE001 - as in `set_faulty`
            for request in candidate.requests:
                self._pending.set_faulty(request.key, error)
            return None

    def _new_cycle(self, now: float) -> SchedulingCycle:
        """Nodes and reservations are of one moment: a bound pod is counted on its node or reserved, never both."""
        self._nodes.refresh(self._cache.node_infos())
        admitted = [it for several in self._pending.admitted.values() for it in several]
        self._pending.cycle = SchedulingCycle(
            [*admitted, *self._admissions.assumed],
            self._nodes,
            now=now,
            excluded=self._cache.excluded_nodes,
            check=self._check,
            starvation_seconds=self._starvation_seconds,
        )
        return self._pending.cycle


class _Slices:
    """Lets other tasks run after each slice of work, and measures the work."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since = perf_counter()

    @property
    def spent(self) -> float:
        """Seconds of work."""
        return self._before + perf_counter() - self._since

    async def end_step(self) -> None:
        """Call after each step of work."""
        now = perf_counter()
        if now - self._since < SLICE_SECONDS:
            return
        self._before += now - self._since
        await asyncio.sleep(0)
        self._since = perf_counter()
