"""The shipped controller in a process of its own, started, watched and asked for figures by a benchmark."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
from dataclasses import replace
from typing import Any

from bench.children import command_loop, recording
from bench.children.command_loop import Json
from bench.children.loop_lag import LoopLag
from bench.children.recording import RECORDING
from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import GangKey
from jobset_gate.cli import logs
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.kube.access import Access, from_kubeconfig
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.settings import Groups
from jobset_gate.sources.table import JOBSET, POD_SOURCES

QUIET = 0.5
"""Seconds without a write after which the controller is taken to have nothing to do."""


class ControllerProcess:
    """The commands."""

    def __init__(self) -> None:
        self._manager: Manager | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._loop_lag = LoopLag()
        self._bare: Json | None = None

    async def run(
        self,
        *,
        server: str | None = None,
        kubeconfig: str | None = None,
        namespace: str,
        only: str | None = None,
        pods: int = 0,
        works: bool = True,
        stream: bool = False,
        whole: bool = False,
        pod_sources: bool = False,
    ) -> Json:
        """Starts it; returns once its cache holds so many pods, with the lag of its loop up to then.

        `works`: it takes the Lease and decides; else it only fills its caches. `stream`: with the gate stream.
        `whole`: with all that is on by default, pod groups and the port of health and metrics among it. `pod_sources`:
        with all sources.
        """
        access = Access(server=server) if server else await from_kubeconfig(kubeconfig)
        options = ManagerOptions(namespace=namespace, watch_namespace=only, identity="bench")
        if pod_sources:
            options = replace(options, sources=(*options.sources, *POD_SOURCES))
        if not works:
            options = replace(options, leader_elect=False, workers=0)
        if stream:
            options = replace(options, stream_port=0)
        if whole:
            options = replace(options, stream_port=0, port=0, groups=Groups(), pod_group_crds=False)
        idle = command_loop.usage()
        lag = asyncio.create_task(self._loop_lag.measure())
        self._manager = Manager(access, options)
        running = asyncio.create_task(self._manager.run())
        self._tasks.append(running)
        full = asyncio.create_task(self._filled(pods))
        await asyncio.wait((running, full), return_when=asyncio.FIRST_COMPLETED)
        lag.cancel()
        if running.done():
            full.cancel()
            await running
        if self._running_manager.options.stream_port is not None:
            await self._running_manager.streaming.wait()
        where = {"stream": self._running_manager.stream_url, "health": self._running_manager.url}
        return {"idle": idle, "full": command_loop.usage(), **where, **self._lag()}

    async def _filled(self, pods: int) -> None:
        await self._running_manager.leading.wait()
        await RECORDING.until(pods)

    async def rest(self, seconds: float) -> Json:
        """The lag of a loop that has nothing else to do."""
        lag = asyncio.create_task(self._loop_lag.measure())
        await asyncio.sleep(seconds)
        lag.cancel()
        return self._lag()

    async def beating(self, on: bool) -> Json:
        """Starts the measurement of the loop's lag, or ends it and returns the lag."""
        if on:
            self._tasks.append(asyncio.create_task(self._loop_lag.measure()))
            return {}
        self._tasks.pop().cancel()
        return self._lag()

    async def events(self, count: int) -> Json:
        """Waits until so many pod events have come since the start."""
        await RECORDING.until(count)
        return {"events": RECORDING.events}

    async def decided(self, namespace: str, gang: str, within: float | None = None, source: str = JOBSET.name) -> Json:
        """Waits for the gang's verdict: when its write was answered, and the counts then. {} after so many seconds.

        With the seconds since its last start, if the informer saw one.
        """
        key = GangKey(namespace, gang, source)
        try:
            async with asyncio.timeout(within):
                await RECORDING.until_decided(key)
        except TimeoutError:
            return {}
        at = RECORDING.decided[key]
        return {"at": at, "seconds": at - RECORDING.last_start.get(key, at), "then": RECORDING.counts_at_verdict[key]}

    async def bare(self, namespace: str, times: int) -> Json:
        """Seconds of each of so many replacements of a ConfigMap of a gate's size, by the controller's own client."""
        client = RECORDING.writer
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
        return {**command_loop.usage(), **RECORDING.counts()}

    async def quiet(self, seconds: float = QUIET) -> Json:
        """Waits until it has written nothing for so long."""
        before = -1
        while (now := sum(RECORDING.writes.values())) != before:
            before = now
            await asyncio.sleep(seconds)
        return {}

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _lag(self) -> Json:
        beats = {"late": self._loop_lag.late, "worked": self._loop_lag.worked}
        self._loop_lag.late, self._loop_lag.worked = [], []
        return beats

    @property
    def _running_manager(self) -> Manager:
        assert self._manager is not None, "it does not run"
        return self._manager


async def main() -> None:
    """Serves until the parent goes."""
    logs.configure(LogFormat.JSON, LogLevel.WARNING)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    its = ControllerProcess()
    commands: dict[str, Any] = {
        name: getattr(its, name) for name in ("rest", "run", "beating", "events", "decided", "bare", "counts", "quiet")
    }
    with recording.instrumented():
        await command_loop.serve(commands)
        await its.stop()


if __name__ == "__main__":
    asyncio.run(main())
