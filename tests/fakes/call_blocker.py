"""What stands between a controller and the API in these tests: calls may be held, listed, or made to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jobset_gate.kube.errors import KubeError
from tests.fakes.memory_client import Answer, Call


class CallBlocker:
    """`shut` holds calls from now on until `open`; `fail` decides by the call what it raises."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self.fail: Callable[[Call], KubeError | None] = lambda _: None
        self.calls: list[Call] = []
        """Every call, also one that failed or is held."""

    def block(self) -> None:
        self._open.clear()

    def unblock(self) -> None:
        self._open.set()

    async def __call__(self, call: Call) -> Answer:
        self.calls.append(call)
        await asyncio.sleep(0)
        await self._open.wait()
        error = self.fail(call)
        if error is not None:
            raise error
        return Answer.DONE
