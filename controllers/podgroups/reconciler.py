"""Reconciles one pod group: removes the gates of an admitted one, keeps its deadline, evicts it, and ends it (G4).

Gangs that were admitted together share one record. It is stored on the object of the first of them, whose reconcile
deals with all. Every step may be interrupted between any two of its writes.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.deadline import SchedulingDeadline
from controllers.podgroups.evictor import Evictor
from controllers.podgroups.native import NativePodGroups
from controllers.podgroups.owners import OwnerCapacities
from controllers.podgroups.pending import PendingQueue
from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.ungater import Ungater
from jobset_gate.kube.errors import Forbidden, is_namespace_terminating
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.model import PodGroupKey, group_label
from jobset_gate.podgroups.record import (
    AdmissionMode,
    AdmissionRecord,
    AdmissionState,
    eviction_backoff,
    narrow_record,
    record_for,
)
from jobset_gate.podgroups.snapshot import GroupSnapshot

ELECTION_LAG_SECONDS: Final = 10.0
"""After an admission, in which the informers of a new leader may not have delivered its pods yet."""

BLOCKED_RETRY_SECONDS: Final = 30.0
"""Until a blocked eviction is tried again, if none of its objects changes before."""

RECORD_KEPT_SECONDS: Final = 300.0
"""How long the record of a group without members outlives its back-off: its owner may be about to recreate them."""


class PodGroupReconciler:
    """`enqueue`: reconcile another group."""

    def __init__(
        self,
        cache: PodGroupCache,
        store: RecordStore,
        ungater: Ungater,
        deadline: SchedulingDeadline,
        evictor: Evictor,
        *,
        capacities: OwnerCapacities,
        pending: PendingQueue,
        native: NativePodGroups | None,
        enqueue: Callable[[PodGroupKey], None],
        clock: Callable[[], float],
    ) -> None:
        self._cache, self._store, self._ungater, self._deadline = cache, store, ungater, deadline
        self._evictor, self._capacities, self._pending, self._native = evictor, capacities, pending, native
        self._enqueue, self._clock = enqueue, clock
        self.blocked: dict[PodGroupKey, str] = {}
        """Why evictions do not get on."""
        self._suspended: dict[PodGroupKey, tuple[str, int]] = {}
        """Label and generation of groups whose owners may be suspended until they are closed or gone."""
        self._recreated: set[PodGroupKey] = set()
        """Groups that are not retried, and have had new members since, or whose members only their user creates."""
        self._bare: set[PodGroupKey] = set()
        """Evicted groups whose pods have no controller."""

    async def reconcile(self, key: PodGroupKey) -> float | None:
        """Reconciles a group once. Returns the seconds until the next time, if none of its objects changes before."""
        seen = self._cache.snapshot(key)
        if seen is None:
            await self._resume_owners(key)
            self._forget_group(key)
            return None
        try:
            requeue_after = await self._act(key, seen)
        except Forbidden as refused:
            if is_namespace_terminating(refused):
                return None
            raise
        delays = requeue_after, generation.seconds_until_join(seen, self._clock())
        return min((it for it in delays if it is not None), default=None)

    async def _act(self, key: PodGroupKey, seen: GroupSnapshot) -> float | None:
        record = seen.record
        if record is None:
            self._ungater.forget_group(key)
            self._deadline.forget_group(key)
            await self._resume_owners(key)
            return await self._capacities.refresh_group(seen)
        if record.stage is AdmissionState.CLOSED:
            self._deadline.forget_group(key)
            return await self._act_on_closed(key, seen, record)
        return await self._act_on_admitted(key, seen, record)

    def _forget_group(self, key: PodGroupKey) -> None:
        self._ungater.forget_group(key)
        self._deadline.forget_group(key)
        self._capacities.forget_group(key)
        self._recreated.discard(key)
        self._bare.discard(key)
        self.blocked.pop(key, None)

    # --- Admitted groups ----------------------------------------------------------------------------------------------

    async def _act_on_admitted(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> float | None:
        gangs = self._admitted_with(record, seen)
        holder, over = generation.record_holder(record, gangs), False
        if record.stage is AdmissionState.OPEN:
            # Over for all its gangs at once: until then a new pod of one takes a free place in it.
            all_ = gangs if key in gangs else {key: seen}
            over = generation.is_over([(gang, self._was_ungated(it, gang)) for it, gang in all_.items()])
            await self._ungate(key, seen, record, over=over)
        if holder is None:
            return None  # its object is gone, and the record with it
        if holder != key:
            await self._copy_record(key, seen, record)
            self._enqueue(holder)
            return None
        if record.stage is AdmissionState.ROLLING_BACK:
            return await self._advance_eviction(seen, record, gangs)
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
        await self._close_group(key, seen, record)
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
        if seen.record_ref is None and seen.group.pod_group_missing:
            return
        own = None if seen.own_record is None else record_for(seen.own_record, key)
        if own is None or own.generation < record.generation:
            await self._store.write_record(seen, record)

    def _was_ungated(self, key: PodGroupKey, seen: GroupSnapshot) -> bool:
        """Whether this process removed gates of this generation, and the informer has delivered all of that."""
        in_flight = self._ungater.in_flight(key)
        ungated_here = seen.record is not None and self._ungater.last_generation(key) == seen.record.generation
        return ungated_here and not any(it.uid in in_flight for it in seen.members)

    # --- Evictions, and what is over ----------------------------------------------------------------------------------

    async def _advance_eviction(
        self, seen: GroupSnapshot, record: AdmissionRecord, gangs: Mapping[PodGroupKey, GroupSnapshot]
    ) -> float:
        """One step of an eviction. Returns the seconds until the next."""
        for key, gang in gangs.items():
            await self._ungater.stop_group(key)
            if self._native is not None and record.how is AdmissionMode.NATIVE:
                await self._native.delete_pod_group(gang)
            self._note_controllers(key, gang)
        # A record may name gangs of other namespaces that do not have it.
        mine = narrow_record(record, lambda key: key in gangs or key.namespace == seen.group.key.namespace)
        # Pods of a gang whose PodGroup is gone are evicted with the others.
        self._suspended |= {key: (group_label(key), generation) for key, generation in mine.gangs}
        answer = await self._evictor.advance_eviction(list(gangs.values()), mine)
        self.blocked.pop(seen.group.key, None)
        if isinstance(answer, int | float):
            return float(answer)
        if answer.blocked:
            self.blocked[seen.group.key] = answer.why or ", ".join(answer.blocked)
            self._mark_timed_out(record, gangs)
            return BLOCKED_RETRY_SECONDS
        closed = msgspec.structs.replace(
            record,
            stage=AdmissionState.CLOSED,
            not_before=self._clock() + eviction_backoff(record.rolled_back),
            rolled_back=record.rolled_back + 1,
        )
        if not record.retry:
            self._recreated |= self._bare & set(gangs)  # before the write, whose answer may be lost
        await self._store.write_record(seen, closed)
        self._bare -= set(gangs)
        for key, _ in mine.gangs:
            self._enqueue(key)
        return 0.0

    async def _act_on_closed(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> float | None:
        """A group that was evicted, or has ended: owners are resumed, and the record is deleted in time."""
        self._ungater.set_desired(key, (), record.generation)
        await self._resume_owners(key)
        if seen.members:
            return await self._reconcile_members(key, seen, record)
        kept_until = record.not_before + RECORD_KEPT_SECONDS
        if record.rolled_back and key not in self._recreated and self._clock() < kept_until:
            return kept_until - self._clock()
        if not record.retry or (seen.record_ref is not None and not seen.record_ref.api):
            await self._close_group(key, seen, record)
        self._recreated.discard(key)  # only now: that write may have to be tried again
        return None

    async def _close_group(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """All members are gone: deletes the record, or resets it on a PodGroup."""
        if not seen.members and seen.record_ref is not None and not seen.record_ref.api:
            await self._store.delete_record(seen.record_ref)
            return
        ended = msgspec.structs.replace(
            record, stage=AdmissionState.CLOSED, rolled_back=0, not_before=0.0, retry=True, why="", satisfied=None
        )
        await self._store.write_record(seen, ended)
        self._pending.mark_dirty(key)

    async def _resume_owners(self, key: PodGroupKey) -> None:
        """Resumes the owners that this process has suspended for the group; see ResumeSweeper for all others."""
        suspended = self._suspended.get(key)
        if suspended is not None:
            await self._evictor.resume_owners(*suspended, key.namespace)
            del self._suspended[key]

    def _note_controllers(self, key: PodGroupKey, seen: GroupSnapshot) -> None:
        controllers = [it.controller for it in seen.members]
        if any(controllers):
            self._bare.discard(key)
        elif controllers:
            self._bare.add(key)

    async def _reconcile_members(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> float | None:
        if not record.retry:
            self._recreated.add(key)
            self._mark_timed_out(record, {key: seen})
            return None
        wait = record.not_before - self._clock()
        if wait > 0:
            return wait
        self._pending.mark_dirty(key)
        return await self._capacities.refresh_group(seen)

    def _mark_timed_out(self, record: AdmissionRecord, gangs: Mapping[PodGroupKey, GroupSnapshot]) -> None:
        """Koordinator's gangs are not retried, and their pods are marked so."""
        if record.retry:
            return
        for key, seen in gangs.items():
            self._ungater.mark_timed_out(key, [it for it in seen.members if it.alive and not it.timed_out])
