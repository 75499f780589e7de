"""Hears what a quota says of pods that nobody makes, while their gang still waits: only Events tell it (A9).

Of pods that exist their own status tells why they wait. Those that a quota or an admission refuses never come to be,
and the Job controller says so in Events alone. They are asked for when a gang has lacked such pods for a while, once
for all gangs of a namespace.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import msgspec
import structlog

from controllers.barrier.gang_key import GangKey
from controllers.barrier.live_reader import LiveReader
from jobset_gate.barrier.missing_model import MissingByReason
from jobset_gate.barrier.missing_slots import NOT_CREATED_YET
from jobset_gate.barrier.model import GangSnapshot, PendingReason
from jobset_gate.kube.errors import ApiError, InvalidResponse, Unreachable
from jobset_gate.runtime.clock import monotonic

FIRST_POLL_AFTER = 10.0
"""Seconds in which pods are usually made; so long nobody is asked."""
POLL_EVERY = 60.0
"""Seconds between two questions about one namespace."""

_log = structlog.get_logger(__name__)


class QuotaDenials:
    """What was heard of each namespace. `clock` is one that nobody sets."""

    def __init__(self, live_reader: LiveReader, clock: Callable[[], float] = monotonic) -> None:
        self._live_reader, self._clock = live_reader, clock
        self._missing_since: dict[GangKey, float] = {}
        self._by_namespace: dict[str, tuple[float, Mapping[str, str]]] = {}

    def with_denials(self, seen: GangSnapshot) -> GangSnapshot:
        """The gang with what is known of its Jobs; mostly that is nothing."""
        _, words = self._by_namespace.get(seen.jobset.namespace, (0.0, None))
        if not words:
            return seen
        denials = tuple((job.name, words[job.name]) for job in seen.jobs if job.name in words)
        return msgspec.structs.replace(seen, denials=denials) if denials else seen

    async def poll_denials(self, key: GangKey, missing: Iterable[MissingByReason]) -> float | None:
        """Asks, if this gang has lacked pods for long enough that its Jobs should have made.

        Returns the seconds after which to look at it again: 0 if there is news; None if it lacks none.
        """
        if not any(lack.reason == PendingReason.QUOTA_DENIED or lack.message == NOT_CREATED_YET for lack in missing):
            self.forget_gang(key)
            return None
        now = self._clock()
        at, words = self._by_namespace.get(key.namespace, (-math.inf, {}))
        wait = max(self._missing_since.setdefault(key, now) + FIRST_POLL_AFTER, at + POLL_EVERY) - now
        if wait > 0:
            return wait
        try:
            told: Mapping[str, str] = await self._live_reader.list_denials(key.namespace)
        except (ApiError, InvalidResponse, Unreachable) as error:
            _log.warning("events not read, the condition says less", namespace=key.namespace, error=str(error))
            told = words  # it costs words, nothing else
        self._by_namespace[key.namespace] = now, told
        return POLL_EVERY if told == words else 0.0

    def forget_gang(self, key: GangKey) -> None:
        """It lacks no such pods, or is nobody's business any more."""
        if self._missing_since.pop(key, None) is not None and not any(
            it.namespace == key.namespace for it in self._missing_since
        ):
            self._by_namespace.pop(key.namespace, None)
