"""/healthz, /readyz and /metrics of the controller, over plain HTTP."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

Check = Callable[[], str]
"""Returns what is wrong, "" if nothing is."""


class Health:
    """The server; `url` once it is started. Port 0 takes a free one."""

    def __init__(self, registry: CollectorRegistry, *, healthy: Check, ready: Check, host: str, port: int) -> None:
        self._registry, self._healthy, self._ready = registry, healthy, ready
        self._host, self._port = host, port
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        """Listens. Raises OSError if the port is taken."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", _answer(self._healthy)),
                web.get("/readyz", _answer(self._ready)),
                web.get("/metrics", self._metrics),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        """Stops listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _answer(check: Check) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(_: web.Request) -> web.Response:
        wrong = check()
        return web.Response(text=wrong or "ok", status=500 if wrong else 200)

    return handler
