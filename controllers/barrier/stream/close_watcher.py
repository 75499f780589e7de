"""Waits for the clients that were told their verdict to close: only that shows that it has arrived.

They are asked in turn, a few at a time and once a second, instead of letting each close wake the loop.
"""

import asyncio
import select
from collections.abc import Callable, Iterable, Sequence

from controllers.barrier.stream.connection import StreamConnection
from controllers.barrier.stream.registry import CHUNK

CLOSE_TIMEOUT = 3.0
"""Seconds in which a client that was told closes; a barrier does as soon as it has read the first line."""

_CLOSED = select.POLLRDHUP
_BROKEN = select.POLLERR | select.POLLNVAL


class CloseWatcher:
    """Who has been told, and has not closed yet. `heard` is told of each that has."""

    def __init__(self, on_received: Callable[[StreamConnection], None]) -> None:
        self._on_received = on_received
        self._since: dict[StreamConnection, float] = {}

    def watch_connection(self, connection: StreamConnection) -> None:
        """It has been told everything, by now."""
        self._since[connection] = asyncio.get_running_loop().time()

    def forget_connection(self, connection: StreamConnection) -> None:
        """It is gone."""
        self._since.pop(connection, None)

    async def poll_connections(self) -> None:
        """Lets go of all that have closed, and of those that should have."""
        waiting = list(self._since.items())
        for first in range(0, len(waiting), CHUNK):
            self._poll_chunk([one for one in waiting[first : first + CHUNK] if one[0] in self._since])
            await asyncio.sleep(0)

    def _poll_chunk(self, some: Sequence[tuple[StreamConnection, float]]) -> None:
        late = asyncio.get_running_loop().time() - CLOSE_TIMEOUT
        states = _states(connection for connection, _ in some)
        for connection, since in some:
            state = states.get(connection, 0)
            if state & _CLOSED and not state & _BROKEN:
                self._on_received(connection)
            elif since > late and not state & _BROKEN:
                continue
            del self._since[connection]
            _close(connection)


def _close(connection: StreamConnection) -> None:
    transport = connection.transport
    if transport is None:
        return
    if transport.get_write_buffer_size():
        transport.abort()  # nobody reads it
    else:
        transport.close()  # and what is on its way still arrives


def _states(connections: Iterable[StreamConnection]) -> dict[StreamConnection, int]:
    """What the kernel knows of them, of those of which it knows anything."""
    asked = select.poll()
    by_number: dict[int, StreamConnection] = {}
    for connection in connections:
        transport = connection.transport
        number = -1 if transport is None else transport.get_extra_info("socket").fileno()
        if number >= 0:
            by_number[number] = connection
            asked.register(number, _CLOSED)
    return {by_number[number]: state for number, state in asked.poll(0)}
