"""The webhook: AdmissionReviews in and out over TLS, health, readiness and metrics; it stops without losing one."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable
from time import perf_counter
from typing import Final

import structlog
from aiohttp import web
from aiohttp.http import HttpProcessingError

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.runtime.connections import ConnectionLimiter, ConnectionLimits
from jobset_gate.runtime.healthz import metrics_response
from jobset_gate.settings import Settings
from webhook.bodies import BodyBudget
from webhook.certs.serving import ServingCertificate
from webhook.handlers import (
    Handler,
    barrier_pod_handler,
    mutating_handler,
    pod_handler,
    source_name,
    validating_handler,
)
from webhook.metrics import WebhookMetrics, outcome
from webhook.registration import BARRIER_POD_PATH, MUTATE_PATH, POD_PATH, VALIDATE_PATH
from webhook.review import AdmissionResponse, Denied, MalformedReview, ReviewRequest, decode, encode

TOKEN_BYTES: Final = 16
OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
DRAIN_SECONDS: Final = 5.0
"""How long answers in progress may take while the server stops; an API server waits no longer either."""
ARRIVING_SECONDS: Final = 0.02
"""How long a request that has reached the socket may take to reach the handlers, and so to count as in progress."""
LEAVING_SECONDS: Final = 0.5
"""How long clients may take to close idle connections."""
IDLE_SECONDS: Final = 120.0
"""How long a connection may wait for its next request; an API server closes idle ones after 90."""

Check = Callable[[], str | None]
"""Why the webhook is not ready; None when it is."""


class _DropClientErrors(logging.Filter):
    """Tracebacks are for errors of ours: a malformed request is answered, and not logged with one."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError | ConnectionError))


HTTP_LOG: Final = logging.getLogger("webhook.http")
HTTP_LOG.addFilter(_DropClientErrors())

log = structlog.get_logger("webhook")


