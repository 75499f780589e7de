"""Builds the page from the controller's caches, listens, and closes everything when cancelled.

A failure of the page is logged and stops nothing else.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge

from controllers.barrier.cache import GangCache
from controllers.dependencies import ControllerDependencies
from controllers.podgroups.setup import PodGroupControllers
from controllers.statuspage.api import api_routes
from controllers.statuspage.app import PageContext, build_app
from controllers.statuspage.auth import AccessReviewer, Authenticator, SessionStore
from controllers.statuspage.detail import DetailHandlers
from controllers.statuspage.middleware import PageOptions
from controllers.statuspage.source import Freshness, PageSource
from controllers.statuspage.sse import EventStreams
from controllers.statuspage.timelines import TimelineRenderer
from controllers.statuspage.view import StatusView
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.client import Client
from jobset_gate.runtime.cert_watcher import CertWatcher, ServingContext
from jobset_gate.runtime.connections import ConnectionLimiter, ConnectionLimits

LIMITS: Final = ConnectionLimits(connections=512, request_seconds=60.0)
"""Open files are the controller's, too. The timeline of a large gang takes a while."""
RETRY_SECONDS: Final = 5.0
IDLE: Final = 30.0
SHUTDOWN_TIMEOUT: Final = 1.0
API_CONNECTIONS: Final = 16
"""To the API server: for reviews, and for the pods of timelines."""

_log = structlog.get_logger(__name__)


class StatusPageMetrics:
    """Without names of viewers or gangs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        self.requests = counter("jobset_gate_page_requests_total", "Answers of the status page, by code.", ["code"])
        text = "TokenReviews and SubjectAccessReviews made for viewers of the status page, by outcome."
        self.reviews = counter("jobset_gate_page_reviews_total", text, ["kind", "outcome"])
        text = "Pages that are kept up to date at this moment."
        self.streams = Gauge("jobset_gate_page_streams_open", text, registry=registry)
        for code in ("2xx", "3xx", "4xx", "5xx"):
            self.requests.labels(code)
        for kind, outcome in product(("token", "access"), ("ok", "refused", "error")):
            self.reviews.labels(kind, outcome)
        self.reviews.labels("token", "limited")


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
        self.options, self._cache = options, source.index
        self.view = StatusView(source, monotonic)
        self.streams = EventStreams(self.view, source.clock, monotonic)
        self.timelines = TimelineRenderer(client, source, monotonic)
        metrics = StatusPageMetrics(registry)
        metrics.streams.set_function(lambda: self.streams.open)
        self._on_response: Callable[[int], None] = lambda code: metrics.requests.labels(f"{code // 100}xx").inc()
        self.sessions = SessionStore(monotonic)
        reviewer = AccessReviewer(client, monotonic, lambda *review: metrics.reviews.labels(*review).inc())
        self.authenticator = Authenticator(reviewer, self.sessions, tls=options.tls)
        self._context = PageContext(source, self.view, reviewer, self.authenticator, self.streams)
        self.listening = asyncio.Event()
        self.url = ""

    def mark_dirty(self, key: GangKey) -> None:
        self.view.mark_dirty(key)
        self.timelines.on_gang_change(key, self._cache.last_workload(key), self._cache.get_verdict(key))

    async def run(self) -> None:
        """Until cancelled; listens again after failures."""
        while True:
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - no gang waits for the page
                _log.warning("the status page is not served", error=str(error), address=self.options.address)
            await asyncio.sleep(RETRY_SECONDS)

    async def _serve(self) -> None:
        options, certificate = self.options, None
        if options.certificate is not None and options.key is not None:
            certificate = CertWatcher(options.certificate, options.key, ServingContext)
        connections = ConnectionLimiter(LIMITS)
        details = DetailHandlers(self._context, self.timelines)
        routes = [*details.routes(), *api_routes(self._context)]
        app = build_app(options, self._context, routes, self._on_response, connections)
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=IDLE, shutdown_timeout=SHUTDOWN_TIMEOUT)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(connections.stop)
            context = certificate.serving.context if certificate else None
            await connections.listen(runner, options.address, options.port, context)
            stack.push_async_callback(self._close, connections)
            self.url = connections.url
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.streams.run(), name="page streams")
                if certificate is not None:
                    tasks.create_task(certificate.run(), name="page certificate")
                self.listening.set()
                _log.info("status page listens", url=self.url)

    async def _close(self, connections: ConnectionLimiter) -> None:
        """Stops listening and cancels timelines."""
        self.listening.clear()
        self.url = ""
        await connections.close()
        with suppress(Exception):
            await self.timelines.stop()


def make_status_page(
    options: PageOptions,
    around: ControllerDependencies,
    cache: GangCache,
    groups: PodGroupControllers | None,
    fresh: Callable[[], Freshness],
) -> StatusPage:
    """On every replica: a standby's caches are as full as the leader's."""
    source = PageSource(index=cache, clock=around.clock, fresh=fresh, prices=options.prices)
    if groups is not None:
        source = replace(source, groups=groups.cache, why=groups.pending.why_pending)
    return StatusPage(options, source, around.client, around.registry)
