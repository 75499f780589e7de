"""Virtual time: an event loop whose clock jumps to the next timer when no socket has anything to say.

Clients, servers, TLS and watches over loopback sockets in one process are real, only waiting is free. Threads of
`loop.run_in_executor` are waited for in real time. Not supported: subprocesses and anything else outside of the
process, since virtual minutes would pass before it answers.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

from typing_extensions import override

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = 1_767_225_600.0
"""The start of virtual wall clocks: 2026-01-01T00:00:00Z, a whole second, as a kubelet writes it."""
SHORT_JUMP = 0.25
"""Virtual seconds: before a shorter jump there is no real waiting, since a late packet does no harm."""
GRACE = 0.005
"""Real seconds to wait for a late loopback packet before a longer jump, if there is any socket."""
MOMENT = 2e-9
"""The least virtual seconds until a timer. asyncio treats what is due within its clock's resolution, a nanosecond, as
due now: code that waits for the rest of a time would be woken without end."""


class _Selector(selectors.DefaultSelector):
    """Asks the sockets first; only when all are silent does it let the loop's time jump instead of sleeping."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self._loop.threads_at_work:
            return super().select(None)
        sockets = len(self.get_map()) > 1  # the first is the loop's own pipe
        return super().select(GRACE if sockets and timeout >= SHORT_JUMP else 0) or self._pass(timeout)

    def _pass(self, seconds: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Virtual time passes, at its pace if it has one; a signal may end that early."""
        pace, began = self._loop.pace, time.monotonic()
        ready = super().select(seconds * pace) if pace else []
        passed = (time.monotonic() - began) / pace if ready else seconds
        self._loop.advance(min(seconds, passed))
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is virtual and starts at 0.

    pace: real seconds that a virtual one takes at least, for a user who watches; 0: it passes at once.
    """

    def __init__(self, *, pace: float = 0.0) -> None:
        self.pace = pace
        self.threads_at_work = 0
        self._now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._now

    @override
    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        if 0.0 < when - self._now < MOMENT:
            when = self._now + MOMENT
        return super().call_at(when, callback, *args, context=context)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once."""
        self._now += seconds

    def run_in_executor(
        self, executor: concurrent.futures.Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self.threads_at_work += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: asyncio.Future[Any]) -> None:
        self.threads_at_work -= 1


class VirtualClock:
    """The wall clock that belongs to a virtual loop: `clock()` gives seconds since 1970, like time.time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: float = EPOCH) -> None:
        self._loop = loop
        self._epoch = epoch

    def __call__(self) -> float:
        return self._epoch + self._loop.time()


def current_clock() -> Callable[[], float]:
    """The running loop's clock if its time is virtual, else the wall's."""
    loop = asyncio.get_running_loop()
    return VirtualClock(loop) if isinstance(loop, VirtualLoop) else time.time


def run_virtual(main: Coroutine[Any, Any, T], *, pace: float = 0.0) -> T:
    """asyncio.run in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(pace=pace)) as runner:
        return runner.run(main)
