"""The shipped controller in a process of its own, with two ears: when a gang's last pod started, when it was decided."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from typing import Any
from unittest.mock import patch

from typing_extensions import override

from bench.children import talk
from bench.children.heart import Heart
from bench.children.talk import Json
from controllers import manager as its_manager
from controllers.gates import Gates
from controllers.index import Index
from controllers.keys import Key
from controllers.manager import Manager, Options
from jobset_gate import names, wire
from jobset_gate.cli import logs
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.kube.access import Access, from_kubeconfig
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.kube.store import Change
from jobset_gate.model import GateSeen, PodSeen

READS = frozenset({"get", "list", "watch"})
QUIET = 0.5
"""Seconds without a request after which the controller is taken to have nothing to do."""


class Notes:
    """What the ears have heard."""

    def __init__(self) -> None:
        self.events = 0
        """Changes of pods that came to the index."""
        self.last_start: dict[Key, float] = {}
        self.decided: dict[Key, float] = {}
        """When the answer to the write of a verdict was there."""
        self.writer: Client | None = None
        self.news = asyncio.Event()
        self.awaited = 0

    async def until(self, count: int) -> None:
        """Until so many pod events have come."""
        self.awaited = count
        while self.events < count:
            self.news.clear()
            await self.news.wait()
        self.awaited = 0

    async def until_decided(self, key: Key) -> None:
        while key not in self.decided:
            self.news.clear()
            await self.news.wait()


NOTES = Notes()


class _Index(Index):
    @override
    def on_pod(self, change: Change[PodSeen]) -> None:
        NOTES.events += 1
        new, old = change.new, change.old
        if new is not None and new.started and not (old is not None and old.started):
            NOTES.last_start[Key(new.namespace, new.gang)] = time.perf_counter()
        if NOTES.events == NOTES.awaited:
            NOTES.news.set()
        super().on_pod(change)

    @override
    def saw_gate(self, key: Key, gate: GateSeen | None) -> None:
        if gate is not None and gate.verdict is not None and key not in NOTES.decided:
            NOTES.decided[key] = time.perf_counter()
            NOTES.news.set()
        super().saw_gate(key, gate)


class _Gates(Gates):
    def __init__(self, client: Client, index: Index) -> None:
        super().__init__(client, index)
        NOTES.writer = client


class Controller:
    """The commands."""

    def __init__(self) -> None:
        self._manager: Manager | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._heart = Heart()
        self._bare: Json | None = None

    async def run(
        self, *, server: str | None = None, kubeconfig: str | None = None, namespace: str, only: str | None = None
    ) -> Json:
        """Starts it; returns once its caches are full and it leads, with the beats of its loop up to then."""
        access = Access(server=server) if server else await from_kubeconfig(kubeconfig)
        options = Options(namespace=namespace, watch_namespace=only, identity="bench")
        idle = talk.usage()
        heart = asyncio.create_task(self._heart.beat())
        start = time.perf_counter()
        self._manager = Manager(access, options)
        running = asyncio.create_task(self._manager.run())
        self._tasks.append(running)
        led = asyncio.create_task(self._manager.leading.wait())
        await asyncio.wait((running, led), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            led.cancel()
            await running
        seconds, beats = time.perf_counter() - start, self._beats()
        heart.cancel()
        return {"seconds": seconds, "idle": idle, "full": talk.usage(), "events": NOTES.events, **beats}

    async def beating(self, on: bool) -> Json:
        """Starts the heart, or stops it and tells of its beats."""
        if on:
            self._tasks.append(asyncio.create_task(self._heart.beat()))
            return {}
        self._tasks.pop().cancel()
        return self._beats()

    async def events(self, count: int) -> Json:
        """Waits until so many pod events have come since the start."""
        await NOTES.until(count)
        return {"events": NOTES.events}

    async def decided(self, namespace: str, gang: str) -> Json:
        """Waits for the gang's verdict; seconds from its last start, as the informer told of it, to the answer."""
        key = Key(namespace, gang)
        await NOTES.until_decided(key)
        return {"seconds": NOTES.decided[key] - NOTES.last_start[key]}

    async def bare(self, namespace: str, times: int) -> Json:
        """Seconds of each of so many replacements of a ConfigMap of a gate's size, by the controller's own client."""
        client = NOTES.writer
        assert client is not None
        if self._bare is None:
            uid = "0" * 36
            data = {names.KEY_VERDICT: f"release {uid} 0 0 {names.REASON_STARTED}\nall 1000 pods have started\n"}
            made = await client.create(CONFIGMAPS, {"metadata": {"name": "bare"}, "data": data}, namespace)
            self._bare = {"metadata": made["metadata"], "data": data}
            self._bare["metadata"].pop("managedFields", None)
        found = []
        for _ in range(times):
            # Another content each time: an API server writes nothing where nothing changes.
            self._bare["data"][names.KEY_WAITING_SINCE] = f"{'0' * 36} 0 0 {time.time():.9f}"
            start = time.perf_counter()
            stored = await client.replace(CONFIGMAPS, self._bare, type=wire.ConfigMap)
            found.append(time.perf_counter() - start)
            self._bare["metadata"]["resourceVersion"] = stored.metadata.resource_version
        return {"seconds": found}

    async def counts(self) -> Json:
        """Everything it has done since its start."""
        requests: Counter[str] = Counter()
        passes = 0.0
        for metric in self._its.options.registry.collect():
            for sample in metric.samples:
                if sample.name == "rest_client_requests_total" and sample.labels["method"] not in READS:
                    requests[sample.labels["resource"]] += int(sample.value)
                if sample.name == "controller_runtime_reconcile_total" and sample.labels["controller"] == "gang":
                    passes += sample.value
        return {**talk.usage(), "events": NOTES.events, "passes": passes, "writes": dict(requests)}

    async def quiet(self) -> Json:
        """Waits until it writes nothing any more but its Lease."""
        before = -1
        while (now := sum((await self._written()).values())) != before:
            before = now
            await asyncio.sleep(QUIET)
        return {}

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _written(self) -> dict[str, int]:
        writes: dict[str, int] = (await self.counts())["writes"]
        return {resource: count for resource, count in writes.items() if resource != "leases"}

    def _beats(self) -> Json:
        beats = {"late": self._heart.late, "worked": self._heart.worked}
        self._heart.late, self._heart.worked = [], []
        return beats

    @property
    def _its(self) -> Manager:
        assert self._manager is not None, "it does not run"
        return self._manager


async def main() -> None:
    """Serves until the parent goes."""
    logs.configure(LogFormat.JSON, LogLevel.WARNING)
    its = Controller()
    commands: dict[str, Any] = {
        name: getattr(its, name) for name in ("run", "beating", "events", "decided", "bare", "counts", "quiet")
    }
    with patch.object(its_manager, "Index", _Index), patch.object(its_manager, "Gates", _Gates):
        await talk.obey(commands)
        await its.stop()


if __name__ == "__main__":
    asyncio.run(main())
