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

from controllers import stream_sockets
from controllers.announcements import SLICE, Announcements, Refused, Request
from controllers.farewells import Farewells
from controllers.heartbeats import HEARTBEAT, Heartbeats
from controllers.keys import Key
from controllers.stream_connection import Connection
from jobset_gate import verdicts
from jobset_gate.model import Generation

LISTEN_AGAIN = 5.0
"""Seconds until a port that was taken is tried again."""

SILENCE = 10.0
"""Seconds in which a client that has connected is to make its request."""

MOST_MUTE = 4096
"""Clients that have not made their request yet; at most 16 MiB of heads. A barrier's comes with its connection."""

TICK = 1.0

_PATH = ["", "v1", "gangs"]
_LONGEST_UID = 64

Outcome = Callable[[str], None]
"""Told of each request how it ended: "told" (and heard), "lost", or why it was refused."""

_log = structlog.get_logger(__name__)


class Stream:
    """The server; `url` while it listens. Port 0 takes a free one."""

    def __init__(
        self,
        book: Announcements,
        *,
        host: str,
        port: int,
        outcome: Outcome = lambda _: None,
        listening: asyncio.Event | None = None,
    ) -> None:
        """`listening` is set while it does."""
        self._listening = listening or asyncio.Event()
        self._book, self._host, self._port, self._outcome = book, host, port, outcome
        self._hearts = Heartbeats(HEARTBEAT)
        self._farewells = Farewells(self._heard)
        self._connections: set[Connection] = set()
        self._mute: OrderedDict[Connection, float] = OrderedDict()
        """Those that have not made their request, and since when; oldest first."""
        self._room = self._most_mute = 0
        self.url = ""

    async def run(self) -> None:
        """Listens until cancelled, and closes all connections then."""
        self._room = stream_sockets.room()
        # Who says nothing takes no place from who waits: of few files, they get a quarter.
        self._most_mute = max(1, min(MOST_MUTE, self._room // 4))
        self._book.places.most = max(1, min(self._book.places.most, self._room - self._most_mute))
        listening = await self._bound()
        self.url = stream_sockets.url_of(listening)
        try:
            async with stream_sockets.accepting(listening, lambda: Connection(self)):
                self._listening.set()
                _log.info("gate stream listens", url=self.url)
                while True:
                    await asyncio.sleep(TICK)
                    self._drop_mute()
                    await self._hearts.beat()
                    await self._farewells.look()
                    self._book.told.tidy()
        finally:
            self._listening.clear()
            self.url = ""
            await self._close()

    # --- What connections tell ---------------------------------------------------------------------------------------

    def came(self, connection: Connection) -> None:
        """It has been opened; closed again at once where there is no room for it."""
        self._connections.add(connection)
        if len(self._connections) > self._room or not self.url:
            self._outcome("too_many" if self.url else "stopped")
            connection.drop()
            return
        if len(self._mute) >= self._most_mute:
            # The oldest: one that is going to ask has had the longest time for it.
            oldest, _ = self._mute.popitem(last=False)
            self._outcome("too_many")
            oldest.drop()
        self._mute[connection] = asyncio.get_running_loop().time()

    def asked(self, connection: Connection, line: str) -> Request:
        """It asks for this. Raises Refused."""
        self._mute.pop(connection, None)
        if not self.url:
            raise Refused(503, "stopped", "no longer the leader")
        request = self._book.admit(*_read(line), connection)
        if not request.told and connection.transport is not None:
            self._hearts.start(connection.transport)
        return request

    def spoke(self, connection: Connection) -> None:
        """It has been told its verdict; an empty line after it would be one too many."""
        if connection.transport is not None:
            self._hearts.stop(connection.transport)

    def ended(self, connection: Connection) -> None:
        """It has been told everything; its close is awaited."""
        self._farewells.begin(connection)

    def refused(self, refusal: Refused) -> None:
        """A request was turned away."""
        self._outcome(refusal.outcome)

    def went(self, connection: Connection) -> None:
        """It is gone."""
        self._connections.discard(connection)
        self._mute.pop(connection, None)
        self._farewells.forget(connection)
        if connection.transport is not None:
            self._hearts.stop(connection.transport)
        if connection.request is not None:
            self._book.leave(connection.request)
            self._outcome("told" if connection.request.heard else "lost")

    # --- Details -----------------------------------------------------------------------------------------------------

    def _heard(self, connection: Connection) -> None:
        if connection.request is not None:
            self._book.hear(connection.request)

    async def _bound(self) -> socket.socket:
        while True:
            try:
                return stream_sockets.bound(self._host, self._port)
            except OSError as error:
                _log.warning("the gate stream cannot listen", host=self._host, port=self._port, error=str(error))
                await asyncio.sleep(LISTEN_AGAIN)

    def _drop_mute(self) -> None:
        """Ends those that have connected a while ago and do not ask, or ask in drops."""
        since = asyncio.get_running_loop().time() - SILENCE
        for connection in [connection for connection, at in self._mute.items() if at <= since]:
            connection.drop()

    async def _close(self) -> None:
        try:
            for _ in range(3):  # those accepted last are only being made
                await asyncio.sleep(0)
            for number, connection in enumerate(list(self._connections), start=1):
                connection.drop()
                if number % SLICE == 0:
                    await asyncio.sleep(0)
            while self._connections:  # noqa: ASYNC110 - each goes at the loop's next turn
                await asyncio.sleep(0)
        finally:
            for connection in self._connections:  # told to stop a second time: no connection is left behind for that
                connection.drop()


def _read(line: str) -> tuple[Key, str, Generation, str]:
    """Gang, token, generation and pod of a request's first line. Raises Refused for what no barrier would ask."""
    method, _, rest = line.partition(" ")
    path, _, version = rest.partition(" ")
    parts = path.split("/")
    if method == "GET" and version.startswith("HTTP/1.") and len(parts) == 10 and parts[:3] == _PATH:
        namespace, jobset, token, uid, attempt, epoch, pod = parts[3:]
        generation = Generation(uid, verdicts.number(attempt, -1), verdicts.number(epoch, -1))
        if uid and generation.attempt >= 0 and generation.epoch >= 0 and 0 < len(pod) <= _LONGEST_UID:
            return Key(namespace, jobset), token, generation, pod
    raise Refused(400, "malformed", "GET /v1/gangs/<namespace>/<jobset>/<token>/<uid>/<attempt>/<epoch>/<pod>")
