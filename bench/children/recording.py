"""Records in the controller when a gang's last pod started, when its verdict was written, and what that took.

Three of its classes are subclassed with a few lines of instrumentation. Their cost, well under a microsecond for each
event, is part of the figures.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from typing_extensions import override

from bench.children.command_loop import Json
from controllers import manager
from controllers.barrier import setup
from controllers.barrier.cache import GangCache
from controllers.barrier.verdict_store import VerdictStore
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, GangSnapshot, PodSeen
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import LEASES
from jobset_gate.runtime.metrics import RuntimeMetrics
from jobset_gate.runtime.store import ObjectChange, Store

READS = frozenset({"get", "list", "watch"})


@contextmanager
def instrumented() -> Iterator[None]:
    """Managers made within the block are recorded."""
    with (
        patch.multiple(setup, GangCache=_RecordingCache, VerdictStore=_RecordingStore),
        patch.multiple(manager, RuntimeMetrics=_RecordingMetrics),
    ):
        yield


class Recording:
    """What was recorded."""

    def __init__(self) -> None:
        self.events = 0
        """Changes of pods that came to the index."""
        self.passes = 0
        self.writes: Counter[str] = Counter()
        """Writes that were answered, by verb and resource ("patch pods"), without the Lease."""
        self.last_start: dict[GangKey, float] = {}
        self.decided: dict[GangKey, float] = {}
        """When the answer to the write of a verdict was there."""
        self.counts_at_verdict: dict[GangKey, Json] = {}
        """The counts at that moment."""
        self.writer: Client | None = None
        self.changed = asyncio.Event()
        self.awaited = 0

    async def until(self, count: int) -> None:
        """Until so many pod events have come."""
        self.awaited = count
        while self.events < count:
            self.changed.clear()
            await self.changed.wait()
        self.awaited = 0

    def counts(self) -> Json:
        """Everything the process has done since its start."""
        done: Json = {"events": self.events, "passes": self.passes, "writes": sum(self.writes.values())}
        done["by_kind"] = dict(self.writes)
        return {"cpu": time.process_time(), **done}

    async def until_decided(self, key: GangKey) -> None:
        while key not in self.decided:
            self.changed.clear()
            await self.changed.wait()


RECORDING = Recording()


class _RecordingCache(GangCache):
    @override
    def on_pod(self, change: ObjectChange[PodSeen]) -> None:
        RECORDING.events += 1
        new, old = change.new, change.old
        if new is not None and new.started and not (old is not None and old.started):
            RECORDING.last_start[GangKey(new.namespace, new.gang, new.source)] = time.perf_counter()
        if RECORDING.events == RECORDING.awaited:
            RECORDING.changed.set()
        super().on_pod(change)

    @override
    def set_config_map(self, key: GangKey, gate: ConfigMapSeen | None) -> None:
        if gate is not None and gate.verdict is not None and key not in RECORDING.decided:
            RECORDING.decided[key] = time.perf_counter()
            RECORDING.counts_at_verdict[key] = RECORDING.counts()
            RECORDING.changed.set()
        super().set_config_map(key, gate)

    @override
    def snapshot(self, key: GangKey) -> GangSnapshot | None:
        RECORDING.passes += 1
        return super().snapshot(key)


class _RecordingMetrics(RuntimeMetrics):
    @override
    def observe_request(self, verb: str, resource: str, code: str, seconds: float) -> None:
        if verb not in READS and resource != LEASES.plural:
            RECORDING.writes[f"{verb} {resource}"] += 1
        super().observe_request(verb, resource, code, seconds)


class _RecordingStore(VerdictStore):
    def __init__(self, client: Client, index: GangCache, store: Store[wire.ConfigMap, ConfigMapSeen]) -> None:
        super().__init__(client, index, store)
        RECORDING.writer = client
