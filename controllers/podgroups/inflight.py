"""Admissions from the choice until the record is written: what they assume, no other group gets meanwhile (G3)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.pending import PendingQueue
from controllers.podgroups.record_store import OutcomeUnknown, RecordStore
from jobset_gate import names
from jobset_gate.kube.errors import KubeError, NotLeader
from jobset_gate.podgroups.candidate import Admit, AdmittedGroup, CapacityCheck
from jobset_gate.podgroups.cycle import admitted_group
from jobset_gate.podgroups.evaluate import new_record
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.workqueue import Requeue

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
        self._metrics.observe_admission(record.how, admission.candidate.ready_since)
        for key in keys:
            self._pending.set_reason(key, None)
            self._enqueue(key)


def admission_mode(check: CapacityCheck, *, native: bool) -> AdmissionMode:
    """How groups are admitted that need no try."""
    if native:
        return AdmissionMode.NATIVE
    return AdmissionMode.OFF if check is CapacityCheck.OFF else AdmissionMode.FIT
