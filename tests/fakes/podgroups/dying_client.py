"""A controller's client that dies at its n-th write, and others who are at work meanwhile: a scheduler, an owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from jobset_gate import names
from jobset_gate.kube.resources import PODS, Resource
from jobset_gate.podgroups.record import AdmissionRecord, decode_record
from tests.fakes.podgroups.cluster import InMemoryCluster
from tests.fakes.podgroups.sources import Json

STEP_SECONDS = 0.5
"""Seconds between two looks of scheduler and owner."""


class DyingClient:
    """The API as one process sees it. After its end it hears nothing, and nothing of its reaches the server."""

    def __init__(self, cluster: InMemoryCluster, last_write: int, *, lands: bool) -> None:
        self._cluster, self._last_write, self._lands = cluster, last_write, lands
        self.writes: list[str] = []
        self.dead = asyncio.Event()
        self._never = asyncio.Event()

    def without_retries(self) -> DyingClient:
        return self

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def call(resource: Resource, *args: Any, **more: Any) -> Any:
            if self.dead.is_set():
                await self._never.wait()
            if verb not in ("get", "list"):
                self.writes.append(f"{verb} {resource.plural}")
                if len(self.writes) == self._last_write:
                    await self._end(verb, resource, *args, **more)
            return await getattr(self._cluster, verb)(resource, *args, **more)

        return call

    async def _end(self, verb: str, *args: Any, **more: Any) -> None:
        if self._lands:
            await getattr(self._cluster, verb)(*args, **more)
        self.dead.set()
        await self._never.wait()


class RecordHistory:
    """Every record that ever stood anywhere."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.records: list[AdmissionRecord] = []
        cluster.api.listeners.append(self._on_change)

    def _on_change(self, _: Resource, __: Json | None, body: Json | None) -> None:
        notes = (body or {}).get("metadata", {}).get("annotations") or {}
        text = notes.get(names.POD_GROUP_RECORD) or ((body or {}).get("data") or {}).get(names.KEY_RECORD)
        if text:
            self.records.append(decode_record(text))

    def admissions(self) -> dict[tuple[str, int], set[float]]:
        """By gang and generation: when each was decided. Twice would be once too often."""
        found: dict[tuple[str, int], set[float]] = {}
        for one in self.records:
            for key, generation in one.gangs:
                found.setdefault((key.name, generation), set()).add(one.at)
        return found


async def bind_ungated(cluster: InMemoryCluster, room: list[int]) -> None:
    """Binds what is let go, as long as there is room for one more; `room` may grow."""
    while True:
        taken = sum(bool(it["spec"].get("nodeName")) for it in cluster.all(PODS))
        for one in cluster.all(PODS):
            if not one["spec"]["schedulingGates"] and not one["spec"].get("nodeName") and taken < room[0]:
                cluster.bind(one["metadata"]["name"])
                taken += 1
        await asyncio.sleep(STEP_SECONDS)


async def recreate_pods(cluster: InMemoryCluster, makes: dict[str, Callable[[str], None]]) -> None:
    """Recreates each of these pods when it is gone."""
    while True:
        there = {it["metadata"]["name"] for it in cluster.all(PODS)}
        for name, make in makes.items():
            if name not in there:
                make(name)
        await asyncio.sleep(STEP_SECONDS)
