"""/healthz, /readyz and /metrics over plain HTTP, and what /healthz checks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from jobset_gate.runtime.connections import ConnectionLimiter, ConnectionLimits

LIMITS: Final = ConnectionLimits(connections=64)
"""For a kubelet and a few scrapers, each with one connection."""

IDLE: Final = 120.0
"""Seconds that a connection may be idle: longer than between two scrapes."""
SHUTDOWN_TIMEOUT: Final = 1.0
"""Seconds for requests in progress when the server stops."""

HealthCheck = Callable[[], str]
"""Returns what is wrong, "" if nothing is."""


class HealthServer:
    """The server; `url` once it is started."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        healthy: HealthCheck,
        ready: HealthCheck,
        limits: ConnectionLimits = LIMITS,
    ) -> None:
        self._connections = ConnectionLimiter(limits)
        self._registry, self._healthy, self._ready = registry, healthy, ready

    @property
    def url(self) -> str:
        """Without a path; "" before it is started."""
        return self._connections.url

    async def start(self, host: str, port: int) -> None:
        """Listens; port 0 takes a free one. Raises OSError if the port is taken."""
        app = web.Application(middlewares=[self._connections.middleware])
        app.add_routes(
            [
                web.get("/healthz", _probe(self._healthy)),
                web.get("/readyz", _probe(self._ready)),
                web.get("/metrics", self._metrics),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_TIMEOUT, keepalive_timeout=IDLE)
        await self._connections.listen(runner, host, port)

    async def stop(self) -> None:
        await self._connections.stop()

    async def _metrics(self, _: web.Request) -> web.Response:
        return metrics_response(self._registry)


class LivenessCheck:
    """Whether this process should go on: `check` is for /healthz.

    The kubelet kills a process that fails it, so it covers only what a restart mends: a task that has ended while the
    others go on, and a stuck worker. The API server, the lease and empty caches are none of these. An event loop that
    hangs does not answer the probe.
    """

    def __init__(self, leading: asyncio.Event) -> None:
        self._leading = leading
        self._tasks: list[asyncio.Task[Any]] = []
        self._checks: tuple[HealthCheck, ...] = ()

    def watch_task(self, task: asyncio.Task[Any]) -> None:
        """When this task fails the whole process is to end."""
        self._tasks.append(task)

    def add_checks(self, *checks: HealthCheck) -> None:
        """Further checks while this replica leads."""
        self._checks += checks

    def check(self) -> str:
        """What is wrong, "" if nothing is."""
        for task in self._tasks:
            if task.done() and (task.cancelled() or task.exception() is not None):
                return f"{task.get_name()} has ended and the rest goes on"
        if self._leading.is_set():
            return next((error for check in self._checks if (error := check())), "")
        return ""


def metrics_response(registry: CollectorRegistry) -> web.Response:
    """The answer to a scrape of /metrics."""
    return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _probe(check: HealthCheck) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(_: web.Request) -> web.Response:
        error = check()
        return web.Response(text=error or "ok", status=500 if error else 200)

    return handler
