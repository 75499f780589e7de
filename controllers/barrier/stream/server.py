"""The gate stream (A6): `GET /v1/<source>/<ns>/<workload>/<token>/<uid>/<attempt>/<epoch>/<pod>`, served by the
leader; <source> is the word of the table of sources. For a pod that is gated alone `/v1/pods/<ns>/<token>/<uid>/...`:
no workload, and the pod's own token.

Answers 200 at once and holds the request: empty lines as keepalive, then the verdict, then the end. Plain HTTP, for any
client that a barrier's image has. A failure only costs speed: a port in use is logged and retried, and stops nothing
else.

Written on asyncio's transports, because ten thousand connections are held: with aiohttp's server a waiting request took
11 KiB (2 here), reconnecting after a fail-over took four times as long, and a full garbage collection stopped the loop
for 200 ms.
"""

import asyncio
import resource
import socket
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import cast

import structlog

from controllers.barrier.stream.delivery import CHUNK, CloseWatcher
from controllers.barrier.stream.keepalive import EMPTY_LINE, Keepalive
from controllers.barrier.stream.registry import RequestRefused, StreamRequest, WaiterRegistry
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import GangKey, Generation
from jobset_gate.sources.table import SOURCES

LISTEN_RETRY_SECONDS = 5.0

REQUEST_TIMEOUT = 10.0
"""Seconds from connection to request."""

MAX_REQUEST_BYTES = 4096
"""Bytes of request line and headers; a barrier sends 400, a service mesh's proxy adds up to 2,000."""

MAX_IDLE = 4096
"""Connections without a request; at most 16 MiB of heads. A barrier sends its request at once."""

TICK_SECONDS = 1.0

PEER_TIMEOUT = 30
"""Seconds without a TCP acknowledgement after which a connection is closed."""

ACCEPT_BATCH = 64
LISTEN_BACKLOG = 4096
RESERVED_FILES = 256
"""Open files reserved for the rest of the process, above all for connections to the API server."""

_END = b"\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
_PATH = ["", "v1"]
_SOURCES = {source.stream: source for source in SOURCES.values()}
"""By their part of the path."""
_LONGEST_UID = 64
_SHAPE = f"GET /v1/<{'|'.join(_SOURCES)}>/<namespace>/[<workload>/]<token>/<uid>/<attempt>/<epoch>/<pod>"

OnOutcome = Callable[[str, str], None]
"""Called with source and outcome of each request: "told" (received), "lost", or why it was refused."""

_log = structlog.get_logger(__name__)


class StreamConnection(asyncio.Protocol):
    """One request for a path and one answer; `request` once it is admitted, `transport` while the connection is open.

    Headers and bodies are ignored, one request is read, and the answer ends with the connection.
    """

    __slots__ = ("_opened", "_read", "_server", "request", "transport")

    def __init__(self, server: "StreamServer") -> None:
        self._server = server
        self._read: bytes | None = b""
        """The request so far; None once it is complete."""
        self._opened = False
        self.request: StreamRequest | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._server.on_open(self)

    def data_received(self, data: bytes) -> None:
        if self._read is None:
            return  # the request is complete
        self._read += data[: MAX_REQUEST_BYTES + 1]
        if 0 <= self._read.find(_END) <= MAX_REQUEST_BYTES - len(_END):
            line = self._read.partition(b"\r\n")[0].decode("latin-1")
            self._read = None
            self._handle_request(line)
        elif len(self._read) > MAX_REQUEST_BYTES:
            self._refuse(RequestRefused(431, "malformed", f"more than {MAX_REQUEST_BYTES} bytes of headers"))

    def connection_lost(self, _: Exception | None) -> None:
        self._server.on_close(self)
        self.transport = None

    def send_answer(self, text: bytes) -> bool:
        """Sends the answer. False if the client is gone."""
        if self.transport is None or self.transport.is_closing():
            return False
        # Ten thousand clients that close at once would block the loop: the CloseWatcher polls them in chunks instead.
        self.transport.pause_reading()
        self.transport.write(text if self._opened else _HEAD + text)
        self._server.keepalive.remove_transport(self.transport)
        return not self.transport.is_closing()  # a write into a connection that was reset raises nothing

    def finish(self) -> None:
        """Closes this end. A client that closes the other end has received the answer."""
        if self.transport is None or self.transport.is_closing():
            return
        try:
            self.transport.write_eof()
        except OSError:  # reset meanwhile
            self.transport.abort()
            return
        self._server.close_watcher.watch_connection(self)

    def disconnect(self) -> None:
        """Aborts the connection."""
        if self.transport is not None:
            self.transport.abort()

    def _handle_request(self, line: str) -> None:
        try:
            self.request = self._server.on_request(self, line)
        except RequestRefused as refusal:
            self._refuse(refusal)
            return
        if self.transport is not None and not self.request.answered:
            # The empty line shows the client that its request is held, and makes proxies forward the head.
            self.transport.write(_HEAD + EMPTY_LINE)
            self._opened = True

    def _refuse(self, refusal: RequestRefused) -> None:
        self._read = None
        status, text = HTTPStatus(refusal.status), f"{refusal}\n".encode()
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
        if self.transport is not None:
            self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + text)
            self.transport.close()
        self._server.on_outcome(refusal.source, refusal.outcome)


