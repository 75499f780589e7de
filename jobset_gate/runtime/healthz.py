"""/healthz, /readyz and /metrics of the controller, over plain HTTP."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from jobset_gate.runtime.connections import ConnectionLimiter, ConnectionLimits

LIMITS: Final = ConnectionLimits(connections=64)
"""A kubelet and a few scrapers ask, each with one connection."""

IDLE: Final = 120.0
"""Seconds that a connection may wait for its next request: longer than between two scrapes."""
GOODBYE: Final = 1.0
"""Seconds for requests in progress when it stops: nobody waits for a probe's answer any more."""

Check = Callable[[], str]
"""Returns what is wrong, "" if nothing is."""


class HealthServer:
    """The server; `url` once it is started. Port 0 takes a free one."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        healthy: Check,
        ready: Check,
        host: str,
        port: int,
        limits: ConnectionLimits = LIMITS,
    ) -> None:
        self._connections = ConnectionLimiter(limits)
        self._registry, self._healthy, self._ready = registry, healthy, ready
        self._host, self._port = host, port
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        """Listens. Raises OSError if the port is taken."""
        app = web.Application(middlewares=[self._connections.middleware])
        app.add_routes(
            [
                web.get("/healthz", _answer(self._healthy)),
                web.get("/readyz", _answer(self._ready)),
                web.get("/metrics", self._metrics),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=GOODBYE, keepalive_timeout=IDLE)
        await self._runner.setup()
        await self._connections.listen(self._runner, self._host, self._port)
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{shown}:{self._connections.port}"

    async def stop(self) -> None:
        """Stops listening."""
        if self._runner is not None:
            await self._connections.close()
            await self._runner.cleanup()
            await self._connections.stop()

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _answer(check: Check) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(_: web.Request) -> web.Response:
        wrong = check()
        return web.Response(text=wrong or "ok", status=500 if wrong else 200)

    return handler
