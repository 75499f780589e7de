"""Hears what a quota says of pods that nobody makes, while their gang still waits: only Events tell it (A9).

Of pods that exist their own status tells why they wait. Those that a quota or an admission refuses never come to be,
and the Job controller says so in Events alone. They are asked for when a gang has lacked such pods for a while, once
for all gangs of a namespace.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import msgspec
import structlog

from controllers.closer import Closer
from controllers.keys import Key
from controllers.ticks import ticks
from jobset_gate.kube.errors import ApiError, BadAnswer, Unreachable
from jobset_gate.lack import Lack
from jobset_gate.missing import UNMADE
from jobset_gate.model import GangSeen, Why

PATIENCE = 10.0
"""Seconds in which pods are usually made; so long nobody is asked."""
EVERY = 60.0
"""Seconds between two questions about one namespace."""

_log = structlog.get_logger(__name__)


class Hearing:
    """What was heard of each namespace. `clock` is one that nobody sets."""

    def __init__(self, closer: Closer, clock: Callable[[], float] = ticks) -> None:
        self._closer, self._clock = closer, clock
        self._lacking: dict[Key, float] = {}
        self._heard: dict[str, tuple[float, Mapping[str, str]]] = {}

    def known(self, seen: GangSeen) -> GangSeen:
        """The gang with what is known of its Jobs; mostly that is nothing."""
        _, words = self._heard.get(seen.jobset.namespace, (0.0, None))
        if not words:
            return seen
        denials = tuple((job.name, words[job.name]) for job in seen.jobs if job.name in words)
        return msgspec.structs.replace(seen, denials=denials) if denials else seen

    async def listen(self, key: Key, lacks: Iterable[Lack]) -> float | None:
        """Asks, if this gang has lacked pods for long enough that its Jobs should have made.

        Returns the seconds after which to look at it again: 0 if there is news; None if it lacks none.
        """
        if not any(lack.why == Why.QUOTA_DENIED or lack.detail == UNMADE for lack in lacks):
            self.forget(key)
            return None
        now = self._clock()
        at, words = self._heard.get(key.namespace, (-math.inf, {}))
        wait = max(self._lacking.setdefault(key, now) + PATIENCE, at + EVERY) - now
        if wait > 0:
            return wait
        try:
            told: Mapping[str, str] = await self._closer.refusals(key.namespace)
        except (ApiError, BadAnswer, Unreachable) as error:
            _log.warning("events not read, the condition says less", namespace=key.namespace, error=str(error))
            told = words  # it costs words, nothing else
        self._heard[key.namespace] = now, told
        return EVERY if told == words else 0.0

    def forget(self, key: Key) -> None:
        """It lacks no such pods, or is nobody's business any more."""
        if self._lacking.pop(key, None) is not None and not any(it.namespace == key.namespace for it in self._lacking):
            self._heard.pop(key.namespace, None)
