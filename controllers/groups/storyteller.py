"""Tells by Events what has happened to groups: each fact once, none of it too often, and no old news (G5)."""

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Final

from controllers.groups.pace import Pace
from controllers.ticks import ticks
from jobset_gate import names
from jobset_gate.groups.fact import Fact
from jobset_gate.groups.model import Key
from jobset_gate.groups.report import Report
from jobset_gate.kube import events
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.events import Ref

OLD: Final = 600.0
"""Seconds after which a fact is no news: another leader has told it."""
SPACING: Final = 30.0
"""Seconds between two Events of one reason about one group."""

REMEMBERED: Final = 1000
"""Facts of one group; one may have new pods and new words for years."""

Name = tuple[str, str, str]
"""Of a fact on an object: its reason, what makes it the same fact, and the object's UID."""


class Storyteller:
    """Remembers what was told of each group. `clock` dates Events, `patience` is a clock that nobody sets."""

    def __init__(
        self, client: Client, clock: Callable[[], float], pace: Pace, *, patience: Callable[[], float] = ticks
    ) -> None:
        self._client, self._clock, self._pace, self._patience = client, clock, pace, patience
        self._told: dict[Key, set[Name]] = {}
        self._last: dict[tuple[Key, str], tuple[str, float]] = {}
        """Which fact of a reason was told last, and when."""

    def due_in(self, report: Report, managers: tuple[str, ...] = ()) -> float | None:
        """Seconds until something is to be told: 0 now, None nothing."""
        waits = [self._wait(report, fact) for fact in _facts(report, managers) if self._is_news(report, fact)]
        return min(waits, default=None)

    async def tell(self, report: Report, managers: tuple[str, ...] = ()) -> None:
        """Tells what is due."""
        for fact in _facts(report, managers):
            if self._is_news(report, fact) and self._wait(report, fact) <= 0:
                await self._tell(report, fact)

    def forget(self, key: Key) -> None:
        """Nothing is left of the group."""
        self._told.pop(key, None)
        for one in [it for it in self._last if it[0] == key]:
            del self._last[one]

    def _is_news(self, report: Report, fact: Fact) -> bool:
        if fact.at is not None and self._clock() - fact.at > OLD:
            return False
        told = self._told.get(report.key, set())
        return any(_name(fact, it) not in told for it in _about(report, fact))

    def _wait(self, report: Report, fact: Fact) -> float:
        once, at = self._last.get((report.key, fact.reason), ("", -math.inf))
        pause = 0.0 if once == fact.once else at + SPACING - self._patience()
        return max(0.0, fact.due - self._clock(), pause)

    async def _tell(self, report: Report, fact: Fact) -> None:
        told = self._told.setdefault(report.key, set())
        if len(told) > REMEMBERED:
            told.clear()  # what is told once more has the name that it had: nobody sees it twice
        for about in _about(report, fact):
            name = _name(fact, about)
            if name in told:
                continue
            await self._pace.turn()
            await self._emit(about, fact, name)
            told.add(name)
        self._last[report.key, fact.reason] = fact.once, self._patience()

    async def _emit(self, about: Ref, fact: Fact, name: Name) -> None:
        digest = hashlib.sha256(" ".join(name).encode()).hexdigest()[:16]
        try:
            await events.emit(
                self._client,
                regarding=about,
                type="Warning" if fact.warning else "Normal",
                reason=fact.reason,
                message=fact.message,
                name=f"{about.name[:200]}.{digest}",
                reporting_component=names.PROGRAM,
                now=self._clock(),
            )
        except NotFound:
            return  # the namespace is gone


def _facts(report: Report, managers: tuple[str, ...]) -> Iterator[Fact]:
    yield from report.facts
    if managers:
        who = ", ".join(managers)
        text = f"{who} writes this status, so jobset-gate only reads it; its own word is in {names.GANG_STATE}"
        yield Fact(reason=names.REASON_STATUS_NOT_OURS, message=text, once=who)


def _about(report: Report, fact: Fact) -> Iterator[Ref]:
    said = report.pod_group
    if fact.on_group and said is not None:
        version = f"{said.api}/{names.POD_GROUP_VERSION}"
        yield Ref(version, names.POD_GROUP, said.name, said.namespace, said.uid)
    for pod in fact.pods:
        yield Ref("v1", "Pod", pod.name, pod.namespace, pod.uid)


def _name(fact: Fact, about: Ref) -> Name:
    return fact.reason, fact.once, about.uid