class StreamServer:
    """`url` while it listens; port 0 takes a free one. `listening` is set while it listens."""

    def __init__(
        self,
        waiters: WaiterRegistry,
        *,
        host: str,
        port: int,
        on_outcome: OnOutcome = lambda _, __: None,
        listening: asyncio.Event | None = None,
    ) -> None:
        self._listening = listening or asyncio.Event()
        self._waiters, self._host, self._port, self.on_outcome = waiters, host, port, on_outcome
        self.keepalive = Keepalive()
        self.close_watcher = CloseWatcher(self._on_received)
        self._connections: set[StreamConnection] = set()
        self._idle: OrderedDict[StreamConnection, float] = OrderedDict()
        """Connections without a request, oldest first."""
        self._max_connections = self._max_idle = 0
        self.url = ""

    async def run(self) -> None:
        """Listens until cancelled, then closes all connections."""
        self._max_connections = max_connections()
        # Connections without a request get at most a quarter of the files.
        self._max_idle = max(1, min(MAX_IDLE, self._max_connections // 4))
        self._waiters.limits.limit = max(1, min(self._waiters.limits.limit, self._max_connections - self._max_idle))
        listening = await self._bind()
        self.url = url_of(listening)
        try:
            async with accepting(listening, lambda: StreamConnection(self)):
                self._listening.set()
                _log.info("gate stream listens", url=self.url)
                while True:
                    await asyncio.sleep(TICK_SECONDS)
                    self._drop_idle()
                    await self.keepalive.send_due()
                    await self.close_watcher.poll_connections()
                    self._waiters.deliveries.expire_deliveries()
        finally:
            self._listening.clear()
            self.url = ""
            await self._close()

    def on_open(self, connection: StreamConnection) -> None:
        """Registers the connection, or aborts it at a limit."""
        self._connections.add(connection)
        if len(self._connections) > self._max_connections or not self.url:
            self.on_outcome("", "too_many" if self.url else "stopped")
            connection.disconnect()
            return
        if len(self._idle) >= self._max_idle:
            # The oldest had the longest time to send its request.
            oldest, _ = self._idle.popitem(last=False)
            self.on_outcome("", "too_many")
            oldest.disconnect()
        self._idle[connection] = asyncio.get_running_loop().time()

    def on_request(self, connection: StreamConnection, line: str) -> StreamRequest:
        """Admits the request. Raises RequestRefused."""
        self._idle.pop(connection, None)
        if not self.url:
            raise RequestRefused(503, "stopped", "no longer the leader")
        request = self._waiters.admit_request(*_parse_request_line(line), connection)
        if not request.answered and connection.transport is not None:
            self.keepalive.add_transport(connection.transport)
        return request

    def on_close(self, connection: StreamConnection) -> None:
        """Removes the connection and its request."""
        self._connections.discard(connection)
        self._idle.pop(connection, None)
        self.close_watcher.forget_connection(connection)
        if connection.transport is not None:
            self.keepalive.remove_transport(connection.transport)
        if connection.request is not None:
            self._waiters.remove_request(connection.request)
            request = connection.request
            self.on_outcome(request.key.source, "told" if request.acknowledged else "lost")

    def _on_received(self, connection: StreamConnection) -> None:
        if connection.request is not None:
            self._waiters.acknowledge_request(connection.request)

    async def _bind(self) -> socket.socket:
        while True:
            try:
                return bind(self._host, self._port)
            except OSError as error:
                _log.warning("the gate stream cannot listen", host=self._host, port=self._port, error=str(error))
                await asyncio.sleep(LISTEN_RETRY_SECONDS)

    def _drop_idle(self) -> None:
        """Aborts connections whose request is overdue or arrives too slowly."""
        since = asyncio.get_running_loop().time() - REQUEST_TIMEOUT
        for connection in [connection for connection, at in self._idle.items() if at <= since]:
            connection.disconnect()

    async def _close(self) -> None:
        try:
            for _ in range(3):  # connections that are being accepted
                await asyncio.sleep(0)
            for number, connection in enumerate(list(self._connections), start=1):
                connection.disconnect()
                if number % CHUNK == 0:
                    await asyncio.sleep(0)
            while self._connections:  # noqa: ASYNC110 - each closes at the loop's next turn
                await asyncio.sleep(0)
        finally:
            for connection in self._connections:  # cancelled again: leave no connection open
                connection.disconnect()


def _parse_request_line(line: str) -> tuple[GangKey, str, Generation, str]:
    """Gang, token, generation and pod. Raises RequestRefused."""
    method, _, rest = line.partition(" ")
    path, _, version = rest.partition(" ")
    parts = path.split("/")
    source = _SOURCES.get(parts[2]) if len(parts) > 3 and parts[:2] == _PATH else None
    if source is not None and source.gates_pods:
        parts.insert(4, "")  # no workload
    if source is not None and method == "GET" and version.startswith("HTTP/1.") and len(parts) == 10:
        namespace, name, token, uid, attempt, epoch, pod = parts[3:]
        generation = verdict_codec.parse_generation(uid, attempt, epoch)
        if generation is not None and 0 < len(pod) <= _LONGEST_UID:
            return GangKey(namespace, name, source.name), token, generation, pod
    raise RequestRefused(400, "malformed", _SHAPE)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError if the address is in use."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Inherited by accepted sockets: a peer that is cut off is closed within a keepalive and PEER_TIMEOUT.
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
    """Accepts connections inside the context, and closes the socket after it."""
    listener = await asyncio.get_running_loop().create_server(
        made, sock=listening, backlog=ACCEPT_BATCH, start_serving=False
    )
    try:
        await listener.start_serving()
        # asyncio accepts as many as its backlog at once; the kernel may queue more.
        listening.listen(LISTEN_BACKLOG)
        yield
    finally:
        listener.close()


def max_connections() -> int:
    """Connections that this process may hold."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else max(1, most - RESERVED_FILES)
