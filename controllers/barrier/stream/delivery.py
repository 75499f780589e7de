"""Delivery of verdicts on the gate stream: which pods received one, and when.

A write proves nothing: a connection whose peer is cut off accepts every byte. Only a peer that closes after the answer
has received it. Pods without that proof fall back to the annotation patch.
"""

import asyncio
import select
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from jobset_gate.barrier.model import GangKey
from jobset_gate.runtime.clock import monotonic as loop_time

CHUNK: Final = 100
"""Connections handled before other tasks run: a few milliseconds."""

KEEP_SECONDS = 60.0
"""A pod that has not passed this long after the answer did not receive it."""

CLOSE_TIMEOUT = 3.0
"""Seconds in which a client closes after its answer; a barrier closes as soon as it has read the first line."""

_CLOSED = select.POLLRDHUP
_BROKEN = select.POLLERR | select.POLLNVAL


class DeliveryLog(dict[tuple[GangKey, str], float]):
    """(gang, pod UID) to the time of the first answer, by `clock`.

    A dict, because each pass looks up each pod. Keyed by gang, too: a request that names another gang's pod must not
    count for that pod.
    """

    def __init__(self, clock: Callable[[], float] = loop_time) -> None:
        super().__init__()
        self._monotonic = clock
        self._received: set[tuple[GangKey, str]] = set()

    def record_sent(self, gang: GangKey, pod: str) -> None:
        """The verdict is being sent, perhaps again."""
        self.setdefault((gang, pod), self._monotonic())

    def record_received(self, gang: GangKey, pod: str) -> None:
        """The pod has received the verdict."""
        self.record_sent(gang, pod)
        self._received.add((gang, pod))

    def discard_unconfirmed(self, gang: GangKey, pod: str) -> bool:
        """A connection of the pod ended without proof. True if the pod no longer counts as answered."""
        return (gang, pod) not in self._received and self.pop((gang, pod), None) is not None

    def expire_deliveries(self) -> None:
        """Removes old entries."""
        before = self._monotonic() - KEEP_SECONDS
        while self:
            oldest = next(iter(self))
            if self[oldest] > before:
                return
            del self[oldest]
            self._received.discard(oldest)


class Closing(Protocol):
    """A connection."""

    transport: asyncio.Transport | None


C = TypeVar("C", bound=Closing)


class CloseWatcher(Generic[C]):
    """Waits for answered clients to close, and calls `on_received` for each that does.

    Connections are polled in chunks once a second, so that ten thousand closes do not wake the loop ten thousand times.
    """

    def __init__(self, on_received: Callable[[C], None]) -> None:
        self._on_received = on_received
        self._since: dict[C, float] = {}

    def watch_connection(self, connection: C) -> None:
        """The answer has been sent."""
        self._since[connection] = loop_time()

    def forget_connection(self, connection: C) -> None:
        self._since.pop(connection, None)

    async def poll_connections(self) -> None:
        """Closes all connections whose client has closed or is overdue."""
        waiting = list(self._since.items())
        for first in range(0, len(waiting), CHUNK):
            self._poll_chunk([one for one in waiting[first : first + CHUNK] if one[0] in self._since])
            await asyncio.sleep(0)

    def _poll_chunk(self, some: Sequence[tuple[C, float]]) -> None:
        overdue = loop_time() - CLOSE_TIMEOUT
        states = _states(connection for connection, _ in some)
        for connection, since in some:
            state = states.get(connection, 0)
            if state & _CLOSED and not state & _BROKEN:
                self._on_received(connection)
            elif since > overdue and not state & _BROKEN:
                continue
            del self._since[connection]
            _close(connection)


def _close(connection: Closing) -> None:
    transport = connection.transport
    if transport is None:
        return
    if transport.get_write_buffer_size():
        transport.abort()  # the client does not read
    else:
        transport.close()


def _states(connections: Iterable[C]) -> dict[C, int]:
    """Poll states of the sockets that have one."""
    poll = select.poll()
    by_number: dict[int, C] = {}
    for connection in connections:
        transport = connection.transport
        number = -1 if transport is None else transport.get_extra_info("socket").fileno()
        if number >= 0:
            by_number[number] = connection
            poll.register(number, _CLOSED)
    return {by_number[number]: state for number, state in poll.poll(0)}