class WebhookServer:
    """A webhook; `serve` makes one that listens."""

    def __init__(
        self,
        settings: Settings,
        *,
        ready: Check = lambda: None,
        metrics: WebhookMetrics | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.metrics = metrics or WebhookMetrics()
        self.connections = ConnectionLimiter(limits)
        self._bodies = BodyBudget()
        self.shutting_down = False
        """Set before the server closes: not ready, and answers close their connections."""
        self._idle = asyncio.Event()
        """Set while no admission request is being answered."""
        self._idle.set()
        self._in_progress = 0
        self._ready = ready
        self._handlers: dict[str, Handler] = {
            MUTATE_PATH: mutating_handler(settings, random_suffix, random_token),
            VALIDATE_PATH: validating_handler(settings),
            POD_PATH: pod_handler(settings),
            BARRIER_POD_PATH: barrier_pod_handler(settings, random_token),
        }

    @property
    def url(self) -> str:
        """Without a path: https://host:port."""
        return self.connections.url

    def app(self) -> web.Application:
        """The routes."""
        app = web.Application(middlewares=[self.connections.middleware])
        for path in self._handlers:
            app.router.add_post(path, self._admit)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        app.on_response_prepare.append(self._close_connection)
        return app

    async def stop(self, *, notice: float = 0.0) -> None:
        """Not ready and no kept-alive connections for `notice` seconds, then no new connections, then drain.

        In a cluster `notice` covers the time until the endpoints no longer name this pod.
        """
        self.shutting_down = True
        if notice > 0:
            await asyncio.sleep(notice)
        await self.connections.close()
        try:
            # aiohttp's cleanup would drop bodies that are still being received: wait for them first.
            async with asyncio.timeout(DRAIN_SECONDS):  # not wait_for, which may swallow a cancellation (3.11)
                await asyncio.sleep(ARRIVING_SECONDS)
                await self._idle.wait()
            await self._close_idle_connections()
        except TimeoutError:
            log.warning("stopping with requests that are not answered yet", url=self.url)
        await self.connections.stop()
        log.info("webhook stopped", url=self.url)

    async def _close_idle_connections(self) -> None:
        """Sends 503 on idle connections, and returns when their clients have closed them."""
        self.connections.refuse_idle()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                while len(self.connections):  # noqa: ASYNC110 - there is no event for the last one
                    await asyncio.sleep(ARRIVING_SECONDS)
        await self._idle.wait()

    async def _admit(self, request: web.Request) -> web.StreamResponse:
        webhook, began = request.path.removeprefix("/"), perf_counter()
        self._count(webhook, 1)
        try:
            response = await self._respond(request)
        except web.HTTPException as refusal:
            self.metrics.requests.labels(webhook, refusal.status).inc()
            raise
        except (ConnectionError, web.RequestPayloadError) as problem:
            # The client has gone, or its body cannot be separated from the next request: no error of ours.
            log.debug("the body broke off", webhook=webhook, problem=str(problem))
            response = web.Response(status=400, text="the body broke off\n")
            response.force_close()
        finally:
            self._count(webhook, -1)
        self.metrics.requests.labels(webhook, response.status).inc()
        self.metrics.latency.labels(webhook).observe(perf_counter() - began)
        return response

    def _count(self, webhook: str, change: int) -> None:
        self.metrics.in_flight.labels(webhook).inc(change)
        self._in_progress += change
        if self._in_progress:
            self._idle.clear()
        else:
            self._idle.set()

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        if request.content_type != "application/json":
            return web.Response(status=415, text=f"expected application/json, got {request.content_type}\n")
        if "Content-Encoding" in request.headers:
            return web.Response(status=415, text="expected no Content-Encoding: no API server compresses reviews\n")
        async with self._bodies.read(request) as body:
            answer = self._answer(request.path, body)
        if isinstance(answer, web.Response):
            return answer
        return await self._bodies.write(request, answer)

    def _answer(self, path: str, body: bytearray) -> bytes | web.Response:
        try:
            review = decode(body)
        except MalformedReview as problem:
            return web.Response(status=400, text=f"{problem}\n")
        answer = self._handle(path, review)
        # Another word must not become a label: a client could send any number of them.
        operation = review.operation if review.operation in OPERATIONS else "OTHER"
        webhook, source = path.removeprefix("/"), source_name(path, review)
        self.metrics.admission.labels(webhook, source, operation, outcome(answer)).inc()
        return encode(review.uid, answer)

    def _handle(self, path: str, review: ReviewRequest) -> AdmissionResponse:
        try:
            return self._handlers[path](review)
        except Exception as problem:
            # Whatever fails, the client gets a readable answer and the server goes on.
            where = {"namespace": review.namespace, "name": review.name, "operation": review.operation}
            log.exception("the rules failed on a request", path=path, uid=review.uid, **where)
            message = f"{names.PROGRAM}: internal error: {type(problem).__name__}: {problem}"
            return Denied(message[:1000], code=500, reason="InternalError")

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        reason = "shutting down" if self.shutting_down else self._ready()
        return web.Response(text="ok\n") if reason is None else web.Response(status=503, text=f"{reason}\n")

    async def _metrics(self, _: web.Request) -> web.Response:
        return metrics_response(self.metrics.registry)

    async def _close_connection(self, _: web.Request, response: web.StreamResponse) -> None:
        if self.shutting_down:
            response.headers["Connection"] = "close"
            response.force_close()


async def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ServingCertificate,
    ready: Check = lambda: None,
    metrics: WebhookMetrics | None = None,
    limits: ConnectionLimits | None = None,
) -> WebhookServer:
    """Start the webhook; returns when it listens. Port 0 takes a free one. `ready` adds a condition to /readyz."""
    server = WebhookServer(settings, ready=ready, metrics=metrics, limits=limits)
    expiry, issued = server.metrics.certificate_expiry, server.metrics.certificate_issued
    # Lambdas, since the certificate changes between scrapes.
    expiry.labels("serving").set_function(lambda: tls.first_to_expire.not_valid_after_utc.timestamp())  # noqa: PLW0108
    issued.labels("serving").set_function(lambda: tls.first_to_expire.not_valid_before_utc.timestamp())  # noqa: PLW0108
    # Bodies are not decompressed: compressed ones are refused before they grow.
    runner = web.AppRunner(
        server.app(),
        access_log=None,
        logger=HTTP_LOG,
        shutdown_timeout=DRAIN_SECONDS,
        handle_signals=False,
        auto_decompress=False,
        keepalive_timeout=IDLE_SECONDS,
    )
    await server.connections.listen(runner, host, port, tls.context)
    log.info("webhook listens", url=server.url)
    return server


def random_suffix() -> str:
    """Five random characters of the alphabet of generated names."""
    return "".join(secrets.choice(inject.SUFFIX_ALPHABET) for _ in range(inject.SUFFIX_LENGTH))


def random_token() -> str:
    """128 random bits, URL-safe."""
    return secrets.token_urlsafe(TOKEN_BYTES)
