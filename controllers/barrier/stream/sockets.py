"""The gate stream's socket that listens: set so that peers who are gone go, and a crowd gets in a few at a time."""

import asyncio
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

PEER_TIMEOUT = 30
"""Seconds without an acknowledgement after which a peer is given up."""

ACCEPT_BATCH = 64
LISTEN_BACKLOG = 4096
RESERVED_FILES = 256
"""Open files left to everything else in this process, the connections to the API server before all."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises OSError if the address is taken."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit these: a peer that is cut off goes within a heartbeat and GONE_AFTER.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, PEER_TIMEOUT * 1000)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PEER_TIMEOUT // 2)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PEER_TIMEOUT // 6)
        made.bind((host, port))
        made.listen(LISTEN_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def url_of(listening: socket.socket) -> str:
    """http://host:port."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def accepting(listening: socket.socket, made: Callable[[], asyncio.Protocol]) -> AsyncIterator[None]:
    """Accepts connections meanwhile, and closes the socket then; `made` makes each connection's protocol."""
    listener = await asyncio.get_running_loop().create_server(
        made, sock=listening, backlog=ACCEPT_BATCH, start_serving=False
    )
    try:
        await listener.start_serving()
        # asyncio accepts as many as its backlog at one go; the kernel may let more of them wait.
        listening.listen(LISTEN_BACKLOG)
        yield
    finally:
        listener.close()


def max_connections() -> int:
    """How many connections this process may hold."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else max(1, most - RESERVED_FILES)
