"""Groups that are not admitted: evictions, back-offs of closed groups, owners of pending ones (G4)."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from controllers.podgroups.evictor import Evictor
from controllers.podgroups.native import NativePodGroups
from controllers.podgroups.owners import OwnerCapacities
from controllers.podgroups.pending import PendingQueue
from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.ungater import Ungater
from jobset_gate.podgroups import deadline
from jobset_gate.podgroups.model import PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, narrow_record
from jobset_gate.podgroups.snapshot import GroupSnapshot

BLOCKED_RETRY_SECONDS: Final = 30.0
"""Until a blocked eviction is tried again, if none of its objects changes before."""

RECORD_KEPT_SECONDS: Final = 300.0
"""How long the record of a group without members outlives its back-off: its owner may be about to recreate them."""


class EvictionReconciler:
    """`enqueue`: reconcile another group."""

    def __init__(
        self,
        store: RecordStore,
        ungater: Ungater,
        evictor: Evictor,
        capacities: OwnerCapacities,
        pending: PendingQueue,
        *,
        native: NativePodGroups | None,
        enqueue: Callable[[PodGroupKey], None],
        clock: Callable[[], float],
    ) -> None:
        self._store, self._ungater, self._evictor, self._capacities = store, ungater, evictor, capacities
        self._pending, self._native, self._enqueue, self._clock = pending, native, enqueue, clock
        self.blocked: dict[PodGroupKey, str] = {}
        """Why evictions do not get on."""
        self._suspended: dict[PodGroupKey, tuple[str, int]] = {}
        """Label and generation of groups whose owners may be suspended until they are closed or gone."""
        self._recreated: set[PodGroupKey] = set()
        """Groups that are not retried, and have had new members since, or whose members only their user creates."""
        self._bare: set[PodGroupKey] = set()
        """Evicted groups whose pods have no controller."""

    async def advance(
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
            not_before=self._clock() + deadline.eviction_backoff(record.rolled_back),
            rolled_back=record.rolled_back + 1,
        )
        await self._store.write_record(seen, closed)
        if not record.retry:
            self._recreated |= self._bare & set(gangs)
        self._bare -= set(gangs)
        for key, _ in mine.gangs:
            self._enqueue(key)
        return 0.0

    async def reconcile_pending(self, key: PodGroupKey, seen: GroupSnapshot) -> float | None:
        """A group that was never admitted, or whose record is gone."""
        await self.resume_owners(key)
        return await self._capacities.refresh_group(seen)

    async def reconcile_closed(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> float | None:
        """A group that was evicted, or has ended: owners are resumed, and the record is deleted in time."""
        self._ungater.set_desired(key, (), record.generation)
        await self.resume_owners(key)
        if seen.members:
            return await self._reconcile_members(key, seen, record)
        kept_until = record.not_before + RECORD_KEPT_SECONDS
        if record.rolled_back and key not in self._recreated and self._clock() < kept_until:
            return kept_until - self._clock()
        self._recreated.discard(key)
        if not record.retry or (seen.record_ref is not None and not seen.record_ref.api):
            await self.close_group(key, seen, record)
        return None

    async def close_group(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """All members are gone: deletes the record, or resets it on a PodGroup."""
        if not seen.members and seen.record_ref is not None and not seen.record_ref.api:
            await self._store.delete_record(seen.record_ref)
            return
        ended = msgspec.structs.replace(
            record, stage=AdmissionState.CLOSED, rolled_back=0, not_before=0.0, retry=True, why="", satisfied=None
        )
        await self._store.write_record(seen, ended)
        self._pending.mark_dirty(key)

    async def resume_owners(self, key: PodGroupKey) -> None:
        """Resumes the owners that this process has suspended for the group; see ResumeSweeper for all others."""
        suspended = self._suspended.get(key)
        if suspended is not None:
            await self._evictor.resume_owners(*suspended, key.namespace)
            del self._suspended[key]

    def forget_group(self, key: PodGroupKey) -> None:
        """Drops the state of a group that is gone."""
        self._recreated.discard(key)
        self._bare.discard(key)
        self.blocked.pop(key, None)
        self._capacities.forget_group(key)

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
