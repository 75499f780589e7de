"""Decisions, from their choice till they are written: what they promise is nobody else's meanwhile (G3)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from controllers.podgroups.backoff import TOLERATED_CONFLICTS, AdmissionBackoff
from controllers.podgroups.pending import PendingQueue, PodGroupReader
from controllers.podgroups.record_store import OutcomeUnknown, RecordStore
from jobset_gate.kube.errors import KubeError, NotLeader
from jobset_gate.podgroups.candidate import Admit, AdmittedGroup, CapacityCheck
from jobset_gate.podgroups.cycle import admitted_group
from jobset_gate.podgroups.decision import new_record
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate.settings import Groups, Native

ADMISSION_WRITES: Final = 16
"""Decisions that are being written at once: each of them soon has the pods of a whole group to open."""

REREAD_SECONDS: Final = 1.0
"""Seconds after which the API is asked again what stands, when nobody knows whether a decision was written."""

_log = structlog.get_logger(__name__)


class InflightAdmissions:
    """By the first group of each; `look` asks for another look at a group."""

    def __init__(
        self,
        index: PodGroupReader,
        records: RecordStore,
        settings: Groups,
        check: CapacityCheck,
        lobby: PendingQueue,
        *,
        now: Callable[[], float],
        told: Callable[[PodGroupKey], None],
        opened: Callable[[AdmissionMode, float], None],
        look: Callable[[PodGroupKey], None],
    ) -> None:
        self._index, self._records, self._lobby = index, records, lobby
        self._native, self._check = settings.native, check
        self._now, self._told, self._opened, self._look = now, told, opened, look
        self._deciding: dict[PodGroupKey, Admit] = {}
        self._setbacks = AdmissionBackoff()
        self._at_once = asyncio.Semaphore(ADMISSION_WRITES)
        self.changes = 0
        """How often what is being decided was found different."""

    @property
    def assumed(self) -> Sequence[AdmittedGroup]:
        """What was chosen and is being written counts as open."""
        return [admitted_group(it, self._now()) for it in self._deciding.values()]

    def is_inflight(self, lead: PodGroupKey) -> bool:
        """Whether one on this group is being written."""
        return lead in self._deciding

    def is_backing_off(self, lead: PodGroupKey) -> bool:
        """Whether one on this group could not be written, and is not to be tried again yet."""
        return self._setbacks.holds(lead)

    def why_backing_off(self, lead: PodGroupKey) -> GroupReason | None:
        """What is said of that."""
        return self._setbacks.told(lead)

    def assume(self, verdict: Admit) -> None:
        """This was chosen, and is going to be written."""
        self._deciding[verdict.candidate.key] = verdict
        self.changes += 1

    async def write_admission(self, verdict: Admit) -> None:
        """Writes a decision. Whatever comes of it, the group is looked at again."""
        lead = verdict.candidate.key
        try:
            async with self._at_once:
                await self._put_down(verdict)
        except Requeue as lost:
            _log.debug("decision not taken", group=lead.path, why=str(lost))
            self._set_back(lead, lost, excused=TOLERATED_CONFLICTS)
        except NotLeader:
            raise
        except OutcomeUnknown as doubt:
            await self._clear_up(doubt)
        except KubeError as error:
            _log.error("decision not written", group=lead.path, error=str(error))
            self._set_back(lead, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours that shows on one group must not stop the others
            _log.error("decision not written", group=lead.path, error=repr(error), exc_info=error)
            self._set_back(lead, error)
        else:
            self._setbacks.forget(lead)
        finally:
            del self._deciding[lead]
            self.changes += 1
            for demand in verdict.candidate.requests:
                self._look(demand.key)

    def _set_back(self, lead: PodGroupKey, why: Exception, *, excused: int = 0) -> None:
        pause = self._setbacks.note(lead, str(why), excused=excused)
        if pause > 0:
            asyncio.get_running_loop().call_later(pause, self._look, lead)

    async def _clear_up(self, doubt: OutcomeUnknown) -> None:
        """Perhaps it was written: its room stays promised until the API has said."""
        while True:
            _log.error("decision in doubt", group=doubt.key.path, error=str(doubt))
            await asyncio.sleep(REREAD_SECONDS)
            try:
                await self._records.reread_record(doubt)
            except NotLeader:
                raise
            except KubeError as error:
                _log.debug("record not read", group=doubt.key.path, error=str(error))
            else:
                return

    async def _put_down(self, verdict: Admit) -> None:
        now, keys = self._now(), [it.key for it in verdict.candidate.requests]
        still = self._lobby.candidate(keys[0], now)
        if still is None or [it.key for it in still.requests] != keys:
            raise Requeue(f"group {keys[0].path} has changed")
        seen = [it for key in keys if (it := self._index.snapshot(key)) is not None]
        record = new_record(seen, self._how(verdict), now)
        await self._records.write_record(seen[0], record)
        _log.info("group opened", group=keys[0].path, generation=record.generation, how=record.how.value)
        self._opened(record.how, verdict.candidate.ready_since)
        for key in keys:
            self._lobby.set_reason(key, None)
            self._told(key)

    def _how(self, verdict: Admit) -> AdmissionMode:
        if self._native is Native.ON:
            return AdmissionMode.NATIVE
        if self._check is CapacityCheck.OFF:
            return AdmissionMode.OFF
        return AdmissionMode.FIT if verdict.proven else AdmissionMode.PROBE
