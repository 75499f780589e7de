"""What stands between a controller and the API in these tests: calls may be held, counted, or made to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jobset_gate.kube.errors import KubeError
from tests.jobset_gate.world.client import Answer, Call


class Doors:
    """`shut` holds calls from now on until `open`; `fail` decides by the call what it raises."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self.fail: Callable[[Call], KubeError | None] = lambda _: None
        self.inside = 0
        """Calls under way."""
        self.most_inside = 0
        self.asked: list[Call] = []
        """Every call, also one that failed or is held."""

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def __call__(self, call: Call) -> Answer:
        self.asked.append(call)
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            await asyncio.sleep(0)
            await self._open.wait()
            error = self.fail(call)
            if error is not None:
                raise error
        finally:
            self.inside -= 1
        return Answer.DONE
