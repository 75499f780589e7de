"""Clients that begin something and never finish it, with plain sockets: they cost this process next to nothing."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.fakes.admission_server import trusting
from tests.fakes.eventually import PATIENCE

HALF_HEAD = b"POST /mutate HTTP/1.1\r\nHost: x\r\nX-Half: "


def head(length: int, path: str = "/mutate") -> bytes:
    kind = "Content-Type: application/json"
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{kind}\r\nContent-Length: {length}\r\n\r\n".encode()


class StalledClients:
    def __init__(self, url: str, *, handshake: bool = True, context: ssl.SSLContext | None = None) -> None:
        place = urlsplit(url)
        self._place = (place.hostname or "", place.port or 0)
        self._context = context or trusting() if place.scheme == "https" and handshake else None
        self.sockets: list[socket.socket] = []

    def open(self, count: int, said: bytes) -> None:
        """Opens that many more, which all send this; one that is turned away at once counts too."""
        for _ in range(count):
            made: socket.socket = socket.create_connection(self._place, timeout=PATIENCE)
            try:
                if self._context is not None:
                    made = self._context.wrap_socket(made, server_hostname=self._place[0])
                made.sendall(said)
            except OSError:
                pass
            self.sockets.append(made)

    def held(self) -> int:
        """How many the server has not closed."""
        return sum(map(_is_open, self.sockets))

    def close(self) -> None:
        for each in self.sockets:
            each.close()


def _is_open(held: socket.socket) -> bool:
    if held.fileno() < 0:
        return False
    held.settimeout(0)
    try:
        while held.recv(65536):
            pass
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False
    return False


@contextmanager
def stalled_clients(
    url: str, *, handshake: bool = True, context: ssl.SSLContext | None = None
) -> Iterator[StalledClients]:
    made = StalledClients(url, handshake=handshake, context=context)
    try:
        yield made
    finally:
        made.close()
