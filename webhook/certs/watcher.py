"""The door's certificate: one TLS context that listens, whose certificate is exchanged while it does."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509

from webhook.certs.ca import KeyPair
from webhook.certs.memfd import as_file

RELOAD_SECONDS: Final = 10.0
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2, those with authenticated encryption: OpenSSL's own list also has two with CBC. TLS 1.3 has no others."""

log = structlog.get_logger("webhook.tls")


class ServingCertificate:
    """Holds the pair that is served. New connections get the one loaded last; open ones go on with theirs."""

    def __init__(self, pair: KeyPair) -> None:
        """Raises ssl.SSLError for a pair that cannot be used."""
        self.context = context()
        self._use(pair)

    @property
    def pair(self) -> KeyPair:
        """What is served now."""
        return self._pair

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """The same as certificates, the leaf first."""
        return self._chain

    @property
    def expires(self) -> datetime:
        """When the first of them runs out."""
        return self._first_to_run_out.not_valid_after_utc

    @property
    def issued(self) -> datetime:
        """From when on that one is good."""
        return self._first_to_run_out.not_valid_before_utc

    @property
    def _first_to_run_out(self) -> x509.Certificate:
        return min(self._chain, key=lambda one: one.not_valid_after_utc)

    def swap(self, pair: KeyPair) -> None:
        """Serve this from now on; raises ssl.SSLError, and the last good pair stays."""
        # A pair that does not fit would leave the live context without a key: try it on another one first.
        context(pair)
        self._use(pair)

    def _use(self, pair: KeyPair) -> None:
        _load(self.context, pair)
        self._pair, self._chain = pair, pair.certificates


class CertificateWatcher(ServingCertificate):
    """A serving certificate and its key in PEM files, as a mounted Secret has them, read again when they change.

    A pair that does not load (half written, say) leaves the last good one in use, and is tried again.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Load the pair; raises OSError or ssl.SSLError when there is none to begin with."""
        self.certificate, self.key = certificate, key
        super().__init__(self.read())

    def read(self) -> KeyPair:
        """What the files hold; raises OSError."""
        return KeyPair(self.certificate.read_bytes(), self.key.read_bytes())

    def reload(self) -> bool | None:
        """Load the pair again if the files changed. None: they did not; False: the new pair cannot be used."""
        try:
            now = self.read()
            if now == self.pair:
                return None
            self.swap(now)
        except (OSError, ssl.SSLError) as problem:
            log.warning("the new certificate cannot be used, serving the last good one", problem=str(problem))
            return False
        log.info("certificate loaded again", file=str(self.certificate))
        return True

    @contextlib.asynccontextmanager
    async def watching(
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


def context(pair: KeyPair | None = None) -> ssl.SSLContext:
    """A server's side of TLS, 1.2 or later; raises ssl.SSLError for a pair that cannot be used."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(CIPHERS)
    if pair is not None:
        _load(made, pair)
    return made


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    if not pair.certificates:
        raise ssl.SSLError("no certificate in it")
    with as_file(pair.chain) as chain, as_file(pair.key) as key:
        context.load_cert_chain(chain, key)
