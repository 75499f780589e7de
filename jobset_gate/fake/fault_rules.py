"""The words in which faults are ordered: which requests a rule means, how often it strikes, what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobset_gate.kube.resources import Resource

if TYPE_CHECKING:
    from jobset_gate.fake.apiserver.requests import ApiRequest

WRITES = ("create", "update", "patch", "delete", "deletecollection")
ALWAYS = 2**62


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests a rule means; everything left out means any.

    verbs: get, list, watch, create, update, patch, delete, deletecollection. subresource: "" is the object itself.
    agent: what the client's User-Agent starts with. when: a last question about the request.
    """

    resource: Resource | None = None
    verbs: tuple[str, ...] = ()
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    agent: str = ""
    when: Callable[[ApiRequest], bool] | None = None

    def __call__(self, call: ApiRequest) -> bool:
        target = call.target
        return (
            (self.resource is None or target.kind.key == (self.resource.group, self.resource.plural))
            and (not self.verbs or call.verb in self.verbs)
            and self.namespace in (None, target.namespace)
            and self.name in (None, target.name)
            and self.subresource in (None, target.subresource)
            and call.agent.startswith(self.agent)
            and (self.when is None or self.when(call))
        )


ANY = Match()


@dataclass(slots=True)
class Rule:
    """One ordered fault. times: strikes left; `struck` counts those done. `cancel()` ends it early."""

    match: Match
    times: int
    skip: int = 0
    struck: int = 0

    def strikes(self, call: ApiRequest) -> bool:
        """Whether it strikes now; counts."""
        if self.times <= 0 or not self.match(call):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        self.struck += 1
        return True

    def cancel(self) -> None:
        self.times = 0


@dataclass(slots=True)
class Fail(Rule):
    """Answer with this status instead of doing anything."""

    status: int = 500
    retry_after: int | None = None
    message: str = "an ordered fault"
    body: bytes | None = None


@dataclass(slots=True)
class Delay(Rule):
    """Wait this many seconds, then go on."""

    seconds: float = 0.0


@dataclass(slots=True)
class Hang(Rule):
    """Never answer; `released` lets the request go on after all. after: act first, then keep the answer."""

    after: bool = False
    released: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Cut(Rule):
    """Close the connection without an answer. after: act first (the write is done, its writer never hears of it)."""

    after: bool = False


@dataclass(slots=True)
class OnWrite(Rule):
    """Call back after a write was stored and before its answer goes out."""

    call_back: Callable[[ApiRequest], None] = lambda _: None


@dataclass(slots=True)
class Garble(Rule):
    """Turn the lines of one change in a watch into other lines (none: dropped)."""

    change: Callable[[bytes], list[bytes]] = lambda line: [line]


@dataclass(slots=True)
class Reorder(Rule):
    """Send the lines of two consecutive changes in the wrong order."""

    held: dict[int, bytes] = field(default_factory=dict)

    def swapped(self, call: ApiRequest, line: bytes) -> list[bytes]:
        """The first of two lines is held back until the second has gone."""
        watch = id(call)
        if watch not in self.held:
            self.held[watch] = line
            return []
        return [line, self.held.pop(watch)]
