"""The running webhook: listens with TLS, and stops without losing a request."""

import asyncio
import contextlib
import logging
from typing import Final

import structlog
from aiohttp import web
from aiohttp.http import HttpProcessingError

from jobset_gate.runtime.connections import ConnectionLimits
from jobset_gate.settings import Settings
from webhook.app import AdmissionServer, Check
from webhook.certs.serving import ServingCertificate
from webhook.metrics import WebhookMetrics

DRAIN_SECONDS: Final = 5.0
"""How long answers in progress may take while the server stops; an API server waits no longer either."""
ARRIVING_SECONDS: Final = 0.02
"""How long a request that has reached the socket may take to reach the handlers, and so to count as in progress."""
LEAVING_SECONDS: Final = 0.5
"""How long clients may take to close idle connections."""
IDLE_SECONDS: Final = 120.0
"""How long a connection may wait for its next request; an API server closes idle ones after 90."""


class _DropClientErrors(logging.Filter):
    """Tracebacks are for errors of ours: a malformed request is answered, and not logged with one."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError | ConnectionError))


HTTP_LOG: Final = logging.getLogger("webhook.http")
HTTP_LOG.addFilter(_DropClientErrors())

log = structlog.get_logger("webhook")


class WebhookServer:
    """A listening webhook; made by `serve`."""

    def __init__(self, admission: AdmissionServer) -> None:
        self.admission = admission
        self.url = admission.connections.url
        """Without a path: https://host:port."""

    async def stop(self, *, notice: float = 0.0) -> None:
        """Not ready and no kept-alive connections for `notice` seconds, then no new connections, then drain.

        In a cluster `notice` covers the time until the endpoints no longer name this pod.
        """
        self.admission.shutting_down = True
        if notice > 0:
            await asyncio.sleep(notice)
        await self.admission.connections.close()
        try:
            # aiohttp's cleanup would drop bodies that are still being received: wait for them first.
            async with asyncio.timeout(DRAIN_SECONDS):  # not wait_for, which may swallow a cancellation (3.11)
                await asyncio.sleep(ARRIVING_SECONDS)
                await self.admission.idle.wait()
            await self._close_idle_connections()
        except TimeoutError:
            log.warning("stopping with requests that are not answered yet", url=self.url)
        await self.admission.connections.stop()
        log.info("webhook stopped", url=self.url)

    async def _close_idle_connections(self) -> None:
        """Sends 503 on idle connections, and returns when their clients have closed them."""
        connections = self.admission.connections
        connections.refuse_idle()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                while len(connections):  # noqa: ASYNC110 - there is no event for the last one
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
    limits: ConnectionLimits | None = None,
) -> WebhookServer:
    """Start the webhook; returns when it listens. Port 0 takes a free one. `ready` adds a condition to /readyz."""
    admission = AdmissionServer(settings, ready=ready, metrics=metrics, limits=limits)
    expiry, issued = admission.metrics.certificate_expiry, admission.metrics.certificate_issued
    # Lambdas, since the certificate changes between scrapes.
    expiry.labels("serving").set_function(lambda: tls.first_to_expire.not_valid_after_utc.timestamp())  # noqa: PLW0108
    issued.labels("serving").set_function(lambda: tls.first_to_expire.not_valid_before_utc.timestamp())  # noqa: PLW0108
    # Bodies are not decompressed: compressed ones are refused before they grow.
    runner = web.AppRunner(
        admission.app(),
        access_log=None,
        logger=HTTP_LOG,
        shutdown_timeout=DRAIN_SECONDS,
        handle_signals=False,
        auto_decompress=False,
        keepalive_timeout=IDLE_SECONDS,
    )
    await admission.connections.listen(runner, host, port, tls.context)
    server = WebhookServer(admission)
    log.info("webhook listens", url=server.url)
    return server
