"""Many calls at once, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from jobset_gate.kube.errors import AlreadyExists

Call = Callable[[], Awaitable[object]]


async def run_bounded(limit: asyncio.Semaphore, calls: Iterable[Call]) -> None:
    """Make all calls; the first error is raised once all have ended, AlreadyExists only if there is no other."""

    async def one(call: Call) -> None:
        async with limit:
            await call()

    outcomes = await asyncio.gather(*(one(call) for call in calls), return_exceptions=True)
    # A name that is taken may be a work of our own that the cache does not show yet: what else failed comes first.
    problems = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    problems.sort(key=lambda problem: isinstance(problem, AlreadyExists))
    if problems:
        raise problems[0]
