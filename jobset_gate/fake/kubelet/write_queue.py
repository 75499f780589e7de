"""Writes to the API server in the background: a bounded number at once, one at a time per object, retried."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from jobset_gate.kube.errors import Conflict, KubeError, NotFound

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
Write = Callable[[], Awaitable[None]]


class WriteQueue:
    """`put(key, write)`: a later write of a key takes the place of one that has not begun.

    NotFound and Conflict end a write quietly: the object is gone, or another one has its name. Any other failure of the
    API is logged and the write is tried again, unless a newer one has come.
    """

    def __init__(self, parallel: int) -> None:
        self._parallel = parallel
        self._next: dict[str, Write] = {}
        self._busy: set[str] = set()
        self._keys: asyncio.Queue[str] = asyncio.Queue()

    @property
    def depth(self) -> int:
        """Writes that wait or run."""
        return len(self._next) + len(self._busy)

    def put(self, key: str, write: Write) -> None:
        known = key in self._next
        self._next[key] = write
        if not known and key not in self._busy:
            self._keys.put_nowait(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._parallel):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._keys.get()
            write = self._next.pop(key, None)
            if write is None:
                continue
            self._busy.add(key)
            try:
                await self._attempt(key, write)
            finally:
                self._busy.discard(key)
                if key in self._next:
                    self._keys.put_nowait(key)

    async def _attempt(self, key: str, write: Write) -> None:
        try:
            await write()
        except (NotFound, Conflict) as error:
            log.debug("%s: %s", key, error)
        except KubeError as error:
            log.warning("%s: %s", key, error)
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._again, key, write)

    def _again(self, key: str, write: Write) -> None:
        if key not in self._next:
            self.put(key, write)
