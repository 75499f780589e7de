"""Faults on request: rules that make the embedded API server fail, wait, hang, fall silent or corrupt a watch.

A rule says which requests it matches (`Match`) and how often it applies; the first that matches applies. Everything is
deterministic: the outcome depends on the order of requests only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from jobset_gate.kube.resources import Resource

if TYPE_CHECKING:
    from jobset_gate.fake.apiserver.requests import ApiRequest
    from jobset_gate.fake.apiserver.watches import Watch

WRITES = ("create", "update", "patch", "delete", "deletecollection")
ALWAYS = 2**62
_EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests a rule applies to; everything left out means any.

    verbs: get, list, watch, create, update, patch, delete, deletecollection. subresource: "" is the object itself.
    agent: what the client's User-Agent starts with. when: a last condition.
    """

    resource: Resource | None = None
    verbs: tuple[str, ...] = ()
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    agent: str = ""
    when: Callable[[ApiRequest], bool] | None = None

    def __call__(self, request: ApiRequest) -> bool:
        target = request.target
        return (
            (self.resource is None or target.kind.key == (self.resource.group, self.resource.plural))
            and (not self.verbs or request.verb in self.verbs)
            and self.namespace in (None, target.namespace)
            and self.name in (None, target.name)
            and self.subresource in (None, target.subresource)
            and request.agent.startswith(self.agent)
            and (self.when is None or self.when(request))
        )


ANY = Match()


@dataclass(slots=True)
class Rule:
    """times: how often it still applies, after `skip` matches; `struck`: how often it has applied."""

    match: Match
    times: int
    skip: int = 0
    struck: int = 0

    def strikes(self, request: ApiRequest) -> bool:
        """Whether it applies now; counts."""
        if self.times <= 0 or not self.match(request):
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
    """Answer with this status instead of serving the request."""

    status: int = 500
    retry_after: int | None = None
    message: str = "an injected fault"
    body: bytes | None = None


@dataclass(slots=True)
class Delay(Rule):
    """Wait this many seconds, then serve the request."""

    seconds: float = 0.0


@dataclass(slots=True)
class Hang(Rule):
    """No answer until `released` is set. after: serve first, then keep the answer."""

    after: bool = False
    released: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class OnWrite(Rule):
    """Call back after a write was stored and before its answer goes out."""

    call_back: Callable[[ApiRequest], None] = lambda _: None


@dataclass(slots=True)
class Rewrite(Rule):
    """Replace the line of a watch event by other lines (none: dropped)."""

    change: Callable[[bytes], list[bytes]] = lambda line: [line]


@dataclass(slots=True)
class Reorder(Rule):
    """Swap two consecutive lines of a watch."""

    held: dict[int, bytes] = field(default_factory=dict)

    def swapped(self, request: ApiRequest, line: bytes) -> list[bytes]:
        watch = id(request)
        if watch not in self.held:
            self.held[watch] = line
            return []
        return [line, self.held.pop(watch)]


R = TypeVar("R", bound=Rule)


class Faults:
    """All rules of one API server, and its open watches."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.watches: dict[Watch, ApiRequest] = {}
        self._silent: set[Watch] = set()

    # --- Requests -----------------------------------------------------------------------------------------------------

    def fail(
        self,
        match: Match = ANY,
        *,
        status: int = 500,
        times: int = 1,
        skip: int = 0,
        retry_after: int | None = None,
        message: str = "an injected fault",
        body: bytes | None = None,
    ) -> Fail:
        """The next `times` matching requests (after `skip` of them) get this status; `body` replaces the Status."""
        return self._add(Fail(match, times, skip, 0, status, retry_after, message, body))

    def delay(self, match: Match = ANY, *, seconds: float, times: int = ALWAYS, skip: int = 0) -> Delay:
        return self._add(Delay(match, times, skip, 0, seconds))

    def hang(self, match: Match = ANY, *, times: int = 1, skip: int = 0, after: bool = False) -> Hang:
        return self._add(Hang(match, times, skip, 0, after))

    def on_write(
        self, call_back: Callable[[ApiRequest], None], match: Match = ANY, *, nth: int = 1, times: int = 1
    ) -> OnWrite:
        """Call back right after the nth matching write, before its writer gets the answer."""
        return self._add(OnWrite(match, times, nth - 1, 0, call_back))

    # --- Watches ------------------------------------------------------------------------------------------------------

    def drop_events(self, match: Match = ANY, *, times: int = 1, skip: int = 0) -> Rewrite:
        return self._add(Rewrite(match, times, skip, 0, lambda _: []))

    def double_events(self, match: Match = ANY, *, times: int = 1, skip: int = 0) -> Rewrite:
        return self._add(Rewrite(match, times, skip, 0, lambda line: [line, line]))

    def tear_events(self, match: Match = ANY, *, times: int = 1, skip: int = 0) -> Rewrite:
        """Only the first half of the line is sent, then its end of line."""
        return self._add(Rewrite(match, times, skip, 0, lambda line: [line[: len(line) // 2] + b"\n"]))

    def reorder_events(self, match: Match = ANY, *, times: int = 1, skip: int = 0) -> Reorder:
        """Two consecutive events of a watch change places, `times` times."""
        return self._add(Reorder(match, 2 * times, 2 * skip))

    def expire(self, match: Match = ANY) -> int:
        """An ERROR event 410 in all open matching watches, which then end. Returns how many."""
        self._each(match, lambda watch: watch.push(_EXPIRED))
        return self.close_watches(match)

    def close_watches(self, match: Match = ANY) -> int:
        """End all open matching watches cleanly; returns how many."""
        return self._each(match, lambda watch: watch.close())

    def silence(self, match: Match = ANY) -> int:
        """Half-open: the matching watches now open send nothing any more, not even their end. Returns how many."""
        return self._each(match, self._silent.add)

    # --- The server's side --------------------------------------------------------------------------------------------

    async def before(self, request: ApiRequest) -> Fail | None:
        """Runs before a request is served. A Fail is the answer."""
        for rule in tuple(self.rules):
            if isinstance(rule, Fail) and rule.strikes(request):
                return rule
            if isinstance(rule, Delay) and rule.strikes(request):
                await asyncio.sleep(rule.seconds)
            elif isinstance(rule, Hang) and not rule.after and rule.strikes(request):
                await rule.released.wait()
        return None

    async def after(self, request: ApiRequest) -> None:
        """Runs when a request is done and before its answer goes out."""
        for rule in tuple(self.rules):
            if isinstance(rule, OnWrite) and request.verb in WRITES and rule.strikes(request):
                rule.call_back(request)
            elif isinstance(rule, Hang) and rule.after and rule.strikes(request):
                await rule.released.wait()

    def watch_lines(self, request: ApiRequest, line: bytes) -> list[bytes]:
        """The bytes that an event becomes in one watch."""
        for rule in self.rules:
            if isinstance(rule, Rewrite) and rule.strikes(request):
                return rule.change(line)
            if isinstance(rule, Reorder) and rule.strikes(request):
                return rule.swapped(request, line)
        return [line]

    def is_silent(self, watch: Watch) -> bool:
        return watch in self._silent

    def _each(self, match: Match, act: Callable[[Watch], None]) -> int:
        found = [watch for watch, request in self.watches.items() if match(request)]
        for watch in found:
            act(watch)
        return len(found)

    def _add(self, rule: R) -> R:
        self.rules.append(rule)
        return rule
