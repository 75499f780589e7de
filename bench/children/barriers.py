"""Ten thousand barriers as far as the gate stream sees them: raw sockets that ask, are held, and read to the end."""

from __future__ import annotations

import asyncio
import resource
import selectors
import socket
import time
from urllib.parse import urlsplit

from bench.children import command_loop
from bench.children.command_loop import Json

PER_ADDRESS = 5000
"""Connections from one address of ours, which has some 28,000 ports; loopback has 16 million addresses."""
TIMEOUT = 600.0
_HELD = b"\r\n\r\n\n"
"""What ends the head of a request that is held: an empty line more."""


class BarrierConnections:
    """The commands. Blocking work is done in a thread, while the pipe to the parent is listened to."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    async def open(self, url: str, paths: list[str]) -> Json:
        """One request for each path; returns when all are held, with the seconds that this took."""
        return await asyncio.to_thread(self._open, url, paths)

    async def hear(self) -> Json:
        """Reads all answers to their ends: when the first and the last had come, and how many held a verdict."""
        return await asyncio.to_thread(self._read)

    def _open(self, url: str, paths: list[str]) -> Json:
        start = time.perf_counter()
        where = urlsplit(url)
        made = [self._ask(str(where.hostname), int(where.port or 80), path) for path in paths]
        for one in made:
            _read_head(one)
        self._sockets += made
        return {"seconds": time.perf_counter() - start}

    def _ask(self, host: str, port: int, path: str) -> socket.socket:
        number = len(self._sockets) // PER_ADDRESS
        made = socket.create_connection((host, port), TIMEOUT, source_address=(f"127.0.0.{2 + number}", 0))
        made.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: Wget\r\n\r\n".encode())
        return made

    def _read(self) -> Json:
        times: list[float] = []
        with selectors.DefaultSelector() as waiting:
            for one in self._sockets:
                waiting.register(one, selectors.EVENT_READ, one)
            while waiting.get_map():
                ready = waiting.select(TIMEOUT)
                assert ready, f"{len(waiting.get_map())} of {len(self._sockets)} were never answered"
                for key, _ in ready:
                    data = key.data.recv(4096)
                    if b"release " in data:
                        times.append(time.perf_counter())
                    if not data:
                        waiting.unregister(key.data)
                        key.data.close()
        self._sockets.clear()
        return {"heard": len(times), "first": min(times, default=0.0), "last": max(times, default=0.0)}


def _read_head(one: socket.socket) -> None:
    """Until the request is held: headers and one empty line more. A verdict that is there already stays unread."""
    head = b""
    while not head.endswith(_HELD):
        data = one.recv(4096, socket.MSG_PEEK)
        assert data, f"not held: {head!r}"
        end = (head + data).find(_HELD)
        head += one.recv(len(data) if end < 0 else end + len(_HELD) - len(head))
    assert b" 200 " in head.partition(b"\r\n")[0], head


async def main() -> None:
    """Serves until the parent goes."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    its = BarrierConnections()
    await command_loop.serve({"open": its.open, "hear": its.hear})


if __name__ == "__main__":
    asyncio.run(main())
