"""Notes when each pod was seen with a node: with a watch of its own."""

from __future__ import annotations

import asyncio
import time

from bench.children import command_loop
from bench.children.command_loop import Json
from bench.groups.children import pods
from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.client import Client

BOUND = "spec.nodeName!="


class BindingWatcher:
    """The commands."""

    def __init__(self) -> None:
        self._kubeconfig = ""
        self._bound = 0
        self._last: dict[str, float] = {}
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    async def run(self, kubeconfig: str) -> Json:
        self._kubeconfig = kubeconfig
        return {}

    async def begin(self, namespace: str) -> Json:
        """Returns once every pod that is bound from now on will be seen."""
        ready = asyncio.Event()
        self._bound, self._last = 0, {}
        self._following = asyncio.create_task(self._follow(namespace, ready))
        await ready.wait()
        return {}

    async def until(self, count: int) -> Json:
        """Waits until so many are bound: when the last one of each group was."""
        following = self._following
        assert following is not None, "it has not begun"
        while self._bound < count:
            self._news.clear()
            news = asyncio.create_task(self._news.wait())
            await asyncio.wait((news, following), return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                news.cancel()
                following.result()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return {"last": self._last}

    async def _follow(self, namespace: str, ready: asyncio.Event) -> None:
        async with Client(await from_kubeconfig(self._kubeconfig), user_agent="watcher") as client:
            version = await pods.begin(client, namespace, BOUND)
            ready.set()
            async for pod in pods.follow(client, namespace, version, BOUND):
                self._bound += 1
                self._last[pod.group] = time.time()
                self._news.set()


async def main() -> None:
    """Serves until the parent goes."""
    its = BindingWatcher()
    await command_loop.serve({"run": its.run, "begin": its.begin, "until": its.until})


if __name__ == "__main__":
    asyncio.run(main())
