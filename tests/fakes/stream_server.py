"""The other end of a barrier's gate stream, on loopback and played by the test itself, one step after the other."""

import contextlib
import socket
from dataclasses import dataclass
from typing import Self

from tests.fakes.eventually import PATIENCE

GANG = "/v1/gangs/team/train/a-token"


@dataclass
class StreamRequest:
    """A request that a barrier has made, and the connection on which it waits for the answer."""

    path: str
    connection: socket.socket

    def hold(self, body: str = "") -> None:
        """The beginning of an answer, headers flushed; without a length: it ends when the connection does."""
        self.send(f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{body}")

    def send(self, text: str) -> None:
        """A client that has heard enough may be gone."""
        with contextlib.suppress(ConnectionError):
            self.connection.sendall(text.encode())

    def answer(self, body: str) -> None:
        """All of it, and the end."""
        self.hold(body)
        self.close()

    def close(self) -> None:
        self.connection.close()

    def until_gone(self) -> None:
        """Returns when the client has closed its end; fails when it does not."""
        with contextlib.suppress(ConnectionError):
            while self.connection.recv(1024):
                pass

    def flood(self, chunk: str, most: int) -> int:
        """How many bytes the client took before it had enough, of `most` at most."""
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < most:
                sent += self.connection.send(chunk.encode())
        return sent


class StreamServer:
    """`with StreamServer() as gate`: a gate service that does only what the test makes it do."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        """The gang's place on it, as it stands in a barrier's environment."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}{GANG}"

    def next_request(self, within: float = PATIENCE) -> StreamRequest:
        """The next request; raises TimeoutError without one in so many seconds."""
        self._listener.settimeout(within)
        connection, _ = self._listener.accept()
        self._open.append(connection)
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = b""
        while b"\r\n\r\n" not in head:
            more = connection.recv(4096)
            assert more, f"the client left in the middle of {head!r}"
            head += more
        method, path, _ = head.split(b" ", 2)
        assert method == b"GET"
        return StreamRequest(path.decode(), connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()
