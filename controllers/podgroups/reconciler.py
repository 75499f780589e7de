"""The reconciler of groups: what was decided is carried out, the wait limit is kept, what is over is cleared away (G4).

Several gangs that were opened in one decision share its record; it is kept on the first one's home, and that one's
turn deals with all of them. Safe to be interrupted between any two of its writes.
"""

from collections.abc import Callable
from typing import Final, Protocol

from controllers.podgroups.deadline import SchedulingDeadline
from controllers.podgroups.eviction import EvictionBackend, EvictionReconciler, NativeBackend
from controllers.podgroups.owner_capacity import OwnerCapacities
from controllers.podgroups.record_object import parsed_record
from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.ungater import Ungater
from jobset_gate import names
from jobset_gate.kube.errors import Forbidden, is_namespace_terminating
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, record_for
from jobset_gate.podgroups.snapshot import GroupSnapshot

ELECTION_LAG_SECONDS: Final = 10.0
"""Seconds after a decision in which a new leader's watches may not have told of its pods yet."""


class SnapshotReader(Protocol):
    """What the reconciler needs of the index."""

    def snapshot(self, key: PodGroupKey) -> GroupSnapshot | None:
        """All that is known of a group."""


class PodGroupReconciler:
    """One pass over one group."""

    def __init__(
        self,
        *,
        index: SnapshotReader,
        records: RecordStore,
        gates: Ungater,
        rollbacks: EvictionBackend,
        makers: OwnerCapacities,
        now: Callable[[], float],
        native: NativeBackend | None = None,
        wake: Callable[[PodGroupKey], None],
        look: Callable[[PodGroupKey], None],
        quiet: Callable[[GroupSnapshot], float] = lambda _: 0.0,
        spoken: Callable[[GroupSnapshot, str], None] = lambda _, __: None,
        forgotten: Callable[[PodGroupKey], None] = lambda _: None,
        satisfied: Callable[[float], None] = lambda _: None,
        rolled_back: Callable[[], None] = lambda: None,
        makes_way: Callable[[PodGroupKey], bool] = lambda _: False,
    ) -> None:
        """`wake`: another group is to be reconciled; `look`: the opener is to look at one; `spoken`: a group was looked
        at, and this is in the way of taking it back; `quiet`: seconds for which nobody is to speak of one; `satisfied`:
        so many seconds after it was opened; `makes_way`: whether a group of higher priority waits for the place of one.
        """
        self._index, self._records, self._gates, self._makers = index, records, gates, makers
        self._native, self._now, self._wake, self._look = native, now, wake, look
        self._quiet, self._spoken, self._forgotten = quiet, spoken, forgotten
        self._limits = SchedulingDeadline(
            records,
            gates,
            now=now,
            wake=wake,
            satisfied=satisfied,
            rolled_back=rolled_back,
            makes_way=makes_way,
        )
        self._returns = EvictionReconciler(
            records=records,
            gates=gates,
            rollbacks=rollbacks,
            makers=makers,
            native=native,
            now=now,
            wake=wake,
            look=look,
        )
        self._copied: dict[PodGroupKey, int] = {}

    async def reconcile(self, key: PodGroupKey) -> float | None:
        """Looks at a group once. Returns the seconds after which to look again without being asked, if any."""
        seen = self._index.snapshot(key)
        if seen is None:
            await self._returns.resume_owners(key)
            self._forget(key)
            return None
        try:
            again, blocked = await self._act(key, seen)
        except Forbidden as refused:
            if is_namespace_terminating(refused):
                return None  # the namespace goes, and its groups with it
            raise
        again = _sooner(again, generation.seconds_until_join(seen, self._now()))
        seen = self._index.snapshot(key)
        if seen is None:
            return again
        wait = self._quiet(seen)
        if wait > 0:
            return _sooner(again, wait)
        self._spoken(seen, blocked)
        return again

    async def _act(self, key: PodGroupKey, seen: GroupSnapshot) -> tuple[float | None, str]:
        record = seen.record
        if record is None:
            self._gates.forget_group(key)
            self._limits.forget_group(key)
            await self._returns.resume_owners(key)
            return await self._makers.refresh_group(seen), ""
        if record.stage is AdmissionState.CLOSED:
            self._limits.forget_group(key)
            return await self._returns.reconcile_closed(key, seen, record), ""
        parts = self._parts(record, seen)
        first, over = generation.record_holder(record, parts), False
        if record.stage is AdmissionState.OPEN:
            over = self._is_over(parts if key in parts else {key: seen})
            pods = () if over else generation.members_to_ungate(seen, record, self._now(), self._gates.in_flight(key))
            self._gates.set_desired(key, pods, record.generation)
            if self._native is not None and record.how is AdmissionMode.NATIVE and not over and not pods:
                await self._native.hand_over_group(seen, record)
        if first is None:
            return None, ""  # its home is gone, and with it the record
        if first != key:
            await self._copy(key, seen, record)
            self._wake(first)
            return None, ""
        if record.stage is AdmissionState.ROLLING_BACK:
            return await self._returns.advance(seen, record, parts)
        return await self._keep(seen, record, parts, over=over), ""

    def _parts(self, record: AdmissionRecord, known: GroupSnapshot) -> dict[PodGroupKey, GroupSnapshot]:
        """The gangs of a decision that are still there, and still in it."""
        seen = {key: known if key == known.group.key else self._index.snapshot(key) for key, _ in record.gangs}
        return {
            key: it
            for key, it in seen.items()
            if it is not None
            and it.record is not None
            and it.record.gangs == record.gangs
            and it.record_ref is not None
        }

    async def _keep(
        self, seen: GroupSnapshot, record: AdmissionRecord, parts: dict[PodGroupKey, GroupSnapshot], *, over: bool
    ) -> float | None:
        """The wait limit, and the end."""
        key = seen.group.key
        if over:
            wait = (
                0.0
                if record.satisfied is not None or self._gates.last_generation(key)
                else record.at + ELECTION_LAG_SECONDS - self._now()
            )
            if wait > 0:
                return wait
            await self._returns.close_group(key, seen, record)
            return None
        if record.satisfied is not None:
            return None
        return await self._limits.enforce(seen, record, list(parts.values()))

    async def _copy(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """A decision that stands on another's home is kept here, too: that one may go first."""
        if self._copied.get(key) == record.generation or (seen.record_ref is None and seen.group.pod_group_missing):
            return
        own = parsed_record(seen.annotations.get(names.POD_GROUP_RECORD, ""))
        mine = None if own is None else record_for(own, key)
        if mine is None or mine.generation < record.generation:
            await self._records.write_record(seen, record)
        self._copied[key] = record.generation

    def _is_over(self, parts: dict[PodGroupKey, GroupSnapshot]) -> bool:
        """A decision on several gangs is over only for all: till then who comes to one of them takes a place in it."""
        return generation.is_over([(seen, self._begun(key, seen)) for key, seen in parts.items()])

    def _begun(self, key: PodGroupKey, seen: GroupSnapshot) -> bool:
        """Whether some were opened from here; of those opened just now the watch may still tell that they are held."""
        under_way = self._gates.in_flight(key)
        opened_here = seen.record is not None and self._gates.last_generation(key) == seen.record.generation
        return opened_here and not any(it.uid in under_way for it in seen.members)

    def _forget(self, key: PodGroupKey) -> None:
        self._gates.forget_group(key)
        self._limits.forget_group(key)
        self._returns.forget_group(key)
        self._copied.pop(key, None)
        self._makers.forget_group(key)
        if self._native is not None:
            self._native.forget_group(key)
        self._forgotten(key)
        self._look(key)


def _sooner(one: float | None, other: float | None) -> float | None:
    return min((it for it in (one, other) if it is not None), default=None)
