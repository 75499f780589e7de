"""The wait limit of an opened group: kept until its minimum is bound, and what comes of it if that is too late."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import msgspec
import structlog

from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.ungater import Ungater
from jobset_gate.podgroups import deadline, generation
from jobset_gate.podgroups.decision import MAX_WAITS
from jobset_gate.podgroups.model import GangMode, PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot

AdmissionId = tuple[int, float]
"""The generation, and when it was decided."""

_log = structlog.get_logger(__name__)


class SchedulingDeadline:
    """Deals with all gangs of a decision at once. `satisfied` and `rolled_back` are hooks of the metrics."""

    def __init__(
        self,
        records: RecordStore,
        gates: Ungater,
        *,
        now: Callable[[], float],
        wake: Callable[[PodGroupKey], None],
        satisfied: Callable[[float], None],
        rolled_back: Callable[[], None],
        makes_way: Callable[[PodGroupKey], bool],
    ) -> None:
        """`makes_way`: whether a group of higher priority waits for this one's place."""
        self._makes_way = makes_way
        self._records, self._gates, self._now, self._wake = records, gates, now, wake
        self._satisfied, self._rolled_back = satisfied, rolled_back
        self._begun: dict[PodGroupKey, tuple[AdmissionId, float | None]] = {}
        """By decision, since when a group's limit runs: who takes another's place later does not set it back. None: not
        while somebody else's gate holds one of them, or the scheduler makes room for one."""
        self._met: dict[PodGroupKey, tuple[AdmissionId, float]] = {}
        """The same, when its minimum was seen bound: it was, whatever comes before that is written down."""

    async def enforce(
        self, seen: GroupSnapshot, record: AdmissionRecord, parts: Sequence[GroupSnapshot]
    ) -> float | None:
        """`seen` is the group on whose home the record stands. Returns the seconds until to look again."""
        key, now = seen.group.key, self._now()
        decision = record.generation, record.at
        if self._met.get(key, (decision, 0.0))[0] != decision:
            del self._met[key]
        since = self._since(key, record, parts)
        placings = [_placing(it, record, now if since is None else since) for it in parts]
        verdicts = [deadline.decide_deadline(it, now) for it in placings]
        if all(isinstance(it, deadline.Satisfied) for it in verdicts):
            self._meet(key, decision, now)
        if key in self._met:
            await self._satisfy(seen, record, parts, self._met[key][1])
            return None
        if all(it.mode is GangMode.STRICT for it in placings) and any(self._makes_way(it.group.key) for it in parts):
            why = f"{_counted(placings)} when a group of higher priority came"
            await self._take_back(seen, record, why, retry=True)
            return 0.0
        if since is None:
            return self._pauses(record) or None  # a gate is still to be removed, or room to be made
        return await self._late(seen, record, parts, placings, verdicts)

    def forget_group(self, key: PodGroupKey) -> None:
        """It is closed, or nothing is left of it."""
        self._begun.pop(key, None)
        self._met.pop(key, None)

    async def _late(
        self,
        seen: GroupSnapshot,
        record: AdmissionRecord,
        parts: Sequence[GroupSnapshot],
        placings: Sequence[deadline.DeadlineInput],
        verdicts: Sequence[object],
    ) -> float | None:
        """Some have not come to their minimum; perhaps the limit has passed."""
        backs = [it for it in verdicts if isinstance(it, deadline.Evict)]
        if backs:
            limit = f"{float(record.wait) * (1 + record.extended):g}s"
            cut = ", the longest limit there is" if max(it.group.wait for it in parts) > record.wait else ""
            why = f"{_counted(placings)} within {limit}{cut}"
            await self._take_back(seen, record, why, retry=all(it.retry for it in backs))
            return 0.0
        extends = [it.requeue_after for it in verdicts if isinstance(it, deadline.ExtendDeadline)]
        if extends:
            await self._records.write_record(seen, msgspec.structs.replace(record, extended=True))
            return min(extends)
        again = [it.requeue_after for it in verdicts if isinstance(it, deadline.KeepWaiting)]
        if again:
            return min(again)
        if not record.marked:
            await self._records.write_record(seen, msgspec.structs.replace(record, marked=True))
        self._mark(parts)
        return None

    async def _take_back(self, seen: GroupSnapshot, record: AdmissionRecord, why: str, *, retry: bool) -> None:
        rolling = msgspec.structs.replace(record, stage=AdmissionState.ROLLING_BACK, why=why, retry=retry)
        await self._records.write_record(seen, rolling)
        _log.info("group is taken back", group=seen.group.key.path, generation=record.generation, why=why)
        self._rolled_back()

    def _mark(self, parts: Sequence[GroupSnapshot]) -> None:
        """Those that were too late, where nothing is taken back."""
        for part in parts:
            opened = generation.opened_members(part, part.generation)
            late = [it for it in opened if it.alive and not it.bound and not it.timed_out]
            self._gates.mark_timed_out(part.group.key, late)

    def _since(self, key: PodGroupKey, record: AdmissionRecord, parts: Sequence[GroupSnapshot]) -> float | None:
        known, decision = self._begun.get(key), (record.generation, record.at)
        if self._pauses(record) > 0 and any(generation.foreign_gated_members(it) or _nominated(it) for it in parts):
            self._begun[key] = decision, None
            return None
        if known is not None and known[0] == decision:
            begun: float | None = self._now() if known[1] is None else known[1]  # it begins when that is over
        else:
            begun = generation.deadline_start(parts, record, self._now())
        if begun is not None:
            self._begun[key] = decision, begun
        return begun

    def _pauses(self, record: AdmissionRecord) -> float:
        """Seconds for which the limit may still wait for somebody else's gate, or for the end of pods that were sent
        away, which may never come.
        """
        return max(0.0, record.at + float(MAX_WAITS.get(record.how, MAX_WAITS[AdmissionMode.FIT])) - self._now())

    def _meet(self, key: PodGroupKey, decision: AdmissionId, now: float) -> None:
        if key not in self._met:
            self._met[key] = decision, now
            self._satisfied(max(0.0, now - decision[1]))

    async def _satisfy(
        self, seen: GroupSnapshot, record: AdmissionRecord, parts: Sequence[GroupSnapshot], met: float
    ) -> None:
        await self._records.write_record(seen, msgspec.structs.replace(record, satisfied=met, rolled_back=0))
        self._met.pop(seen.group.key, None)
        for part in parts:
            if generation.gated_members(part) or part is not seen:
                self._wake(part.group.key)  # later members pass from now on


def _nominated(seen: GroupSnapshot) -> bool:
    """Whether one of its pods waits for others to end that the scheduler has sent away for it."""
    return any(it.nominated and not it.bound and it.alive for it in generation.opened_members(seen, seen.generation))


def _counted(placings: Sequence[deadline.DeadlineInput]) -> str:
    return "; ".join(f"{it.bound} of {it.minimum} pods were bound" for it in placings if it.bound < it.minimum)


def _placing(seen: GroupSnapshot, record: AdmissionRecord, since: float) -> deadline.DeadlineInput:
    own = record if seen.record is None else seen.record
    return deadline.DeadlineInput(
        design=seen.group.key.design,
        mode=own.mode,
        minimum=own.minimum,
        bound=generation.count_bound(seen),
        started_at=since,
        wait=Fraction(record.wait),
        extended=record.extended,
        rolled_back=record.rolled_back,
    )
