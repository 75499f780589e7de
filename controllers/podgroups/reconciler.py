"""Reconciles one pod group: removes the gates of an admitted one, keeps its deadline, clears away what is over (G4).

Gangs that were admitted together share one record. It is stored on the object of the first of them, whose reconcile
deals with all. Every step may be interrupted between any two of its writes.
"""

from collections.abc import Callable
from typing import Final

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.deadline import SchedulingDeadline
from controllers.podgroups.eviction import EvictionReconciler
from controllers.podgroups.native import NativePodGroups
from controllers.podgroups.record_store import RecordStore, parse_stored
from controllers.podgroups.ungater import Ungater
from jobset_gate import names
from jobset_gate.kube.errors import Forbidden, is_namespace_terminating
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, record_for
from jobset_gate.podgroups.snapshot import GroupSnapshot

ELECTION_LAG_SECONDS: Final = 10.0
"""After an admission, in which the informers of a new leader may not have delivered its pods yet."""


class PodGroupReconciler:
    """`enqueue`: reconcile another group."""

    def __init__(
        self,
        cache: PodGroupCache,
        store: RecordStore,
        ungater: Ungater,
        deadline: SchedulingDeadline,
        eviction: EvictionReconciler,
        *,
        native: NativePodGroups | None,
        enqueue: Callable[[PodGroupKey], None],
        clock: Callable[[], float],
    ) -> None:
        self._cache, self._store, self._ungater = cache, store, ungater
        self._deadline, self._eviction, self._native = deadline, eviction, native
        self._enqueue, self._clock = enqueue, clock
        self._copied: dict[PodGroupKey, int] = {}
        """Generations whose record was copied to the group's own object."""

    async def reconcile(self, key: PodGroupKey) -> float | None:
        """Reconciles a group once. Returns the seconds until the next time, if none of its objects changes before."""
        seen = self._cache.snapshot(key)
        if seen is None:
            await self._eviction.resume_owners(key)
            self._forget_group(key)
            return None
        try:
            requeue_after = await self._act(key, seen)
        except Forbidden as refused:
            if is_namespace_terminating(refused):
                return None
            raise
        return _earlier(requeue_after, generation.seconds_until_join(seen, self._clock()))

    async def _act(self, key: PodGroupKey, seen: GroupSnapshot) -> float | None:
        record = seen.record
        if record is None:
            self._ungater.forget_group(key)
            self._deadline.forget_group(key)
            return await self._eviction.reconcile_pending(key, seen)
        if record.stage is AdmissionState.CLOSED:
            self._deadline.forget_group(key)
            return await self._eviction.reconcile_closed(key, seen, record)
        return await self._act_on_admitted(key, seen, record)

    async def _act_on_admitted(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> float | None:
        gangs = self._admitted_with(record, seen)
        holder, over = generation.record_holder(record, gangs), False
        if record.stage is AdmissionState.OPEN:
            over = self._is_over(gangs if key in gangs else {key: seen})
            await self._ungate(key, seen, record, over=over)
        if holder is None:
            return None  # its object is gone, and the record with it
        if holder != key:
            await self._copy_record(key, seen, record)
            self._enqueue(holder)
            return None
        if record.stage is AdmissionState.ROLLING_BACK:
            return await self._eviction.advance(seen, record, gangs)
        if over:
            return await self._close(key, seen, record)
        return None if record.satisfied is not None else await self._deadline.enforce(seen, record, [*gangs.values()])

    async def _ungate(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord, *, over: bool) -> None:
        in_flight = self._ungater.in_flight(key)
        pods = () if over else generation.members_to_ungate(seen, record, self._clock(), in_flight)
        self._ungater.set_desired(key, pods, record.generation)
        if self._native is not None and record.how is AdmissionMode.NATIVE and not over and not pods:
            await self._native.hand_over_group(seen, record)

    async def _close(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> float | None:
        """All members are gone, unless a new leader does not see them yet."""
        if record.satisfied is None and not self._ungater.last_generation(key):
            wait = record.at + ELECTION_LAG_SECONDS - self._clock()
            if wait > 0:
                return wait
        await self._eviction.close_group(key, seen, record)
        return None

    def _admitted_with(self, record: AdmissionRecord, known: GroupSnapshot) -> dict[PodGroupKey, GroupSnapshot]:
        """The gangs of a record that still exist and still have it."""
        seen = {key: known if key == known.group.key else self._cache.snapshot(key) for key, _ in record.gangs}
        return {
            key: it
            for key, it in seen.items()
            if it is not None
            and it.record_ref is not None
            and it.record is not None
            and it.record.gangs == record.gangs
        }

    async def _copy_record(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """Copies a record from another gang's object to the group's own: the other may be deleted first."""
        if self._copied.get(key) == record.generation or (seen.record_ref is None and seen.group.pod_group_missing):
            return
        own = parse_stored(seen.annotations.get(names.POD_GROUP_RECORD, ""))
        mine = None if own is None else record_for(own, key)
        if mine is None or mine.generation < record.generation:
            await self._store.write_record(seen, record)
        self._copied[key] = record.generation

    def _is_over(self, gangs: dict[PodGroupKey, GroupSnapshot]) -> bool:
        """An admission is over for all its gangs at once: until then a new pod of one takes a free place in it."""
        return generation.is_over([(seen, self._was_ungated(key, seen)) for key, seen in gangs.items()])

    def _was_ungated(self, key: PodGroupKey, seen: GroupSnapshot) -> bool:
        """Whether this process removed gates of this generation, and the informer has delivered all of that."""
        in_flight = self._ungater.in_flight(key)
        ungated_here = seen.record is not None and self._ungater.last_generation(key) == seen.record.generation
        return ungated_here and not any(it.uid in in_flight for it in seen.members)

    def _forget_group(self, key: PodGroupKey) -> None:
        self._ungater.forget_group(key)
        self._deadline.forget_group(key)
        self._eviction.forget_group(key)
        self._copied.pop(key, None)
        if self._native is not None:
            self._native.forget_group(key)


def _earlier(one: float | None, other: float | None) -> float | None:
    return min((it for it in (one, other) if it is not None), default=None)
