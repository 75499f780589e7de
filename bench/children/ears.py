"""Ears in the controller: when a gang's last pod started, when its verdict was written, and what was done for it.

Three of its parts are replaced by themselves with a few lines more. What that costs, well under a microsecond for each
event, is part of the figures.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from typing_extensions import override

from bench.children.talk import Json
from controllers import manager as its_manager
from controllers.gates import Gates
from controllers.index import Index
from controllers.keys import Key
from controllers.plumbing import Plumbing
from jobset_gate import wire
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import LEASES
from jobset_gate.kube.store import Change
from jobset_gate.kube.witness import Witness
from jobset_gate.model import GangSeen, GateSeen, PodSeen

READS = frozenset({"get", "list", "watch"})


def open_ears() -> AbstractContextManager[Any]:
    """Managers made within the block are heard."""
    return patch.multiple(its_manager, Index=_Index, Gates=_Gates, Plumbing=_Plumbing)


class Notes:
    """What the ears have heard."""

    def __init__(self) -> None:
        self.events = 0
        """Changes of pods that came to the index."""
        self.passes = 0
        self.writes: Counter[str] = Counter()
        """Writes that were answered, by resource, without the Lease."""
        self.last_start: dict[Key, float] = {}
        self.decided: dict[Key, float] = {}
        """When the answer to the write of a verdict was there."""
        self.then: dict[Key, Json] = {}
        """The counts at that moment."""
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

    def counts(self) -> Json:
        """Everything the process has done since its start."""
        done = {"events": self.events, "passes": self.passes, "writes": sum(self.writes.values())}
        return {"cpu": time.process_time(), **done}

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
            NOTES.then[key] = NOTES.counts()
            NOTES.news.set()
        super().saw_gate(key, gate)

    @override
    def observe(self, key: Key) -> GangSeen | None:
        NOTES.passes += 1
        return super().observe(key)


class _Plumbing(Plumbing):
    @override
    def request(self, verb: str, resource: str, code: str, seconds: float) -> None:
        if verb not in READS and resource != LEASES.plural:
            NOTES.writes[resource] += 1
        super().request(verb, resource, code, seconds)


class _Gates(Gates):
    def __init__(self, client: Client, index: Index, witness: Witness[wire.ConfigMap, GateSeen]) -> None:
        super().__init__(client, index, witness)
        NOTES.writer = client
