"""The webhook as an HTTP application: AdmissionReviews in and out, health, readiness and metrics."""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

import structlog
from aiohttp import web

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.runtime.connections import ConnectionLimiter, ConnectionLimits
from jobset_gate.runtime.healthz import metrics_response
from jobset_gate.settings import Settings
from webhook.bodies import BodyBudget
from webhook.handlers import (
    MUTATE_BARRIER_PODS,
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

Check = Callable[[], str | None]
"""Why the webhook is not ready; None when it is."""

log = structlog.get_logger("webhook")


class AdmissionServer:
    """The routes and what they share."""

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
        self.idle = asyncio.Event()
        """Set while no admission request is being answered."""
        self.idle.set()
        self._in_progress = 0
        self._ready = ready
        self._handlers: dict[str, Handler] = {
            "mutate": mutating_handler(settings, random_suffix, random_token),
            "validate": validating_handler(settings),
            "mutate-pods": pod_handler(settings),
            MUTATE_BARRIER_PODS: barrier_pod_handler(settings, random_token),
        }

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.connections.middleware])
        app.router.add_post(MUTATE_PATH, partial(self._admit, "mutate"))
        app.router.add_post(VALIDATE_PATH, partial(self._admit, "validate"))
        app.router.add_post(POD_PATH, partial(self._admit, "mutate-pods"))
        app.router.add_post(BARRIER_POD_PATH, partial(self._admit, MUTATE_BARRIER_PODS))
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        app.on_response_prepare.append(self._close_connection)
        return app

    async def _admit(self, webhook: str, request: web.Request) -> web.StreamResponse:
        began = perf_counter()
        self._count(webhook, 1)
        try:
            response = await self._respond(webhook, request)
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
            self.idle.clear()
        else:
            self.idle.set()

    async def _respond(self, webhook: str, request: web.Request) -> web.StreamResponse:
        if request.content_type != "application/json":
            return web.Response(status=415, text=f"expected application/json, got {request.content_type}\n")
        if "Content-Encoding" in request.headers:
            return web.Response(status=415, text="expected no Content-Encoding: no API server compresses reviews\n")
        async with self._bodies.read(request) as body:
            answer = self._answer(webhook, body)
        if isinstance(answer, web.Response):
            return answer
        return await self._bodies.write(request, answer)

    def _answer(self, webhook: str, body: bytearray) -> bytes | web.Response:
        try:
            review = decode(body)
        except MalformedReview as problem:
            return web.Response(status=400, text=f"{problem}\n")
        answer = self._handle(webhook, review)
        # Another word must not become a label: a client could send any number of them.
        operation = review.operation if review.operation in OPERATIONS else "OTHER"
        self.metrics.admission.labels(webhook, source_name(webhook, review), operation, outcome(answer)).inc()
        return encode(review.uid, answer)

    def _handle(self, webhook: str, review: ReviewRequest) -> AdmissionResponse:
        try:
            return self._handlers[webhook](review)
        except Exception as problem:
            # Whatever fails, the client gets a readable answer and the server goes on.
            where = {"namespace": review.namespace, "name": review.name, "operation": review.operation}
            log.exception("the rules failed on a request", webhook=webhook, uid=review.uid, **where)
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


def random_suffix() -> str:
    """Five random characters of the alphabet of generated names."""
    return "".join(secrets.choice(inject.SUFFIX_ALPHABET) for _ in range(inject.SUFFIX_LENGTH))


def random_token() -> str:
    """128 random bits, URL-safe."""
    return secrets.token_urlsafe(TOKEN_BYTES)
