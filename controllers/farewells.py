"""Waits for the clients that were told their verdict to close: only that shows that it has arrived.

They are asked in turn, a few at a time and once a second, instead of letting each close wake the loop.
"""

import asyncio
import select
from collections.abc import Callable, Iterable, Sequence

from controllers.announcements import SLICE
from controllers.stream_connection import Connection

HEARD_WITHIN = 3.0
"""Seconds in which a client that was told closes; a barrier does as soon as it has read the first line."""

_CLOSED = select.POLLRDHUP
_BROKEN = select.POLLERR | select.POLLNVAL


class Farewells:
    """Who has been told, and has not closed yet. `heard` is told of each that has."""

    def __init__(self, heard: Callable[[Connection], None]) -> None:
        self._heard = heard
        self._since: dict[Connection, float] = {}

    def begin(self, connection: Connection) -> None:
        """It has been told everything, by now."""
        self._since[connection] = asyncio.get_running_loop().time()

    def forget(self, connection: Connection) -> None:
        """It is gone."""
        self._since.pop(connection, None)

    async def look(self) -> None:
        """Lets go of all that have closed, and of those that should have."""
        waiting = list(self._since.items())
        for first in range(0, len(waiting), SLICE):
            self._look_at([one for one in waiting[first : first + SLICE] if one[0] in self._since])
            await asyncio.sleep(0)

    def _look_at(self, some: Sequence[tuple[Connection, float]]) -> None:
        late = asyncio.get_running_loop().time() - HEARD_WITHIN
        states = _states(connection for connection, _ in some)
        for connection, since in some:
            state = states.get(connection, 0)
            if state & _CLOSED and not state & _BROKEN:
                self._heard(connection)
            elif since > late and not state & _BROKEN:
                continue
            del self._since[connection]
            _let_go(connection)


def _let_go(connection: Connection) -> None:
    transport = connection.transport
    if transport is None:
        return
    if transport.get_write_buffer_size():
        transport.abort()  # nobody reads it
    else:
        transport.close()  # and what is on its way still arrives


def _states(connections: Iterable[Connection]) -> dict[Connection, int]:
    """What the kernel knows of them, of those of which it knows anything."""
    asked = select.poll()
    by_number: dict[int, Connection] = {}
    for connection in connections:
        transport = connection.transport
        number = -1 if transport is None else transport.get_extra_info("socket").fileno()
        if number >= 0:
            by_number[number] = connection
            asked.register(number, _CLOSED)
    return {by_number[number]: state for number, state in asked.poll(0)}
