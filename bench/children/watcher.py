"""The floor and the naive way: reads the same pods by the same client, and drops each line or keeps it as a dict."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from bench.children import command_loop
from bench.children.command_loop import Json
from jobset_gate import names
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.runtime.paging import ListScope, LoopYielder, list_pages

SCOPE = ListScope(PODS, label_selector=f"{names.GATED}={names.GATED_VALUE}")
WATCH_SECONDS = 600


class PodWatcher:
    """The commands."""

    def __init__(self) -> None:
        self._events = 0
        self._pods: dict[tuple[str, str], Any] = {}
        self._news = asyncio.Event()
        self._awaited = 0
        self._task: asyncio.Task[None] | None = None

    async def run(self, server: str, keep: bool) -> Json:
        """Returns once everything is listed. `keep`: json.loads each object and keep it."""
        before = command_loop.usage()
        synced = asyncio.Event()
        self._task = asyncio.create_task(self._follow(server, keep, synced))
        await synced.wait()
        return {"idle": before, "full": command_loop.usage()}

    async def events(self, count: int) -> Json:
        """Waits until so many lines have come."""
        self._awaited = count
        while self._events < count:
            self._news.clear()
            await self._news.wait()
        return {}

    async def counts(self) -> Json:
        return {**command_loop.usage(), "events": self._events}

    async def _follow(self, server: str, keep: bool, synced: asyncio.Event) -> None:
        async with Client(Access(server=server), user_agent="watcher") as client:
            version, pacer = "", LoopYielder()
            async for items, version in list_pages(client, SCOPE, 500):  # noqa: B007 - all pages have the same version
                for raw in items:
                    if keep:
                        self._put(json.loads(bytes(raw)))
                    await pacer.yield_after(len(memoryview(raw)))
            synced.set()
            await self._watch(client, version, keep)

    async def _watch(self, client: Client, version: str, keep: bool) -> None:
        pacer = LoopYielder()
        async with client.watch(
            PODS, label_selector=SCOPE.label_selector, resource_version=version, timeout_seconds=WATCH_SECONDS
        ) as lines:
            async for line in lines:
                self._events += 1
                if self._events == self._awaited:
                    self._news.set()
                if keep:
                    self._put(json.loads(line)["object"])
                await pacer.yield_after(len(line))

    def _put(self, pod: Any) -> None:
        meta = pod.get("metadata") or {}
        if name := meta.get("name"):
            self._pods[meta.get("namespace", ""), name] = pod


async def main() -> None:
    """Watches until the parent goes."""
    its = PodWatcher()
    await command_loop.serve({"run": its.run, "events": its.events, "counts": its.counts})


if __name__ == "__main__":
    asyncio.run(main())
