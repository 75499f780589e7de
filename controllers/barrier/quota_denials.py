"""Rejected pod creations of waiting gangs, which only Events report (A9).

A pod that exists shows in its status why it waits. A pod that a ResourceQuota or an admission webhook rejected never
exists, and the controller of its owner reports that in FailedCreate Events alone. They are listed per namespace, once a
gang has missed pods for a while.
"""

import math
from collections.abc import Iterable, Mapping

import msgspec
import structlog

from controllers.barrier.live_reader import LiveReader, creator_kind
from jobset_gate.barrier.missing import is_not_created
from jobset_gate.barrier.model import GangKey, GangSnapshot, MissingByReason
from jobset_gate.kube.errors import RequestFailed
from jobset_gate.runtime.clock import monotonic

FIRST_POLL_AFTER = 10.0
"""Seconds in which a controller usually creates its pods."""
POLL_EVERY = 60.0

_Scope = tuple[str, str]
"""Namespace and kind."""

_log = structlog.get_logger(__name__)


class QuotaDenials:
    """The latest denials of each namespace, by the kind of the objects that create pods."""

    def __init__(self, live_reader: LiveReader) -> None:
        self._live_reader = live_reader
        self._missing_since: dict[GangKey, tuple[float, _Scope]] = {}
        self._known: dict[_Scope, tuple[float, Mapping[str, str]]] = {}

    def with_denials(self, seen: GangSnapshot) -> GangSnapshot:
        """The snapshot with the known denials of its Jobs."""
        _, known = self._known.get((seen.workload.namespace, creator_kind(seen)), (0.0, None))
        if not known:
            return seen
        denials = tuple((job.name, known[job.name]) for job in seen.jobs if job.name in known)
        return msgspec.structs.replace(seen, denials=denials) if denials else seen

    async def poll_denials(self, key: GangKey, missing: Iterable[MissingByReason], kind: str = "Job") -> float | None:
        """Lists denials if the gang has missed pods that objects of this kind should have created for long enough.

        Returns seconds to the next pass: 0 if the denials changed, None if no such pod is missing.
        """
        if not any(map(is_not_created, missing)):
            self.forget_gang(key)
            return None
        now = monotonic()
        scope = key.namespace, kind
        listed_at, known = self._known.get(scope, (-math.inf, {}))
        since, _ = self._missing_since.setdefault(key, (now, scope))
        wait = max(since + FIRST_POLL_AFTER, listed_at + POLL_EVERY) - now
        if wait > 0:
            return wait
        try:
            denials: Mapping[str, str] = await self._live_reader.list_denials(*scope)
        except RequestFailed as error:
            _log.warning("events not read, the condition says less", namespace=key.namespace, error=str(error))
            denials = known  # only messages depend on it
        self._known[scope] = now, denials
        return POLL_EVERY if denials == known else 0.0

    def forget_gang(self, key: GangKey) -> None:
        """No such pod is missing, or the gang is gone."""
        _, scope = self._missing_since.pop(key, (0.0, None))
        if scope is not None and all(scope != other for _, other in self._missing_since.values()):
            self._known.pop(scope, None)
