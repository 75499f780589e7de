"""Faults to order: rules that make the embedded API server fail, wait, hang, fall silent or talk rubbish.

A rule says which requests it means (`Match`) and how often it strikes; the first that matches strikes. Everything is
deterministic: what happens depends on the order of requests only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from jobset_gate.fake.fault_rules import (
    ALWAYS,
    ANY,
    WRITES,
    Cut,
    Delay,
    Fail,
    Garble,
    Hang,
    Match,
    OnWrite,
    Reorder,
    Rule,
)

if TYPE_CHECKING:
    from jobset_gate.fake.apiserver.requests import ApiRequest
    from jobset_gate.fake.apiserver.watches import Watch

R = TypeVar("R", bound=Rule)

__all__ = [
    "ALWAYS",
    "ANY",
    "WRITES",
    "Cut",
    "Delay",
    "Dropped",
    "Fail",
    "Faults",
    "Garble",
    "Hang",
    "Match",
    "OnWrite",
    "Reorder",
    "Rule",
]


class Dropped(Exception):
    """An order to the HTTP edge: close the connection without an answer."""


class Faults:
    """All rules of one API server, and the watches that are open."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.watches: dict[Watch, ApiRequest] = {}
        self._silent: set[Watch] = set()

    # Requests

    def fail(
        self,
        match: Match = ANY,
        *,
        status: int = 500,
        times: int = 1,
        skip: int = 0,
        retry_after: int | None = None,
        message: str = "an ordered fault",
        body: bytes | None = None,
    ) -> Fail:
        """The next `times` matching requests (after `skip` of them) get this status; `body` replaces the Status."""
        return self._add(Fail(match, times, skip, 0, status, retry_after, message, body))

    def delay(self, match: Match = ANY, *, seconds: float, times: int = ALWAYS, skip: int = 0) -> Delay:
        return self._add(Delay(match, times, skip, 0, seconds))

    def hang(self, match: Match = ANY, *, times: int = 1, skip: int = 0, after: bool = False) -> Hang:
        """No answer until `rule.released.set()`."""
        return self._add(Hang(match, times, skip, 0, after))

    def cut(self, match: Match = ANY, *, times: int = 1, skip: int = 0, after: bool = False) -> Cut:
        return self._add(Cut(match, times, skip, 0, after))

    def on_write(
        self, call_back: Callable[[ApiRequest], None], match: Match = ANY, *, nth: int = 1, times: int = 1
    ) -> OnWrite:
        """The kill switch: call back right after the nth matching write, before its writer hears of it."""
        return self._add(OnWrite(match, times, nth - 1, 0, call_back))

    # Watches

    def garble(
        self, change: Callable[[bytes], list[bytes]], match: Match = ANY, *, times: int = 1, skip: int = 0
    ) -> Garble:
        """Replace the line of a change by other bytes."""
        return self._add(Garble(match, times, skip, 0, change))

    def drop_events(self, match: Match = ANY, *, times: int = 1, skip: int = 0) -> Garble:
        return self.garble(lambda _: [], match, times=times, skip=skip)

    def double_events(self, match: Match = ANY, *, times: int = 1, skip: int = 0) -> Garble:
        return self.garble(lambda line: [line, line], match, times=times, skip=skip)

    def tear_events(self, match: Match = ANY, *, times: int = 1, skip: int = 0) -> Garble:
        """Only the first half of the line comes, then its end of line."""
        return self.garble(lambda line: [line[: len(line) // 2] + b"\n"], match, times=times, skip=skip)

    def reorder_events(self, match: Match = ANY, *, times: int = 1, skip: int = 0) -> Reorder:
        """Two consecutive changes of a watch change places, `times` times."""
        return self._add(Reorder(match, 2 * times, 2 * skip))

    def inject(self, line: bytes, match: Match = ANY) -> int:
        """Send a line of one's own into all open matching watches; returns to how many."""
        return self._each(match, lambda watch: watch.push(line))

    def error_event(self, body: bytes, match: Match = ANY) -> int:
        """An ERROR event with this object."""
        return self.inject(b'{"type":"ERROR","object":%s}\n' % body, match)

    def expire(self, match: Match = ANY) -> int:
        """An ERROR event 410 in all open matching watches, which then end."""
        gone = (
            b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version",'
            b'"reason":"Expired","code":410}'
        )
        self.error_event(gone, match)
        return self.close_watches(match)

    def close_watches(self, match: Match = ANY) -> int:
        """End all open matching watches cleanly; returns how many."""
        return self._each(match, lambda watch: watch.close())

    def silence(self, match: Match = ANY) -> int:
        """Half-open: the matching watches now open say nothing any more, not even their end. Returns how many.

        Watches opened afterwards are not touched.
        """
        return self._each(match, self._silent.add)

    def clear(self) -> None:
        """Forget all rules; what is silent stays silent."""
        self.rules.clear()

    # The server's side

    async def before(self, call: ApiRequest) -> Fail | None:
        """Called before a request is served. A Fail is the answer; Dropped closes the connection."""
        for rule in tuple(self.rules):
            if isinstance(rule, Fail) and rule.strikes(call):
                return rule
            if isinstance(rule, Delay) and rule.strikes(call):
                await asyncio.sleep(rule.seconds)
            elif isinstance(rule, Hang) and not rule.after and rule.strikes(call):
                await rule.released.wait()
            elif isinstance(rule, Cut) and not rule.after and rule.strikes(call):
                raise Dropped
        return None

    async def after(self, call: ApiRequest) -> None:
        """Called when a request is done and before its answer goes out."""
        for rule in tuple(self.rules):
            if isinstance(rule, OnWrite) and call.verb in WRITES and rule.strikes(call):
                rule.call_back(call)
            elif isinstance(rule, Hang) and rule.after and rule.strikes(call):
                await rule.released.wait()
            elif isinstance(rule, Cut) and rule.after and rule.strikes(call):
                raise Dropped

    def watch_lines(self, call: ApiRequest, line: bytes) -> list[bytes]:
        """The bytes that a change becomes in one watch."""
        for rule in self.rules:
            if isinstance(rule, Garble) and rule.strikes(call):
                return rule.change(line)
            if isinstance(rule, Reorder) and rule.strikes(call):
                return rule.swapped(call, line)
        return [line]

    def is_silent(self, watch: Watch) -> bool:
        return watch in self._silent

    def _each(self, match: Match, act: Callable[[Watch], None]) -> int:
        found = [watch for watch, call in self.watches.items() if match(call)]
        for watch in found:
            act(watch)
        return len(found)

    def _add(self, rule: R) -> R:
        self.rules.append(rule)
        return rule
