"""Tells by Events what has happened to groups: each fact once, none of it too often, and no old news (G5)."""

import math
from collections.abc import Callable, Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.event_model import GroupEvent
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.rate_limiter import RateLimiter
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference

MAX_EVENT_AGE: Final = 600.0
"""Seconds after which a fact is no news: another leader has told it."""
EVENT_SPACING: Final = 30.0
"""Seconds between two Events of one reason about one group."""

MAX_REMEMBERED: Final = 1000
"""Facts of one group; one may have new pods and new words for years."""

EventIdentity = tuple[str, str, str]
"""Of a fact on an object: its reason, what makes it the same fact, and the object's UID."""


class PodGroupEventWriter:
    """Remembers what was told of each group. `clock` dates Events, `patience` is a clock that nobody sets."""

    def __init__(
        self,
        client: Client,
        clock: Callable[[], float],
        pace: RateLimiter,
        *,
        patience: Callable[[], float] = monotonic,
    ) -> None:
        self._clock, self._pace, self._patience = clock, pace, patience
        self._recorder = EventRecorder(client, names.PROGRAM, clock)
        self._told: dict[PodGroupKey, set[EventIdentity]] = {}
        self._last: dict[tuple[PodGroupKey, str], tuple[str, float]] = {}
        """Which fact of a reason was told last, and when."""

    def due_in(self, report: GroupStatus, managers: tuple[str, ...] = ()) -> float | None:
        """Seconds until something is to be told: 0 now, None nothing."""
        waits = [self._wait(report, fact) for fact in _facts(report, managers) if self._is_news(report, fact)]
        return min(waits, default=None)

    async def write_events(self, report: GroupStatus, managers: tuple[str, ...] = ()) -> None:
        """Tells what is due."""
        for fact in _facts(report, managers):
            if self._is_news(report, fact) and self._wait(report, fact) <= 0:
                await self._tell(report, fact)

    def forget_group(self, key: PodGroupKey) -> None:
        """Nothing is left of the group."""
        self._told.pop(key, None)
        for one in [it for it in self._last if it[0] == key]:
            del self._last[one]

    def _is_news(self, report: GroupStatus, fact: GroupEvent) -> bool:
        if fact.occurred_at is not None and self._clock() - fact.occurred_at > MAX_EVENT_AGE:
            return False
        told = self._told.get(report.key, set())
        return any(_name(fact, it) not in told for it in _about(report, fact))

    def _wait(self, report: GroupStatus, fact: GroupEvent) -> float:
        once, at = self._last.get((report.key, fact.reason), ("", -math.inf))
        pause = 0.0 if once == fact.dedup_key else at + EVENT_SPACING - self._patience()
        return max(0.0, fact.not_before - self._clock(), pause)

    async def _tell(self, report: GroupStatus, fact: GroupEvent) -> None:
        told = self._told.setdefault(report.key, set())
        if len(told) > MAX_REMEMBERED:
            told.clear()  # what is told once more has the name that it had: nobody sees it twice
        for about in _about(report, fact):
            name = _name(fact, about)
            if name in told:
                continue
            await self._pace.acquire()
            await self._recorder.record(about, fact.reason, fact.message, fact=" ".join(name), warning=fact.warning)
            told.add(name)
        self._last[report.key, fact.reason] = fact.dedup_key, self._patience()


def _facts(report: GroupStatus, managers: tuple[str, ...]) -> Iterator[GroupEvent]:
    yield from report.events
    if managers:
        who = ", ".join(managers)
        text = f"{who} writes this status, so jobset-gate only reads it; its own word is in {names.POD_GROUP_STATE}"
        yield GroupEvent(reason=names.REASON_STATUS_NOT_OURS, message=text, dedup_key=who)


def _about(report: GroupStatus, fact: GroupEvent) -> Iterator[ObjectReference]:
    said = report.pod_group
    if fact.on_group and said is not None:
        version = f"{said.api}/{names.POD_GROUP_VERSION}"
        yield ObjectReference(version, names.POD_GROUP, said.name, said.namespace, said.uid)
    for pod in fact.pods:
        yield ObjectReference("v1", "Pod", pod.name, pod.namespace, pod.uid)


def _name(fact: GroupEvent, about: ObjectReference) -> EventIdentity:
    return fact.reason, fact.dedup_key, about.uid
