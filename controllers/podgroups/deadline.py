"""The scheduling deadline of an admitted group: it ends when the minimum is bound, or the group is evicted (G4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import structlog

from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.pending import PendingQueue
from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.ungater import Ungater
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.evaluate import MAX_WAITS
from jobset_gate.podgroups.model import Flavor, GangMode, PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, Verdict, decide_deadline
from jobset_gate.podgroups.snapshot import GroupSnapshot

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Progress:
    """What this process knows of an admission, by the generation and the time of the admission."""

    admission: tuple[int, float]
    started: float | None = None
    """Since when the deadline runs: a pod that replaces another does not reset it."""
    paused: bool = False
    """Another gate holds one of its pods, or the scheduler preempts pods for one."""
    satisfied: float | None = None
    """When the minimum was seen bound: that stays true, whatever happens before it is recorded."""


class SchedulingDeadline:
    """Deals with all gangs of an admission at once. `enqueue`: reconcile another group."""

    def __init__(
        self,
        store: RecordStore,
        ungater: Ungater,
        pending: PendingQueue,
        *,
        enqueue: Callable[[PodGroupKey], None],
        clock: Callable[[], float],
        metrics: PodGroupMetrics,
    ) -> None:
        self._store, self._ungater, self._pending = store, ungater, pending
        self._enqueue, self._clock, self._metrics = enqueue, clock, metrics
        self._progress: dict[PodGroupKey, _Progress] = {}

    async def enforce(
        self, seen: GroupSnapshot, record: AdmissionRecord, gangs: Sequence[GroupSnapshot]
    ) -> float | None:
        """`seen`: the group whose object stores the record. Returns the seconds until the next time."""
        key, now, admission = seen.group.key, self._clock(), (record.generation, record.at)
        known = self._progress.get(key)
        if known is None or known.admission != admission:
            known = self._progress[key] = _Progress(admission)
        started = self._start(known, record, gangs)
        verdicts = [_verdict(it, record, now if started is None else started, now) for it in gangs]
        if all(verdict is Verdict.SATISFIED for verdict, _ in verdicts) and known.satisfied is None:
            known.satisfied = now
            self._metrics.satisfied_seconds.observe(max(0.0, now - record.at))
        if known.satisfied is not None:
            await self._record_satisfied(known.satisfied, seen, record, gangs)
            return None
        strict = all(_own(it, record).mode is GangMode.STRICT for it in gangs)
        if strict and any(it.group.key in self._pending.must_yield for it in gangs):
            why = f"{_bound(gangs, record)} when a group of higher priority came"
            return await self._evict(seen, record, why, retry=True)
        if started is None:
            return self._pause_left(record) or None
        return await self._act_on(verdicts, seen, record, gangs)

    def forget_group(self, key: PodGroupKey) -> None:
        """Drops the state of a group that is closed or gone."""
        self._progress.pop(key, None)

    async def _act_on(
        self,
        verdicts: Sequence[tuple[Verdict, float]],
        seen: GroupSnapshot,
        record: AdmissionRecord,
        gangs: Sequence[GroupSnapshot],
    ) -> float | None:
        evicted = [gang for gang, (it, _) in zip(gangs, verdicts, strict=True) if it is Verdict.EVICT]
        if evicted:
            limit = f"{float(record.wait) * (1 + record.extended):g}s"
            capped = ", the longest limit there is" if max(it.group.wait for it in gangs) > record.wait else ""
            why = f"{_bound(gangs, record)} within {limit}{capped}"
            retry = all(it.group.key.flavor is not Flavor.KOORDINATOR for it in evicted)
            return await self._evict(seen, record, why, retry=retry)
        extensions = [left for it, left in verdicts if it is Verdict.EXTEND]
        if extensions:
            await self._store.write_record(seen, msgspec.structs.replace(record, extended=True))
            return min(extensions)
        waits = [left for it, left in verdicts if it is Verdict.WAIT]
        if waits:
            return min(waits)
        if not record.marked:
            await self._store.write_record(seen, msgspec.structs.replace(record, marked=True))
        for gang in gangs:
            opened = generation.opened_members(gang, gang.generation)
            late = [it for it in opened if it.alive and not it.bound and not it.timed_out]
            self._ungater.mark_timed_out(gang.group.key, late)
        return None

    async def _evict(self, seen: GroupSnapshot, record: AdmissionRecord, why: str, *, retry: bool) -> float:
        evicted = msgspec.structs.replace(record, stage=AdmissionState.ROLLING_BACK, why=why, retry=retry)
        await self._store.write_record(seen, evicted)
        _log.info("group is taken back", group=seen.group.key.path, generation=record.generation, why=why)
        self._metrics.evictions.inc()
        return 0.0

    def _start(self, known: _Progress, record: AdmissionRecord, gangs: Sequence[GroupSnapshot]) -> float | None:
        """Since when the deadline runs; None: it does not run."""
        if self._pause_left(record) > 0 and any(generation.foreign_gated_members(it) or _preempts(it) for it in gangs):
            known.started, known.paused = None, True
        elif known.paused:
            known.started, known.paused = self._clock(), False
        elif known.started is None:
            known.started = generation.deadline_start(gangs, record, self._clock())
        return known.started

    def _pause_left(self, record: AdmissionRecord) -> float:
        """Seconds for which the deadline may still wait for another gate, or for victims of a preemption to end."""
        longest = float(MAX_WAITS.get(record.how, MAX_WAITS[AdmissionMode.FIT]))
        return max(0.0, record.at + longest - self._clock())

    async def _record_satisfied(
        self, at: float, seen: GroupSnapshot, record: AdmissionRecord, gangs: Sequence[GroupSnapshot]
    ) -> None:
        await self._store.write_record(seen, msgspec.structs.replace(record, satisfied=at, rolled_back=0))
        for gang in gangs:
            if gang is not seen or generation.gated_members(gang):
                self._enqueue(gang.group.key)  # later members pass from now on


def _preempts(seen: GroupSnapshot) -> bool:
    """Whether the scheduler has nominated one of its pods for a node on which victims still terminate."""
    return any(it.nominated and not it.bound and it.alive for it in generation.opened_members(seen, seen.generation))


def _own(gang: GroupSnapshot, record: AdmissionRecord) -> AdmissionRecord:
    """The part of a gang in the decision."""
    return record if gang.record is None else gang.record


def _verdict(gang: GroupSnapshot, record: AdmissionRecord, started: float, now: float) -> tuple[Verdict, float]:
    bound = generation.count_bound(gang)
    return decide_deadline(_own(gang, record), gang.group.key.flavor, bound=bound, started=started, now=now)


def _bound(gangs: Sequence[GroupSnapshot], record: AdmissionRecord) -> str:
    counts = [(generation.count_bound(it), _own(it, record).minimum) for it in gangs]
    return "; ".join(f"{bound} of {minimum} pods were bound" for bound, minimum in counts if bound < minimum)
