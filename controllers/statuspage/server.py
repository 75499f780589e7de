"""Serves the page: builds its parts, listens, and closes everything when cancelled.

A failure of the page is logged and stops nothing else.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge

from controllers.statuspage.app import PageContext, build_app
from controllers.statuspage.auth import AccessReviewer, Authenticator, SessionStore
from controllers.statuspage.detail import DetailHandlers
from controllers.statuspage.options import PageOptions
from controllers.statuspage.source import PageSource
from controllers.statuspage.sse import EventStreams, ListCache
from controllers.statuspage.timelines import TimelineRenderer
from controllers.statuspage.view import StatusView
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.client import Client
from jobset_gate.runtime.cert_watcher import CertWatcher

MAX_CONNECTIONS: Final = 512
"""Open files are the controller's, too."""
RETRY_SECONDS: Final = 5.0
IDLE: Final = 30.0
SHUTDOWN_TIMEOUT: Final = 1.0
CODES: Final = ("2xx", "3xx", "4xx", "5xx")

_log = structlog.get_logger(__name__)


class StatusPageMetrics:
    """Without names of viewers or gangs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "jobset_gate_page_requests_total", "Answers of the status page, by code.", ["code"], registry=registry
        )
        self._reviews = Counter(
            "jobset_gate_page_reviews_total",
            "TokenReviews and SubjectAccessReviews made for viewers of the status page, by outcome.",
            ["kind", "outcome"],
            registry=registry,
        )
        self._streams = Gauge(
            "jobset_gate_page_streams_open", "Pages that are kept up to date at this moment.", registry=registry
        )
        for code in CODES:
            self._requests.labels(code)

    def observe_response(self, code: int) -> None:
        """After each response."""
        self._requests.labels(f"{code // 100}xx").inc()

    def observe_review(self, kind: str, outcome: str) -> None:
        """After each review."""
        self._reviews.labels(kind, outcome).inc()

    def set_open_streams(self, count: Callable[[], int]) -> None:
        """`count` returns the number of open streams."""
        self._streams.set_function(count)


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
        """`client` is the controller's, used only to read and to review."""
        self._options, self._cache = options, source.index
        self.view = StatusView(source, monotonic)
        self.streams = EventStreams(self.view, source.clock, monotonic)
        self.timelines = TimelineRenderer(client, source.index.peek, source.clock, monotonic)
        metrics = StatusPageMetrics(registry)
        metrics.set_open_streams(lambda: self.streams.open)
        self._on_response = metrics.observe_response
        self.sessions = SessionStore(monotonic)
        reviewer = AccessReviewer(client, monotonic, metrics.observe_review)
        self.authenticator = Authenticator(reviewer, self.sessions, tls=options.tls)
        self._context = PageContext(source, self.view, ListCache(self.view), reviewer, self.authenticator, self.streams)
        self.listening = asyncio.Event()
        self.url = ""

    def mark_dirty(self, key: GangKey) -> None:
        """This gang has changed."""
        self.view.mark_dirty(key)
        self.timelines.on_gang_change(key, self._cache.get_jobset(key), self._cache.get_verdict(key))

    async def run(self) -> None:
        """Until cancelled; listens again after failures."""
        while True:
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - no gang waits for the page
                _log.warning("the status page is not served", error=str(error), address=self._options.address)
            await asyncio.sleep(RETRY_SECONDS)

    async def _serve(self) -> None:
        options, certificate = self._options, None
        if options.certificate is not None and options.key is not None:
            certificate = CertWatcher(options.certificate, options.key)
        details = DetailHandlers(self._context, self.timelines)
        app = build_app(options, self._context, details.routes(), self._on_response)
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=IDLE, shutdown_timeout=SHUTDOWN_TIMEOUT)
        self.streams.start()
        async with AsyncExitStack() as stack:
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            listener = await self._listen(runner, certificate.context if certificate else None)
            stack.push_async_callback(self._close, listener)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.streams.run(), name="page streams")
                if certificate is not None:
                    tasks.create_task(certificate.run(), name="page certificate")
                self.listening.set()
                _log.info("status page listens", url=self.url)

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

    async def _close(self, listener: asyncio.Server) -> None:
        """Stops listening, ends streams and cancels timelines."""
        self.listening.clear()
        self.url = ""
        listener.close()
        self.streams.stop()
        with suppress(Exception):
            await self.timelines.stop()


class _RejectedConnection(asyncio.Protocol):
    """One above MAX_CONNECTIONS."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
