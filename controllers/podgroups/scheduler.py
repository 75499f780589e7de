"""The admission cycle: the one place that chooses which group is admitted next, on the leader only (G3).

The choice is made in memory, one group after the other, so that no two can be promised the same room. The admission is
a write to the group's record object; those of different groups are in flight side by side, and count as admitted from
the moment of the choice.
"""

import asyncio
from collections.abc import Callable, Sequence
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
from jobset_gate.podgroups.candidate import Admit, AdmittedGroup, Candidate, CapacityCheck, Hold, admission_order
from jobset_gate.podgroups.cycle import SchedulingCycle, admitted_group
from jobset_gate.podgroups.evaluate import new_record
from jobset_gate.podgroups.fit.guaranteed import NodeSnapshot
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode
from jobset_gate.runtime.clock import monotonic
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

REREAD_SECONDS: Final = 1.0
"""Until a record is read again whose write had no answer."""

BACKOFF_BASE: Final = 1.0
BACKOFF_CAP: Final = 60.0
"""Seconds until an admission is tried again that could not be written. The group holds no room meanwhile, so that one
object that takes no record does not stop the others."""

BACKOFF_FORGOTTEN: Final = 600.0

TOLERATED_CONFLICTS: Final = 5
"""Lost races in a row that need no back-off."""

_log = structlog.get_logger(__name__)


class PodGroupScheduler:
    """Evaluates dirty groups, then decides on all that wait."""

    def __init__(
        self,
        cache: PodGroupCache,
        pending: PendingQueue,
        admissions: "InflightAdmissions",
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
        self._metrics.cycle_seconds.observe(slices.spent)
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
        self._nodes.refresh(self._cache.nodes.node_infos())
        admitted = [it for several in self._pending.admitted.values() for it in several]
        self._pending.cycle = SchedulingCycle(
            [*admitted, *self._admissions.assumed],
            self._nodes,
            now=now,
            excluded=self._cache.nodes.excluded_nodes,
            check=self._check,
            starvation_seconds=self._starvation_seconds,
        )
        return self._pending.cycle


@dataclass(frozen=True, slots=True)
class _Failures:
    """Writes that failed in a row."""

    count: int
    wait: float
    until: float
    error: str


class InflightAdmissions:
    """By the first group of each admission."""

    def __init__(
        self,
        cache: PodGroupCache,
        pending: PendingQueue,
        store: RecordStore,
        *,
        mode: AdmissionMode,
        clock: Callable[[], float],
        enqueue: Callable[[PodGroupKey], None],
        metrics: PodGroupMetrics,
    ) -> None:
        """`mode`: how groups are admitted that are proven to fit. `enqueue`: reconcile this group."""
        self._cache, self._pending, self._store = cache, pending, store
        self._mode, self._clock, self._enqueue, self._metrics = mode, clock, enqueue, metrics
        self._admissions: dict[PodGroupKey, Admit] = {}
        self._failures: dict[PodGroupKey, _Failures] = {}
        self._slots = asyncio.Semaphore(CONCURRENT_WRITES)

    @property
    def assumed(self) -> Sequence[AdmittedGroup]:
        """Admissions that are being written count as admitted."""
        return [admitted_group(it, self._clock()) for it in self._admissions.values()]

    def is_inflight(self, lead: PodGroupKey) -> bool:
        """Whether an admission of this group is being written."""
        return lead in self._admissions

    def is_backing_off(self, lead: PodGroupKey) -> bool:
        """Whether an admission of this group failed, and must not be tried again yet."""
        return lead in self._failures and monotonic() < self._failures[lead].until

    def why_backing_off(self, lead: PodGroupKey) -> GroupReason | None:
        """Why, from the second failure on: the first may be an accident."""
        failures = self._failures.get(lead)
        if failures is None or failures.wait <= BACKOFF_BASE:
            return None
        message = f"could be opened, but that cannot be recorded: {failures.error}"
        return GroupReason(reason=names.REASON_NOT_RECORDED, message=message)

    def assume(self, admission: Admit) -> None:
        """The scheduler has chosen this group; write_admission() follows."""
        self._admissions[admission.candidate.key] = admission

    async def write_admission(self, admission: Admit) -> None:
        """Writes the record. Whatever the outcome, the group is evaluated again."""
        lead = admission.candidate.key
        try:
            async with self._slots:
                await self._write(admission)
        except Requeue as conflict:
            _log.debug("admission conflicts", group=lead.path, why=str(conflict))
            self._fail(lead, conflict, tolerated=TOLERATED_CONFLICTS)
        except NotLeader:
            raise
        except OutcomeUnknown as unknown:
            await self._read_outcome(unknown)
        except Exception as error:  # noqa: BLE001 - an exception about one group must not stop the others
            stack = None if isinstance(error, KubeError) else error
            _log.error("admission not written", group=lead.path, error=str(error), exc_info=stack)
            self._fail(lead, error)
        else:
            self._failures.pop(lead, None)
        finally:
            del self._admissions[lead]
            for request in admission.candidate.requests:
                self._pending.mark_dirty(request.key)

    def _fail(self, lead: PodGroupKey, error: Exception, *, tolerated: int = 0) -> None:
        now = monotonic()
        self._failures = {key: it for key, it in self._failures.items() if now < it.until + BACKOFF_FORGOTTEN}
        count = self._failures[lead].count if lead in self._failures else 0
        wait = 0.0 if count < tolerated else min(BACKOFF_CAP, BACKOFF_BASE * 2.0 ** min(count - tolerated, 10))
        self._failures[lead] = _Failures(count + 1, wait, now + wait, str(error))
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._pending.mark_dirty, lead)

    async def _read_outcome(self, unknown: OutcomeUnknown) -> None:
        """The admission stays assumed until the API server has answered."""
        while True:
            _log.error("outcome of an admission unknown", group=unknown.key.path, error=str(unknown))
            await asyncio.sleep(REREAD_SECONDS)
            try:
                await self._store.reread_record(unknown)
            except NotLeader:
                raise
            except KubeError as error:
                _log.debug("record not read", group=unknown.key.path, error=str(error))
            else:
                return

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
