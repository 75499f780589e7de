"""The simulated controllers' reconcile loop, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

from jobset_gate.fake.clock import run_virtual
from jobset_gate.fake.loop import Loop
from jobset_gate.fake.objects import Key
from jobset_gate.kube.errors import ServerError

A: Key = ("default", "a")
B: Key = ("default", "b")


class Reconciler:
    """Notes when it was called; `errors` is how often it raises first."""

    def __init__(self, *, seconds: float = 0.0, errors: int = 0) -> None:
        self.calls: list[tuple[float, Key]] = []
        self.busy: set[Key] = set()
        self._seconds = seconds
        self._errors = errors

    async def __call__(self, key: Key) -> None:
        assert key not in self.busy
        self.busy.add(key)
        self.calls.append((asyncio.get_running_loop().time(), key))
        await asyncio.sleep(self._seconds)
        self.busy.discard(key)
        if len(self.calls) <= self._errors:
            raise ServerError(500)


def tell(story: Callable[[Loop], Awaitable[None]], reconciler: Reconciler, *, reaction: float = 0.0) -> None:
    async def main() -> None:
        loop = Loop("test", reconciler, reaction=reaction, workers=4)
        running = asyncio.create_task(loop.run())
        await story(loop)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_virtual(main())


def test_changes_within_the_reaction_time_are_seen_as_one() -> None:
    seen = Reconciler()

    async def story(loop: Loop) -> None:
        for _ in range(3):
            loop.add(A)
            await asyncio.sleep(1)
        loop.add(B)
        await asyncio.sleep(20)

    tell(story, seen, reaction=5.0)
    assert seen.calls == [(5.0, A), (8.0, B)]


def test_a_key_is_reconciled_by_one_worker_at_a_time_and_again_if_it_changed_meanwhile() -> None:
    seen = Reconciler(seconds=10)

    async def story(loop: Loop) -> None:
        loop.add(A)
        loop.add(B)
        await asyncio.sleep(1)
        loop.add(A)
        loop.add(A)
        await asyncio.sleep(50)

    tell(story, seen)
    assert seen.calls == [(0.0, A), (0.0, B), (10.0, A)]


def test_failures_are_repeated_ever_more_slowly() -> None:
    seen = Reconciler(errors=3)

    async def story(loop: Loop) -> None:
        loop.add(A)
        await asyncio.sleep(60)

    tell(story, seen)
    times = [at for at, _ in seen.calls]
    assert [round(later - at, 6) for at, later in pairwise(times)] == [0.01, 0.02, 0.04]


def test_a_paused_loop_catches_up_when_it_is_resumed() -> None:
    seen = Reconciler()

    async def story(loop: Loop) -> None:
        loop.pause()
        loop.add(A)
        await asyncio.sleep(30)
        loop.add(A)
        assert seen.calls == []
        loop.resume()
        await asyncio.sleep(1)

    tell(story, seen)
    assert seen.calls == [(30.0, A)]


def test_an_earlier_appointment_stands() -> None:
    seen = Reconciler()

    async def story(loop: Loop) -> None:
        loop.add_after(A, 10)
        loop.add_after(A, 30)
        loop.add_after(B, 30)
        loop.add_after(B, 10)
        await asyncio.sleep(60)

    tell(story, seen)
    assert seen.calls == [(10.0, A), (10.0, B)]
