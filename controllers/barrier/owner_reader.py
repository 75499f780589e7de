"""Whether the owner of a waiting gang's pods can ever have enough of them at once (K8).

Only a StatefulSet is read: other owners are known from the pods' ownerReferences alone.
"""

import msgspec
import structlog

from controllers.barrier.live_reader import LiveReader
from jobset_gate.barrier.missing import is_not_created
from jobset_gate.barrier.model import GangKey, GangSnapshot, MissingByReason
from jobset_gate.kube.errors import RequestFailed
from jobset_gate.kube.resources import STATEFUL_SETS
from jobset_gate.runtime.clock import monotonic
from jobset_gate.sources import startgroup

FIRST_READ_AFTER = 5.0
"""Seconds in which a StatefulSet with enough replicas usually creates its pods."""
READ_EVERY = 60.0

_log = structlog.get_logger(__name__)


class OwnerReader:
    """What the owners of waiting gangs said last; each is read once a minute at most."""

    def __init__(self, live_reader: LiveReader) -> None:
        self._live_reader = live_reader
        self._known: dict[GangKey, tuple[float, str]] = {}
        """When the owner was read last, or when it was to be read first; and why the gang cannot gather."""

    def with_capacity(self, seen: GangSnapshot) -> GangSnapshot:
        """The snapshot with what is known of its owner."""
        _, why = self._known.get(seen.workload.key, (0.0, ""))
        return msgspec.structs.replace(seen, cannot_gather=why) if why else seen

    async def poll_owner(self, seen: GangSnapshot, missing: tuple[MissingByReason, ...]) -> float | None:
        """Reads the owner if the gang has missed pods that do not exist for long enough.

        Returns seconds to the next pass: 0 if the answer changed, None if no pass is needed for it.
        """
        key, owner = seen.workload.key, seen.workload.owner
        if owner is None or (owner.api_version, owner.kind) != (STATEFUL_SETS.api_version, STATEFUL_SETS.kind):
            return None
        if not any(map(is_not_created, missing)):
            self.forget_gang(key)
            return None
        now = monotonic()
        due, known = self._known.setdefault(key, (now + FIRST_READ_AFTER, ""))
        if now < due:
            return due - now
        why = known
        try:
            found = await self._live_reader.get_stateful_set(owner.name, key.namespace)
        except RequestFailed as error:
            _log.warning("owner not read, the condition says less", **key.log_fields(), error=str(error))
        else:
            why = startgroup.lacks_capacity(found, seen.workload)
        self._known[key] = now + READ_EVERY, why
        return READ_EVERY if why == known else 0.0

    def forget_gang(self, key: GangKey) -> None:
        """No such pod is missing, or the gang is gone."""
        self._known.pop(key, None)
