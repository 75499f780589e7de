"""Virtual time: waiting is free, real sockets, TLS and threads still work, and a loop that cannot go on raises."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time

import aiohttp
import pytest
from aiohttp import web

from jobset_gate.fake.clock import Deadlock, Livelock, Overrun, VirtualLoop, run_virtual


async def _slow_answer(request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.sleep(float(request.query["seconds"]))
    return web.Response(text="done")


class _Server:
    """An HTTP server that answers after the seconds of the query."""

    async def __aenter__(self) -> str:
        self._runner = web.ServerRunner(web.Server(_slow_answer, keepalive_timeout=1e9))
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


def test_time_passes_at_its_pace_for_people_to_look_on() -> None:
    began = time.monotonic()
    assert run_virtual(asyncio.sleep(100.0, "slept"), pace=0.001) == "slept"
    assert time.monotonic() - began >= 0.1


def test_time_does_not_jump_over_a_request_that_is_being_answered() -> None:
    """A client's timeout is the only timer: a thousand quick requests must not run into it, nor one that takes long."""

    async def main() -> float:
        timeout = aiohttp.ClientTimeout(total=30)
        async with _Server() as url, aiohttp.ClientSession(timeout=timeout) as session:
            for _ in range(1000):
                async with session.get(f"{url}?seconds=0") as answer:
                    assert await answer.text() == "done"
            assert asyncio.get_running_loop().time() < 30
            async with session.get(f"{url}?seconds=29") as answer:
                assert await answer.text() == "done"
        return asyncio.get_running_loop().time()

    assert 29 <= run_virtual(main()) < 59


def test_threads_are_waited_for_in_real_time() -> None:
    """Work in an executor is finished before the next timer, however far that is."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(5):
            await loop.run_in_executor(None, hashlib.pbkdf2_hmac, "sha256", b"", b"", 200_000)
        return loop.time()

    assert run_virtual(main()) == 0


def test_nothing_left_to_happen_is_a_deadlock_that_names_the_waiting_tasks() -> None:
    async def waits_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    loop = VirtualLoop(deadlock_seconds=0.01)
    task = loop.create_task(waits_for_ever(), name="the one that waits")
    with pytest.raises(Deadlock, match=r"the one that waits: .*test_clock\.py"):
        loop.run_until_complete(task)
    _drop(loop, task)


def test_a_loop_that_never_lets_time_pass_is_a_livelock() -> None:
    async def spins() -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)

    loop = VirtualLoop(stall_seconds=0.05)
    task = loop.create_task(spins())
    with pytest.raises(Livelock, match="virtual second 0"):
        loop.run_until_complete(task)
    _drop(loop, task)


def test_waiting_for_what_never_comes_ends_at_the_limit() -> None:
    """A periodic timer keeps the loop alive; the limit ends it."""

    async def main() -> None:
        for _ in itertools.count():
            await asyncio.sleep(60)

    loop = VirtualLoop(limit=3600)
    task = loop.create_task(main())
    with pytest.raises(Overrun, match="3600 were allowed"):
        loop.run_until_complete(task)
    _drop(loop, task)


def _drop(loop: VirtualLoop, task: asyncio.Task[None]) -> None:
    """End a loop that has raised."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
