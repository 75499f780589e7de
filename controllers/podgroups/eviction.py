"""The way back of a group, and what is left of it: its owners go on, its record is kept as long as it counts (G4)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from controllers.podgroups.owner_capacity import OwnerCapacities
from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.ungater import Ungater
from jobset_gate.podgroups import deadline
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, narrow_record
from jobset_gate.podgroups.snapshot import GroupSnapshot

BLOCKED_RETRY_SECONDS: Final = 30.0
"""Seconds after which a way back that is blocked is tried again without being asked."""

RECORD_KEPT_SECONDS: Final = 300.0
"""How long the record of a group without members is kept after its back-off: its owner may be about to make them."""


class EvictionOutcome(Protocol):
    """The end of a way back."""

    @property
    def blocked(self) -> tuple[str, ...]:
        """Pods that cannot be taken back."""

    @property
    def why(self) -> str:
        """Why not."""


class EvictionBackend(Protocol):
    """Whoever takes members back."""

    async def advance_eviction(
        self, seen: Sequence[GroupSnapshot], record: AdmissionRecord
    ) -> "EvictionOutcome | float":
        """One step; gives the seconds until the next, or the end."""

    async def resume_owners(self, label: str, generation: int, namespace: str) -> None:
        """Lets owners that were suspended for it go on."""


class NativeBackend(Protocol):
    """Whoever gives groups to the scheduler's own gangs."""

    async def hand_over_group(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """Once all gates are gone."""

    async def delete_pod_group(self, seen: GroupSnapshot) -> None:
        """Before its members are taken back."""

    def forget_group(self, key: PodGroupKey) -> None:
        """Nothing is left of it."""


class EvictionReconciler:
    """Deals with groups that are being taken back, and with those that are closed."""

    def __init__(
        self,
        *,
        records: RecordStore,
        gates: Ungater,
        rollbacks: EvictionBackend,
        makers: OwnerCapacities,
        native: NativeBackend | None,
        now: Callable[[], float],
        wake: Callable[[PodGroupKey], None],
        look: Callable[[PodGroupKey], None],
    ) -> None:
        self._records, self._gates, self._rollbacks, self._makers = records, gates, rollbacks, makers
        self._native, self._now, self._wake, self._look = native, now, wake, look
        self._suspended: dict[PodGroupKey, tuple[str, int]] = {}
        """Labels and generations whose owners may be suspended: they are to go on once it is closed, or gone."""
        self._refilled: set[PodGroupKey] = set()
        """Groups given up that have had members since, or that nobody makes members of but their user."""
        self._bare: set[PodGroupKey] = set()
        """Groups that are being taken back and have nothing but pods that nobody made."""

    async def advance(
        self, seen: GroupSnapshot, record: AdmissionRecord, parts: Mapping[PodGroupKey, GroupSnapshot]
    ) -> tuple[float | None, str]:
        """One step. Returns the seconds until the next, and what is in its way."""
        for each, it in parts.items():
            await self._gates.stop_group(each)
            if self._native is not None and record.how is AdmissionMode.NATIVE:
                await self._native.delete_pod_group(it)
            self._note_bare(each, it)
        # A record may name gangs of other namespaces that were never in it, and know nothing of it.
        mine = narrow_record(record, lambda key: key in parts or key.namespace == seen.group.key.namespace)
        # Also of a gang whose PodGroup is gone: its pods are taken back with the others.
        self._suspended |= {each: (group_label(each), generation) for each, generation in mine.gangs}
        answer = await self._rollbacks.advance_eviction(list(parts.values()), mine)
        if isinstance(answer, int | float):
            return float(answer), ""
        if answer.blocked:
            self._mark_given_up(record, parts)
            return BLOCKED_RETRY_SECONDS, answer.why or ", ".join(answer.blocked)
        pause = deadline.eviction_backoff(record.rolled_back)
        closed = msgspec.structs.replace(
            record, stage=AdmissionState.CLOSED, not_before=self._now() + pause, rolled_back=record.rolled_back + 1
        )
        await self._records.write_record(seen, closed)
        if not record.retry:
            self._refilled |= self._bare & set(parts)
        self._bare -= set(parts)
        for each, _ in mine.gangs:
            self._wake(each)
        return 0.0, ""

    async def reconcile_closed(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> float | None:
        """Taken back, or over: its owners go on, and what is left of it is cleared away in time."""
        self._gates.stop_ungating(key)
        await self.resume_owners(key)
        if seen.members:
            return await self._waits(key, seen, record)
        now = self._now()
        forgiven = not record.rolled_back or key in self._refilled or now >= record.not_before + RECORD_KEPT_SECONDS
        if not forgiven:
            return record.not_before + RECORD_KEPT_SECONDS - now
        self._refilled.discard(key)
        if not record.retry or (seen.record_ref is not None and not seen.record_ref.api):
            await self.close_group(key, seen, record)
        return None

    async def close_group(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """All of its members are gone."""
        if not seen.members and seen.record_ref is not None and not seen.record_ref.api:
            await self._records.delete_record(key, seen.record_ref)
            return
        ended = msgspec.structs.replace(
            record, stage=AdmissionState.CLOSED, rolled_back=0, not_before=0.0, retry=True, why="", satisfied=None
        )
        await self._records.write_record(seen, ended)
        self._look(key)

    async def resume_owners(self, key: PodGroupKey) -> None:
        """Lets owners go on that were suspended from here; those of a process before this one had their turn first."""
        found = self._suspended.get(key)
        if found is not None:
            await self._rollbacks.resume_owners(*found, key.namespace)
            del self._suspended[key]

    def forget_group(self, key: PodGroupKey) -> None:
        """Nothing is left of it."""
        self._refilled.discard(key)
        self._bare.discard(key)

    def _note_bare(self, key: PodGroupKey, seen: GroupSnapshot) -> None:
        makers = [it.controller for it in seen.members]
        if any(makers):
            self._bare.discard(key)
        elif makers:
            self._bare.add(key)

    async def _waits(self, key: PodGroupKey, seen: GroupSnapshot, record: AdmissionRecord) -> float | None:
        if record.retry:
            left = record.not_before - self._now()
            if left > 0:
                return left
            self._look(key)
            return await self._makers.refresh_group(seen)
        self._refilled.add(key)
        self._mark_given_up(record, {key: seen})
        return None

    def _mark_given_up(self, record: AdmissionRecord, parts: Mapping[PodGroupKey, GroupSnapshot]) -> None:
        """Koordinator's gangs are not tried again, and their pods say so."""
        if record.retry:
            return
        for key, seen in parts.items():
            self._gates.mark_timed_out(key, [it for it in seen.members if it.alive and not it.timed_out])
