"""The serving certificate of a TLS listener, exchanged while it listens."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

import structlog

from jobset_gate.kube.kubeconfig import in_memory_file

RELOAD_SECONDS: Final = 10.0
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2, those with authenticated encryption: OpenSSL's own list also has two with CBC. TLS 1.3 has no others."""

_log = structlog.get_logger(__name__)


class ServingContext:
    """An SSL context; new connections get the pair that was loaded last, open ones keep theirs."""

    def __init__(self, chain: bytes, key: bytes) -> None:
        """`chain` and `key` in PEM. Raises ssl.SSLError for a pair that cannot be used."""
        self.context = server_context()
        self.load(chain, key)

    def load(self, chain: bytes, key: bytes) -> None:
        """Raises ssl.SSLError; then the pair before stays."""
        # A pair that does not fit would leave the live context without a key: try it on another one first.
        _load(server_context(), chain, key)
        _load(self.context, chain, key)


S = TypeVar("S", bound=ServingContext)


class CertWatcher(Generic[S]):
    """A pair in PEM files, as a mounted Secret has them, loaded again when they change.

    A pair that does not load (half-written, say) leaves the one before in use, and is tried again.
    """

    def __init__(self, certificate: Path, key: Path, serving: Callable[[bytes, bytes], S]) -> None:
        """Raises OSError or ssl.SSLError when there is no usable pair to begin with."""
        self.certificate, self.key = certificate, key
        self._pair = self._read()
        self.serving = serving(*self._pair)

    def reload(self) -> bool | None:
        """Loads the pair again if the files changed. None: they did not; False: the new pair cannot be used."""
        try:
            pair = self._read()
            if pair == self._pair:
                return None
            self.serving.load(*pair)
        except (OSError, ssl.SSLError) as error:
            _log.warning("new certificate cannot be used, the last good one is served", error=str(error))
            return False
        self._pair = pair
        _log.info("certificate reloaded", file=str(self.certificate))
        return True

    async def run(self, every: float = RELOAD_SECONDS, on_reload: Callable[[bool], None] = lambda _: None) -> None:
        """Until cancelled: looks at the files; `on_reload` hears whether each new pair could be used."""
        while True:
            await asyncio.sleep(every)
            loaded = self.reload()
            if loaded is not None:
                on_reload(loaded)

    def _read(self) -> tuple[bytes, bytes]:
        return self.certificate.read_bytes(), self.key.read_bytes()


def server_context() -> ssl.SSLContext:
    """A server's side of TLS, 1.2 or later, without a certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(CIPHERS)
    return made


def _load(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    with in_memory_file(chain) as chain_path, in_memory_file(key) as key_path:
        context.load_cert_chain(chain_path, key_path)
