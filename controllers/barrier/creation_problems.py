"""Why missing pods of waiting gangs are not created, which no watch shows (A9, K8).

A pod that exists shows in its status why it waits. A pod that a ResourceQuota or an admission webhook rejected never
exists: its owner's controller reports that in FailedCreate Events alone, which are listed per namespace. And the owner
may never have enough pods at once: a StatefulSet is read, other owners are known from the pods' ownerReferences. Both
once a gang has missed pods for a while.
"""

import math
from collections.abc import Iterable, Mapping

import msgspec
import structlog

from controllers.barrier.live_reader import LiveReader, creator_kind
from jobset_gate.barrier.missing import is_not_created
from jobset_gate.barrier.model import GangKey, GangSnapshot, MissingByReason
from jobset_gate.kube.errors import RequestFailed
from jobset_gate.kube.resources import STATEFUL_SETS
from jobset_gate.runtime.clock import monotonic
from jobset_gate.sources import startgroup

FIRST_POLL_AFTER = 10.0
"""Seconds in which a controller usually creates its pods."""
FIRST_READ_AFTER = 5.0
"""The same of a StatefulSet with enough replicas."""
POLL_EVERY = 60.0

_Scope = tuple[str, str]
"""Namespace and kind."""

_log = structlog.get_logger(__name__)


class CreationProblems:
    """The latest denials of each namespace, by the kind of the objects that create pods; and what owners said last."""

    def __init__(self, live_reader: LiveReader) -> None:
        self._live_reader = live_reader
        self._missing_since: dict[GangKey, tuple[float, _Scope]] = {}
        self._denials: dict[_Scope, tuple[float, Mapping[str, str]]] = {}
        self._owners: dict[GangKey, tuple[float, str]] = {}
        """When the owner was read last, and why the gang cannot gather."""

    def with_known(self, seen: GangSnapshot) -> GangSnapshot:
        """The snapshot with the known denials of its Jobs, and what is known of its owner."""
        _, known = self._denials.get((seen.workload.namespace, creator_kind(seen)), (0.0, {}))
        _, why = self._owners.get(seen.workload.key, (0.0, ""))
        denials = tuple((job.name, known[job.name]) for job in seen.jobs if job.name in known)
        return msgspec.structs.replace(seen, denials=denials, cannot_gather=why) if denials or why else seen

    async def poll(self, seen: GangSnapshot, missing: Iterable[MissingByReason]) -> float | None:
        """Reads what the gang's missing pods make necessary by now.

        Returns seconds to the next pass: 0 if something changed, None if no such pod is missing.
        """
        key = seen.workload.key
        if not any(map(is_not_created, missing)):
            self.forget_gang(key)
            return None
        now = monotonic()
        since, _ = self._missing_since.setdefault(key, (now, (key.namespace, creator_kind(seen))))
        return min(await self._poll_denials(key, since, now), await self._poll_owner(seen, since, now))

    def forget_gang(self, key: GangKey) -> None:
        """No such pod is missing, or the gang is gone."""
        self._owners.pop(key, None)
        _, scope = self._missing_since.pop(key, (0.0, None))
        if scope is not None and all(scope != other for _, other in self._missing_since.values()):
            self._denials.pop(scope, None)

    async def _poll_denials(self, key: GangKey, since: float, now: float) -> float:
        _, scope = self._missing_since[key]
        listed_at, known = self._denials.get(scope, (-math.inf, {}))
        wait = max(since + FIRST_POLL_AFTER, listed_at + POLL_EVERY) - now
        if wait > 0:
            return wait
        denials = known  # only messages depend on it
        try:
            denials = await self._live_reader.list_denials(*scope)
        except RequestFailed as error:
            _log.warning("events not read, the condition says less", namespace=key.namespace, error=str(error))
        self._denials[scope] = now, denials
        return POLL_EVERY if denials == known else 0.0

    async def _poll_owner(self, seen: GangSnapshot, since: float, now: float) -> float:
        key, owner = seen.workload.key, seen.workload.owner
        if owner is None or (owner.api_version, owner.kind) != (STATEFUL_SETS.api_version, STATEFUL_SETS.kind):
            return math.inf
        read_at, known = self._owners.get(key, (-math.inf, ""))
        wait = max(since + FIRST_READ_AFTER, read_at + POLL_EVERY) - now
        if wait > 0:
            return wait
        why = known
        try:
            found = await self._live_reader.get_stateful_set(owner.name, key.namespace)
            why = startgroup.lacks_capacity(found, seen.workload)
        except RequestFailed as error:
            _log.warning("owner not read, the condition says less", **key.log_fields(), error=str(error))
        self._owners[key] = now, why
        return POLL_EVERY if why == known else 0.0
