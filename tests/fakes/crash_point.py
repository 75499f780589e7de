"""A controller that is killed at an exact write: what SIGKILL does, to the write."""

import asyncio
from typing import Any

import pytest

from controllers import manager
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


def crash_controllers(monkeypatch: pytest.MonkeyPatch, fate: CrashPoint) -> None:
    """Controllers started from now on have this fate."""
    original = kube.Client._send

    class Doomed(kube.Client):
        async def _send(self, call: Any, wanted: Any) -> Any:
            return await fate.send(original, self, call, wanted)

    monkeypatch.setattr(manager, "Client", Doomed)
