"""Faults on request: rules that make the embedded API server fail, wait, hang or fall silent.

A rule says which requests it matches (`Match`) and how often it applies. Everything is deterministic: the outcome
depends on the order of requests only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from typing_extensions import override

from jobset_gate.kube.resources import Resource
from jobset_gate_demo.fake.apiserver.reads import Watch
from jobset_gate_demo.fake.apiserver.requests import ApiRequest
from jobset_gate_demo.fake.apiserver.responses import StatusError
from jobset_gate_demo.fake.apiserver.server import RequestHooks

WRITES = ("create", "update", "patch", "delete")
ALWAYS = 2**62


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests a rule applies to; everything left out means any.

    verbs: get, list, watch, create, update, patch, delete. subresource: "" is the object itself. agent: what the
    client's User-Agent starts with. when: a last condition.
    """

    resource: Resource | None = None
    verbs: tuple[str, ...] = ()
    namespace: str | None = None
    subresource: str | None = None
    agent: str = ""
    when: Callable[[ApiRequest], bool] | None = None

    def __call__(self, request: ApiRequest) -> bool:
        target = request.target
        return (
            (self.resource is None or target.kind.key == (self.resource.group, self.resource.plural))
            and (not self.verbs or request.verb in self.verbs)
            and self.namespace in (None, target.namespace)
            and self.subresource in (None, target.subresource)
            and request.agent.startswith(self.agent)
            and (self.when is None or self.when(request))
        )


ANY = Match()


@dataclass(slots=True)
class Rule:
    """times: how often it still applies; `struck`: how often it has applied.

    released: what a request that hangs waits for.
    """

    match: Match
    times: int = 1
    struck: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def strikes(self, request: ApiRequest) -> bool:
        """Whether it applies now; counts."""
        if self.times <= 0 or not self.match(request):
            return False
        self.times -= 1
        self.struck += 1
        return True

    def cancel(self) -> None:
        self.times = 0


Effect = Callable[[ApiRequest], Awaitable[None]]
"""Waits, or raises what the client gets instead of an answer."""


class Faults(RequestHooks):
    def __init__(self) -> None:
        super().__init__()
        self._before: list[tuple[Rule, Effect]] = []
        self._after_write: list[tuple[Rule, Callable[[ApiRequest], None]]] = []
        self._silent: set[Watch] = set()

    # --- Requests -----------------------------------------------------------------------------------------------------

    def fail(self, match: Match = ANY, *, status: int = 500, times: int = 1, retry_after: int | None = None) -> Rule:
        """The next `times` matching requests get this status."""

        async def refuse(_: ApiRequest) -> None:
            raise StatusError(status, "an injected fault", retry_after=retry_after)

        return self._before_request(Rule(match, times), refuse)

    def hang(self, match: Match = ANY, *, times: int = 1) -> Rule:
        """No answer until `released` of the rule is set."""
        rule = Rule(match, times)

        async def wait(_: ApiRequest) -> None:
            await rule.released.wait()

        return self._before_request(rule, wait)

    def on_write(self, call_back: Callable[[ApiRequest], None], match: Match = ANY, *, times: int = 1) -> Rule:
        """Call back right after a matching write, before its writer gets the answer."""
        rule = Rule(match, times)
        self._after_write.append((rule, call_back))
        return rule

    # --- Watches ------------------------------------------------------------------------------------------------------

    def close_watches(self) -> int:
        """Those now open; returns how many."""
        found = tuple(self.watches)
        for watch in found:
            watch.close()
        return len(found)

    def silence(self, match: Match = ANY) -> int:
        """Half-open: the matching watches now open send nothing any more, not even their end. Returns how many."""
        found = [watch for watch, request in self.watches.items() if match(request)]
        self._silent.update(found)
        return len(found)

    # --- The server's side --------------------------------------------------------------------------------------------

    @override
    async def before(self, request: ApiRequest) -> None:
        for rule, effect in tuple(self._before):
            if rule.strikes(request):
                await effect(request)

    @override
    def after(self, request: ApiRequest) -> None:
        for rule, call_back in tuple(self._after_write):
            if request.verb in WRITES and rule.strikes(request):
                call_back(request)

    @override
    def is_silent(self, watch: Watch) -> bool:
        return watch in self._silent

    def _before_request(self, rule: Rule, effect: Effect) -> Rule:
        self._before.append((rule, effect))
        return rule
