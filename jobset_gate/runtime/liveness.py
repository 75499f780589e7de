"""Whether this process is worth keeping: what /healthz asks.

The kubelet kills what fails here, so nothing may that another process would suffer from as well: no API server, no
lease, caches that are not full. What fails is a part that has ended while the rest goes on without it, and a worker
that does not come back. An event loop that hangs needs no rule: it does not answer the probe.
"""

import asyncio
from collections.abc import Callable
from typing import Any

HealthCheck = Callable[[], str]
"""Says why a part of the leader does not do its work; "" if it does."""


class LivenessCheck:
    """Told of all parts; `check` is the answer, "" while all is well."""

    def __init__(self, leading: asyncio.Event) -> None:
        self._leading = leading
        self._tasks: list[asyncio.Task[Any]] = []
        self._parts: tuple[HealthCheck, ...] = ()

    def watch_task(self, task: asyncio.Task[Any]) -> None:
        """With this task all others are to end, and the process with them."""
        self._tasks.append(task)

    def add_checks(self, *parts: HealthCheck) -> None:
        """Who else is asked while this replica leads."""
        self._parts += parts

    def check(self) -> str:
        """What is wrong."""
        for task in self._tasks:
            if task.done() and (task.cancelled() or task.exception() is not None):
                return f"{task.get_name()} has ended and the rest goes on"
        if self._leading.is_set():
            return next((trouble for part in self._parts if (trouble := part())), "")
        return ""
