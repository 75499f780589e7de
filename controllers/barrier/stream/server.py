"""The gate stream (A6): `GET /v1/gangs/<ns>/<jobset>/<token>/<uid>/<attempt>/<epoch>/<pod>`, served by the leader.

Answers 200 at once and holds the request: an empty line now and then, finally the verdict, then the end. Speaks plain
HTTP to whatever client a barrier's image has. It costs speed when it fails, nothing else; so a port that is taken is
tried again and said, and stops nobody.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable

import structlog

from controllers.barrier.stream import sockets
from controllers.barrier.stream.close_watcher import CloseWatcher
from controllers.barrier.stream.connection import StreamConnection
from controllers.barrier.stream.keepalive import KEEPALIVE_INTERVAL, Keepalive
from controllers.barrier.stream.registry import CHUNK, RequestRefused, StreamRequest, WaiterRegistry
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import GangKey, Generation

LISTEN_RETRY_SECONDS = 5.0
"""Seconds until a port that was taken is tried again."""

REQUEST_TIMEOUT = 10.0
"""Seconds in which a client that has connected is to make its request."""

MAX_IDLE = 4096
"""Clients that have not made their request yet; at most 16 MiB of heads. A barrier's comes with its connection."""

TICK_SECONDS = 1.0

_PATH = ["", "v1", "gangs"]
_LONGEST_UID = 64

OnOutcome = Callable[[str], None]
"""Told of each request how it ended: "told" (and heard), "lost", or why it was refused."""

_log = structlog.get_logger(__name__)


class StreamServer:
    """The server; `url` while it listens. Port 0 takes a free one."""

    def __init__(
        self,
        waiters: WaiterRegistry,
        *,
        host: str,
        port: int,
        on_outcome: OnOutcome = lambda _: None,
        listening: asyncio.Event | None = None,
    ) -> None:
        """`listening` is set while it does."""
        self._listening = listening or asyncio.Event()
        self._waiters, self._host, self._port, self._on_outcome = waiters, host, port, on_outcome
        self._keepalive = Keepalive(KEEPALIVE_INTERVAL)
        self._close_watcher = CloseWatcher(self._on_received)
        self._connections: set[StreamConnection] = set()
        self._idle: OrderedDict[StreamConnection, float] = OrderedDict()
        """Those that have not made their request, and since when; oldest first."""
        self._max_connections = self._max_idle = 0
        self.url = ""

    async def run(self) -> None:
        """Listens until cancelled, and closes all connections then."""
        self._max_connections = sockets.max_connections()
        # Who says nothing takes no place from who waits: of few files, they get a quarter.
        self._max_idle = max(1, min(MAX_IDLE, self._max_connections // 4))
        self._waiters.limits.limit = max(1, min(self._waiters.limits.limit, self._max_connections - self._max_idle))
        listening = await self._bind()
        self.url = sockets.url_of(listening)
        try:
            async with sockets.accepting(listening, lambda: StreamConnection(self)):
                self._listening.set()
                _log.info("gate stream listens", url=self.url)
                while True:
                    await asyncio.sleep(TICK_SECONDS)
                    self._drop_idle()
                    await self._keepalive.send_due()
                    await self._close_watcher.poll_connections()
                    self._waiters.deliveries.expire_deliveries()
        finally:
            self._listening.clear()
            self.url = ""
            await self._close()

    # --- What connections tell ---------------------------------------------------------------------------------------

    def on_open(self, connection: StreamConnection) -> None:
        """It has been opened; closed again at once where there is no room for it."""
        self._connections.add(connection)
        if len(self._connections) > self._max_connections or not self.url:
            self._on_outcome("too_many" if self.url else "stopped")
            connection.disconnect()
            return
        if len(self._idle) >= self._max_idle:
            # The oldest: one that is going to ask has had the longest time for it.
            oldest, _ = self._idle.popitem(last=False)
            self._on_outcome("too_many")
            oldest.disconnect()
        self._idle[connection] = asyncio.get_running_loop().time()

    def on_request(self, connection: StreamConnection, line: str) -> StreamRequest:
        """It asks for this. Raises Refused."""
        self._idle.pop(connection, None)
        if not self.url:
            raise RequestRefused(503, "stopped", "no longer the leader")
        request = self._waiters.admit_request(*_parse_request_line(line), connection)
        if not request.answered and connection.transport is not None:
            self._keepalive.add_transport(connection.transport)
        return request

    def on_answer(self, connection: StreamConnection) -> None:
        """It has been told its verdict; an empty line after it would be one too many."""
        if connection.transport is not None:
            self._keepalive.remove_transport(connection.transport)

    def on_finish(self, connection: StreamConnection) -> None:
        """It has been told everything; its close is awaited."""
        self._close_watcher.watch_connection(connection)

    def on_refused(self, refusal: RequestRefused) -> None:
        """A request was turned away."""
        self._on_outcome(refusal.outcome)

    def on_close(self, connection: StreamConnection) -> None:
        """It is gone."""
        self._connections.discard(connection)
        self._idle.pop(connection, None)
        self._close_watcher.forget_connection(connection)
        if connection.transport is not None:
            self._keepalive.remove_transport(connection.transport)
        if connection.request is not None:
            self._waiters.remove_request(connection.request)
            self._on_outcome("told" if connection.request.acknowledged else "lost")

    # --- Details -----------------------------------------------------------------------------------------------------

    def _on_received(self, connection: StreamConnection) -> None:
        if connection.request is not None:
            self._waiters.acknowledge_request(connection.request)

    async def _bind(self) -> socket.socket:
        while True:
            try:
                return sockets.bind(self._host, self._port)
            except OSError as error:
                _log.warning("the gate stream cannot listen", host=self._host, port=self._port, error=str(error))
                await asyncio.sleep(LISTEN_RETRY_SECONDS)

    def _drop_idle(self) -> None:
        """Ends those that have connected a while ago and do not ask, or ask in drops."""
        since = asyncio.get_running_loop().time() - REQUEST_TIMEOUT
        for connection in [connection for connection, at in self._idle.items() if at <= since]:
            connection.disconnect()

    async def _close(self) -> None:
        try:
            for _ in range(3):  # those accepted last are only being made
                await asyncio.sleep(0)
            for number, connection in enumerate(list(self._connections), start=1):
                connection.disconnect()
                if number % CHUNK == 0:
                    await asyncio.sleep(0)
            while self._connections:  # noqa: ASYNC110 - each goes at the loop's next turn
                await asyncio.sleep(0)
        finally:
            for connection in self._connections:  # told to stop a second time: no connection is left behind for that
                connection.disconnect()


def _parse_request_line(line: str) -> tuple[GangKey, str, Generation, str]:
    """Gang, token, generation and pod of a request's first line. Raises Refused for what no barrier would ask."""
    method, _, rest = line.partition(" ")
    path, _, version = rest.partition(" ")
    parts = path.split("/")
    if method == "GET" and version.startswith("HTTP/1.") and len(parts) == 10 and parts[:3] == _PATH:
        namespace, jobset, token, uid, attempt, epoch, pod = parts[3:]
        generation = Generation(uid, verdict_codec.parse_number(attempt, -1), verdict_codec.parse_number(epoch, -1))
        if uid and generation.attempt >= 0 and generation.epoch >= 0 and 0 < len(pod) <= _LONGEST_UID:
            return GangKey(namespace, jobset), token, generation, pod
    raise RequestRefused(400, "malformed", "GET /v1/gangs/<namespace>/<jobset>/<token>/<uid>/<attempt>/<epoch>/<pod>")
