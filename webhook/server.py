"""The running door: listens with TLS, follows its certificate, leaves without losing a request."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

import structlog
from aiohttp import web
from aiohttp.http import HttpProcessingError

from jobset_gate.runtime.connections import SERVICE_UNAVAILABLE, ConnectionLimits
from jobset_gate.settings import Settings
from webhook.app import AdmissionServer, Check
from webhook.certs.watcher import RELOAD_SECONDS, CertificateWatcher, ServingCertificate
from webhook.metrics import WebhookMetrics

DRAIN_SECONDS: Final = 5.0
"""How long answers in progress may take when the door closes; an API server waits no longer than that anyway."""

ARRIVING_SECONDS: Final = 0.02
"""A request that has reached this machine, but not the handlers yet, gets as long to be counted as in progress."""

LEAVING_SECONDS: Final = 0.5
"""How long clients may take to let go of connections that they keep for later."""


class _DropClientErrors(logging.Filter):
    """Tracebacks are for errors of ours: what a client sends or does not send is answered, and not told at length."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError | ConnectionError))


HTTP_LOG: Final = logging.getLogger("webhook.http")
HTTP_LOG.addFilter(_DropClientErrors())
IDLE_SECONDS: Final = 120.0
"""How long a connection may wait for its next request: an API server lets go of it by itself after 90."""

log = structlog.get_logger("webhook")


class WebhookServer:
    """A door that answers; made by `serve`."""

    def __init__(
        self, door: AdmissionServer, runner: web.AppRunner, url: str, stack: contextlib.AsyncExitStack
    ) -> None:
        self.admission = door
        self.url = url
        """Without a path: https://host:port."""
        self._runner = runner
        self._stack = stack

    async def stop(self, *, notice: float = 0.0) -> None:
        """Close the door: not ready and no kept-alive connections for `notice` seconds, then no new ones, then drain.

        In a cluster `notice` covers the time until the endpoints no longer name this pod.
        """
        self.admission.shutting_down = True
        if notice > 0:
            await asyncio.sleep(notice)
        await self.admission.connections.close()
        try:
            # aiohttp would no longer read the bodies of requests that are on their way: wait for them first.
            async with asyncio.timeout(DRAIN_SECONDS):  # not wait_for, which may swallow a cancellation (3.11)
                await asyncio.sleep(ARRIVING_SECONDS)
                await self.admission.idle.wait()
            await self._close_idle_connections()
        except TimeoutError:
            log.warning("closing on requests that are not answered yet", url=self.url)
        await self._runner.cleanup()
        await self.admission.connections.stop()
        await self._stack.aclose()
        log.info("webhook stopped", url=self.url)

    async def _close_idle_connections(self) -> None:
        """Those who keep connections for later go elsewhere; returns when they have."""
        server = self._runner.server
        if server is None:
            return
        for connection in server.connections:
            transport = connection.transport
            # Only aiohttp knows whether a connection is in the middle of a request, and it does not tell.
            if connection._current_request is None and transport is not None:  # noqa: SLF001
                transport.write(SERVICE_UNAVAILABLE)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                while server.connections:  # noqa: ASYNC110 - aiohttp tells nobody when the last one is gone
                    await asyncio.sleep(ARRIVING_SECONDS)
        await self.admission.idle.wait()


async def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ServingCertificate,
    ready: Check = lambda: None,
    metrics: WebhookMetrics | None = None,
    suffix: Callable[[], str] | None = None,
    token: Callable[[], str] | None = None,
    reload_seconds: float = RELOAD_SECONDS,
    follow: bool = True,
    limits: ConnectionLimits | None = None,
) -> WebhookServer:
    """Open the door; returns when it listens. Port 0 takes a free one. `ready` adds a condition to /readyz.

    A certificate from files is followed here unless somebody else looks after it (`follow`).
    """
    door = AdmissionServer(settings, suffix=suffix, token=token, ready=ready, metrics=metrics, limits=limits)
    # Asked anew at each scrape, since it changes.
    door.metrics.certificate_expiry.labels("serving").set_function(lambda: tls.expires.timestamp())  # noqa: PLW0108 - as said
    door.metrics.certificate_issued.labels("serving").set_function(lambda: tls.issued.timestamp())  # noqa: PLW0108 - as said
    reloads = door.metrics.certificate_reloads
    stack = contextlib.AsyncExitStack()
    if follow and isinstance(tls, CertificateWatcher):
        await stack.enter_async_context(
            tls.watching(lambda worked: reloads.labels("ok" if worked else "failed").inc(), every=reload_seconds)
        )
    # Bodies stay as they come: what is compressed is refused, before anybody has made more of it.
    runner = web.AppRunner(
        door.app(),
        access_log=None,
        logger=HTTP_LOG,
        shutdown_timeout=DRAIN_SECONDS,
        handle_signals=False,
        auto_decompress=False,
        keepalive_timeout=IDLE_SECONDS,
    )
    try:
        await runner.setup()
        await door.connections.listen(runner, host, port, tls.context)
    except BaseException:
        await runner.cleanup()
        await door.connections.stop()
        await stack.aclose()
        raise
    named = f"[{host}]" if ":" in host else host
    server = WebhookServer(door, runner, f"https://{named}:{door.connections.port}", stack)
    log.info("webhook listens", url=server.url)
    return server
