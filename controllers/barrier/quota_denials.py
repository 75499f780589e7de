"""Rejected pod creations of waiting gangs, which only Events report (A9).

A pod that exists shows in its status why it waits. A pod that a ResourceQuota or an admission webhook rejected never
exists, and the Job controller reports that in FailedCreate Events alone. They are listed per namespace, once a gang has
missed pods for a while.
"""

import math
from collections.abc import Iterable, Mapping

import msgspec
import structlog

from controllers.barrier.live_reader import LiveReader
from jobset_gate.barrier.missing import NOT_CREATED_YET
from jobset_gate.barrier.model import GangKey, GangSnapshot, MissingByReason, PendingReason
from jobset_gate.kube.errors import ApiError, InvalidResponse, Unreachable
from jobset_gate.runtime.clock import monotonic

FIRST_POLL_AFTER = 10.0
"""Seconds in which a Job usually creates its pods."""
POLL_EVERY = 60.0

_log = structlog.get_logger(__name__)


class QuotaDenials:
    """The latest denials of each namespace."""

    def __init__(self, live_reader: LiveReader) -> None:
        self._live_reader = live_reader
        self._missing_since: dict[GangKey, float] = {}
        self._by_namespace: dict[str, tuple[float, Mapping[str, str]]] = {}

    def with_denials(self, seen: GangSnapshot) -> GangSnapshot:
        """The snapshot with the known denials of its Jobs."""
        _, known = self._by_namespace.get(seen.workload.namespace, (0.0, None))
        if not known:
            return seen
        denials = tuple((job.name, known[job.name]) for job in seen.jobs if job.name in known)
        return msgspec.structs.replace(seen, denials=denials) if denials else seen

    async def poll_denials(self, key: GangKey, missing: Iterable[MissingByReason]) -> float | None:
        """Lists denials if the gang has missed pods that its Jobs should have created for long enough.

        Returns seconds to the next pass: 0 if the denials changed, None if no such pod is missing.
        """
        if not any(it.reason == PendingReason.QUOTA_DENIED or it.message == NOT_CREATED_YET for it in missing):
            self.forget_gang(key)
            return None
        now = monotonic()
        listed_at, known = self._by_namespace.get(key.namespace, (-math.inf, {}))
        wait = max(self._missing_since.setdefault(key, now) + FIRST_POLL_AFTER, listed_at + POLL_EVERY) - now
        if wait > 0:
            return wait
        try:
            denials: Mapping[str, str] = await self._live_reader.list_denials(key.namespace)
        except (ApiError, InvalidResponse, Unreachable) as error:
            _log.warning("events not read, the condition says less", namespace=key.namespace, error=str(error))
            denials = known  # only messages depend on it
        self._by_namespace[key.namespace] = now, denials
        return POLL_EVERY if denials == known else 0.0

    def forget_gang(self, key: GangKey) -> None:
        """No such pod is missing, or the gang is gone."""
        if self._missing_since.pop(key, None) is not None and not any(
            it.namespace == key.namespace for it in self._missing_since
        ):
            self._by_namespace.pop(key.namespace, None)
