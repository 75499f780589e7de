"""A controller that is killed at an exact write: what SIGKILL does, to the write."""

import asyncio
from typing import Any

from jobset_gate.kube import client as kube


class CrashPoint:
    """Counts the writes of a controller's process and ends it at the n-th."""

    def __init__(self, *, last_write: int, lands: bool) -> None:
        self.last_write, self.lands = last_write, lands
        self.writes: list[str] = []
        self.dead = asyncio.Event()
        self._never = asyncio.Event()

    async def send(self, original: Any, client: kube.Client, call: Any, wanted: Any) -> Any:
        """One request of the doomed process. Nothing is heard of it after its end."""
        if self.dead.is_set():
            await self._never.wait()
        if call.method == "GET":
            return await original(client, call, wanted)
        self.writes.append(f"{call.method} {call.resource}")
        if len(self.writes) < self.last_write:
            return await original(client, call, wanted)
        if self.lands:
            await original(client, call, wanted)
        self.dead.set()
        await self._never.wait()
        raise AssertionError("the dead do not write")

    async def until_dead_or(self, end: asyncio.Task[object]) -> None:
        """Until the process is dead, or has come to this end without reaching that write."""
        dead = asyncio.create_task(self.dead.wait())
        await asyncio.wait((dead, end), return_when=asyncio.FIRST_COMPLETED)
        dead.cancel()


def doomed_client(fate: CrashPoint) -> type[kube.Client]:
    """The client of a process that has this fate."""
    original = kube.Client._send

    class Doomed(kube.Client):
        async def _send(self, call: Any, wanted: Any) -> Any:
            return await fate.send(original, self, call, wanted)

    return Doomed
