"""The reconcile loop of a simulated controller: keys in, one reconcile per key at a time, failures retried later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from jobset_gate.fake.objects import Key
from jobset_gate.kube.errors import Conflict, KubeError

log = logging.getLogger(__name__)

FIRST_RETRY = 0.01  # seconds; doubled with every failure in a row
LAST_RETRY = 5.0


class Loop:
    """Reconciles keys. `reaction` is the time in seconds that passes between a change and its reconcile.

    All changes of a key within that time are seen as one: with a long reaction a controller never sees a suspend that
    was taken back at once. `pause` stops the loop between two reconciles, `resume` lets it go on with what has
    collected meanwhile.
    """

    def __init__(
        self, name: str, reconcile: Callable[[Key], Awaitable[None]], *, reaction: float, workers: int
    ) -> None:
        self.reaction = reaction
        self._name = name
        self._reconcile = reconcile
        self._workers = workers
        self._waiting: dict[Key, asyncio.TimerHandle] = {}
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._open = asyncio.Event()
        self._open.set()

    def pause(self) -> None:
        """Start no reconcile until `resume`; one that runs is finished."""
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def add(self, key: Key) -> None:
        """Something about the key has changed."""
        self.add_after(key, self.reaction)

    def add_after(self, key: Key, seconds: float) -> None:
        """Reconcile after that time, or before if there is an earlier appointment."""
        if seconds <= 0:
            self._forget_timer(key)
            self._push(key)
            return
        if key in self._queued:
            return
        loop = asyncio.get_running_loop()
        timer = self._waiting.get(key)
        when = loop.time() + seconds
        if timer is not None and timer.when() <= when:
            return
        self._forget_timer(key)
        self._waiting[key] = loop.call_at(when, self._due, key)

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work())
        finally:
            for key in list(self._waiting):
                self._forget_timer(key)

    def _due(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._push(key)

    def _push(self, key: Key) -> None:
        if key in self._busy:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.put_nowait(key)

    def _forget_timer(self, key: Key) -> None:
        timer = self._waiting.pop(key, None)
        if timer is not None:
            timer.cancel()

    async def _work(self) -> None:
        while True:
            key = await self._ready.get()
            await self._open.wait()
            self._queued.discard(key)
            self._busy.add(key)
            try:
                await self._attempt(key)
            finally:
                self._busy.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)

    async def _attempt(self, key: Key) -> None:
        try:
            await self._reconcile(key)
        except KubeError as error:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            level = logging.DEBUG if isinstance(error, Conflict) else logging.WARNING
            log.log(level, "%s %s/%s: %s", self._name, *key, error)
            self.add_after(key, min(LAST_RETRY, FIRST_RETRY * 2**failures))
        else:
            self._failures.pop(key, None)
