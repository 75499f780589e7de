"""An HTTP server on loopback that answers as a test says."""

import ssl
from collections.abc import Awaitable, Callable
from typing import Self

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LoopbackServer:
    """`async with LoopbackServer(answer) as server`; `url` is its base URL, that of any path `answer` is called for."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.url = ""
        self._answer, self._tls = answer, tls

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=7 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        self.url = f"http{'s' if self._tls else ''}://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
