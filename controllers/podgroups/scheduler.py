"""The admission cycle: the one place that chooses which group is admitted next, on the leader only (G3).

The choice is made in memory, one group after the other, so that no two can be promised the same room. The admission is
a write to the group's record object; those of different groups are in flight side by side, and count as admitted from
the moment of the choice.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import structlog

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.pending import PendingQueue
from controllers.podgroups.record_store import OutcomeUnknown, RecordStore
from jobset_gate import names
from jobset_gate.kube.errors import KubeError, NotLeader
from jobset_gate.podgroups.candidate import Admit, Candidate, CapacityCheck, Hold, admission_order
from jobset_gate.podgroups.cycle import SchedulingCycle, admitted_group
from jobset_gate.podgroups.evaluate import new_record
from jobset_gate.podgroups.fit.guaranteed import NodeSnapshot
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.flowcontrol import exponential
from jobset_gate.runtime.workqueue import Requeue

DEBOUNCE_SECONDS: Final = 0.02
"""In which changes are gathered before a cycle."""

REST_FACTOR: Final = 4
"""The pause after a cycle, in times of its work: where many groups wait a cycle is long, and one for many changes costs
no more than one for each."""

MAX_REST_SECONDS: Final = 0.2

SLICE_SECONDS: Final = 0.005
"""Of work, after which other tasks of the event loop get their turn."""

CONCURRENT_WRITES: Final = 16
"""Each of them soon has the gates of a whole group to remove."""

RETRY_SECONDS: Final = 1.0
"""Until a record is written again whose write had no answer."""

BACKOFF_BASE: Final = 0.25
BACKOFF_CAP: Final = 60.0
"""Seconds until an admission is tried again that could not be written. The group holds no room meanwhile, so that one
object that takes no record does not stop the others."""

REPORTED_BACKOFF: Final = 1.0
"""From which on it is the reason of the group: a shorter one may come of a lost race."""

BACKOFF_FORGOTTEN: Final = 600.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Failures:
    """Writes of one admission that failed in a row."""

    count: int
    wait: float
    until: float
    error: str


class PodGroupScheduler:
    """Evaluates dirty groups, decides on all that wait, and writes the admissions."""

    def __init__(
        self,
        cache: PodGroupCache,
        pending: PendingQueue,
        store: RecordStore,
        *,
        check: CapacityCheck,
        mode: AdmissionMode,
        starvation_seconds: float,
        clock: Callable[[], float],
        enqueue: Callable[[PodGroupKey], None],
        metrics: PodGroupMetrics,
    ) -> None:
        """`mode`: how groups are admitted that are proven to fit. `enqueue`: reconcile this group."""
        self._cache, self._pending, self._store = cache, pending, store
        self._check, self._mode, self._starvation_seconds = check, mode, starvation_seconds
        self._clock, self._enqueue, self._metrics = clock, enqueue, metrics
        self._rests_until = 0.0
        self._nodes = NodeSnapshot()
        self._inflight: dict[PodGroupKey, Admit] = {}
        """Admissions that are being written, by their first group: they count as admitted."""
        self._failures: dict[PodGroupKey, _Failures] = {}
        self._slots = asyncio.Semaphore(CONCURRENT_WRITES)

    async def run(self) -> None:
        """Until cancelled, or until this process no longer leads (NotLeader)."""
        self._pending.start()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._pending.wait()
                await asyncio.sleep(max(DEBOUNCE_SECONDS, self._rests_until - monotonic()))
                for admission in await self._cycle():
                    tasks.create_task(self._write_admission(admission), name="admission of a group")

    # --- The cycle ---------------------------------------------------------------------------------------------------

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
        self._metrics.cycle_seconds.observe(slices.spent)
        self._rests_until = monotonic() + min(MAX_REST_SECONDS, REST_FACTOR * slices.spent)
        return admitted

    async def _decide(self, slices: "_Slices", now: float) -> list[Admit]:
        """Decides on all candidates, in order."""
        admitted: list[Admit] = []
        yielding: set[PodGroupKey] = set()
        cycle = self._new_cycle(now)
        for candidate in sorted(self._pending.waiting.values(), key=admission_order):
            if candidate.key in self._inflight or not self._pending.is_current(candidate):
                continue  # it has changed during an earlier slice: the next cycle decides, and comes at once
            failures = self._failures.get(candidate.key)
            if failures is not None and monotonic() < failures.until:
                self._pending.set_reasons(candidate, _why_backing_off(failures))
                continue
            verdict = self._verdict(cycle, candidate)
            if isinstance(verdict, Admit):
                self._inflight[candidate.key] = verdict
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
        self._nodes.refresh(self._cache.nodes.node_infos())
        admitted = [it for several in self._pending.admitted.values() for it in several]
        self._pending.cycle = SchedulingCycle(
            [*admitted, *(admitted_group(it, now) for it in self._inflight.values())],
            self._nodes,
            now=now,
            excluded=self._cache.nodes.excluded_nodes,
            check=self._check,
            starvation_seconds=self._starvation_seconds,
        )
        return self._pending.cycle

    # --- Writing the admissions --------------------------------------------------------------------------------------

    async def _write_admission(self, admission: Admit) -> None:
        """Writes the record. Whatever the outcome, the group is evaluated again."""
        lead = admission.candidate.key
        try:
            async with self._slots:
                await self._write_surely(admission)
        except NotLeader:
            raise
        except Exception as error:  # noqa: BLE001 - an exception about one group must not stop the others
            log = _log.debug if isinstance(error, Requeue) else _log.error
            stack = None if isinstance(error, KubeError | Requeue) else error
            log("admission not written", group=lead.path, error=str(error), exc_info=stack)
            self._fail(lead, error)
        else:
            self._failures.pop(lead, None)
        finally:
            del self._inflight[lead]
            for request in admission.candidate.requests:
                self._pending.mark_dirty(request.key)

    def _fail(self, lead: PodGroupKey, error: Exception) -> None:
        now = monotonic()
        self._failures = {key: it for key, it in self._failures.items() if now < it.until + BACKOFF_FORGOTTEN}
        count = self._failures[lead].count if lead in self._failures else 0
        wait = exponential(count, BACKOFF_BASE, BACKOFF_CAP)
        self._failures[lead] = _Failures(count + 1, wait, now + wait, str(error))
        asyncio.get_running_loop().call_later(wait, self._pending.mark_dirty, lead)

    async def _write_surely(self, admission: Admit) -> None:
        """The admission stays assumed until its outcome is known: what has landed makes a second write fail."""
        while True:
            try:
                return await self._write(admission)
            except OutcomeUnknown as unknown:
                _log.error("outcome of an admission unknown", error=str(unknown))
                await asyncio.sleep(RETRY_SECONDS)

    async def _write(self, admission: Admit) -> None:
        now, keys = self._clock(), [it.key for it in admission.candidate.requests]
        current = self._pending.candidate(keys[0], now)
        if current is None or [it.key for it in current.requests] != keys:
            raise Requeue(f"group {keys[0].path} has changed")
        seen = [it for key in keys if (it := self._cache.snapshot(key)) is not None]
        proven = admission.proven or self._mode is not AdmissionMode.FIT
        record = new_record(seen, self._mode if proven else AdmissionMode.PROBE, now)
        await self._store.write_record(seen[0], record)
        _log.info("group opened", group=keys[0].path, generation=record.generation, how=record.how.value)
        self._metrics.observe_admission(record.how, now - admission.candidate.ready_since)
        for key in keys:
            self._pending.set_reason(key, None)
            self._enqueue(key)


def _why_backing_off(failures: _Failures) -> GroupReason | None:
    if failures.wait < REPORTED_BACKOFF:
        return None
    message = f"could be opened, but that cannot be recorded: {failures.error}"
    return GroupReason(reason=names.REASON_NOT_RECORDED, message=message)


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
