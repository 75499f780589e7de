"""The door's certificate: read from files and read again when they change, on the live TLS context."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import structlog

RELOAD_SECONDS: Final = 10.0

log = structlog.get_logger("webhook.tls")


class Certificate:
    """A serving certificate and its key in PEM files, as a mounted Secret has them.

    New connections get what the files hold; a pair that does not load (half written, say) leaves the last good one in
    use, and is tried again.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Load the pair; raises OSError or ssl.SSLError when there is none to begin with."""
        self.certificate, self.key = certificate, key
        self._seen = self._contents()
        self.context = _context()
        self.context.load_cert_chain(certificate, key)

    def reload(self) -> bool | None:
        """Load the pair again if the files changed. None: they did not; False: the new pair cannot be used."""
        try:
            now = self._contents()
            if now == self._seen:
                return None
            # A pair that does not fit would leave the live context without a key: try it on another one first.
            _context().load_cert_chain(self.certificate, self.key)
            self.context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as problem:
            log.warning("the new certificate cannot be used, serving the last good one", problem=str(problem))
            return False
        self._seen = now
        log.info("certificate loaded again", file=str(self.certificate))
        return True

    @contextlib.asynccontextmanager
    async def followed(
        self, report: Callable[[bool], None] = lambda _: None, every: float = RELOAD_SECONDS
    ) -> AsyncIterator[None]:
        """Look for changes as long as the block runs; `report` hears how each reload went."""

        async def follow() -> None:
            while True:
                await asyncio.sleep(every)
                result = self.reload()
                if result is not None:
                    report(result)

        task = asyncio.create_task(follow(), name="certificate reload")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])  # not `await task`: its cancellation could not be told from our own
            if not task.cancelled():
                task.result()

    def _contents(self) -> tuple[bytes, bytes]:
        return self.certificate.read_bytes(), self.key.read_bytes()


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
