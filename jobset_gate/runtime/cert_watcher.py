"""The page's certificate, from files that somebody renews: read again when they change, kept when they are bad."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

import structlog

RELOAD_SECONDS: Final = 30.0

_log = structlog.get_logger(__name__)


class CertWatcher:
    """`context` is what listens."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises OSError or ssl.SSLError where there is no usable pair to begin with."""
        self._certificate, self._key = certificate, key
        self._read = self._bytes()
        self.context = self._made()

    async def watch_files(self, every: float = RELOAD_SECONDS) -> None:
        """For ever: takes what the files hold by now. New connections get it, open ones go on with the old."""
        while True:
            await asyncio.sleep(every)
            self.reload()

    def reload(self) -> bool:
        """Whether another pair was taken."""
        try:
            read = self._bytes()
            if read == self._read:
                return False
            self._made()  # a half-written pair must not leave the live context without a key
            self.context.load_cert_chain(self._certificate, self._key)
        except (OSError, ssl.SSLError) as problem:
            _log.warning("the page's new certificate cannot be used", problem=str(problem))
            return False
        self._read = read
        return True

    def _bytes(self) -> tuple[bytes, bytes]:
        return self._certificate.read_bytes(), self._key.read_bytes()

    def _made(self) -> ssl.SSLContext:
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.load_cert_chain(self._certificate, self._key)
        return made
