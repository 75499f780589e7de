"""Serves the page: puts its parts together, listens, and lets go of everything when told to.

It is there for people to look at: whatever happens to it is said in the log and stops nothing else.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from controllers.statuspage import app
from controllers.statuspage.auth import Authenticator
from controllers.statuspage.detail import DetailHandlers
from controllers.statuspage.feed import ListCache
from controllers.statuspage.metrics import StatusPageMetrics
from controllers.statuspage.options import PageOptions
from controllers.statuspage.reviews import AccessReviewer
from controllers.statuspage.sessions import SessionStore
from controllers.statuspage.source import PageSource
from controllers.statuspage.sse import EventStreams
from controllers.statuspage.timelines import TimelineRenderer
from controllers.statuspage.view import StatusView
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.client import Client
from jobset_gate.runtime.cert_watcher import CertWatcher

MAX_CONNECTIONS: Final = 512
"""Open files are the controller's, too."""
RETRY_SECONDS: Final = 5.0
IDLE: Final = 30.0
GOODBYE: Final = 1.0

_log = structlog.get_logger(__name__)


class StatusPage:
    """The server; `url` and `listening` while it listens."""

    def __init__(
        self,
        options: PageOptions,
        source: PageSource,
        client: Client,
        registry: CollectorRegistry,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`client` is the controller's, asked in its name and only to read and to review."""
        self._options, self._index = options, source.index
        self.view = StatusView(source, monotonic)
        self.streams = EventStreams(self.view, source.clock, monotonic)
        self.timelines = TimelineRenderer(client, source.index.peek, source.clock, monotonic)
        measures = StatusPageMetrics(registry)
        measures.set_open_streams(lambda: self.streams.open)
        self.sessions = SessionStore(monotonic)
        reviews = AccessReviewer(client, monotonic, measures.observe_review)
        self.authenticator = Authenticator(reviews, self.sessions, tls=options.tls)
        self._parts = app.PageContext(
            source, self.view, ListCache(self.view), reviews, self.authenticator, self.streams
        )
        self._answered = measures.observe_response
        self.listening = asyncio.Event()
        self.url = ""

    def mark_dirty(self, key: GangKey) -> None:
        """Something of this gang is different."""
        self.view.mark_dirty(key)
        self.timelines.on_gang_change(key, self._index.get_jobset(key), self._index.get_verdict(key))

    async def run(self) -> None:
        """Until cancelled; what goes wrong is tried again."""
        while True:
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - nobody's gang waits for a page
                _log.warning("the status page is not served", error=str(error), address=self._options.address)
            await asyncio.sleep(RETRY_SECONDS)

    async def _serve(self) -> None:
        options = self._options
        certificate = None
        if options.certificate is not None and options.key is not None:
            certificate = CertWatcher(options.certificate, options.key)
        runner = web.AppRunner(self._application(), access_log=None, keepalive_timeout=IDLE, shutdown_timeout=GOODBYE)
        self.streams.start()
        async with AsyncExitStack() as stack:
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            listener = await self._listen(runner, certificate.context if certificate else None)
            stack.push_async_callback(self._leave, listener)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.streams.run(), name="page streams")
                if certificate is not None:
                    tasks.create_task(certificate.run(), name="page certificate")
                self.listening.set()
                _log.info("status page listens", url=self.url)

    def _application(self) -> web.Application:
        singles = DetailHandlers(self._parts, self.timelines)
        return app.build_app(self._options, self._parts, singles.routes(), self._answered)

    async def _listen(self, runner: web.AppRunner, context: ssl.SSLContext | None) -> asyncio.Server:
        server: Any = runner.server

        def protocol() -> asyncio.Protocol:
            if len(server.connections) >= MAX_CONNECTIONS:
                return _RejectedConnection()
            made: asyncio.Protocol = server()
            return made

        loop = asyncio.get_running_loop()
        listener = await loop.create_server(protocol, self._options.address, self._options.port, ssl=context)
        host, port = listener.sockets[0].getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if context else 'http'}://{shown}:{port}"
        return listener

    async def _leave(self, listener: asyncio.Server) -> None:
        """Nobody new comes in, open streams end, pictures are not finished."""
        self.listening.clear()
        self.url = ""
        listener.close()
        self.streams.stop()
        with suppress(Exception):
            await self.timelines.stop()


class _RejectedConnection(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
