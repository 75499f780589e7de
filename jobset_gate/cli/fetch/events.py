"""Asks for what Events say of a gang, with whatever rights a person has (A9)."""

import asyncio
from typing import Final

from jobset_gate.barrier.events import (
    FAILED_CREATE,
    KUBELET_REASONS,
    MAX_EVENTS,
    NODE_PROVISIONING_REASONS,
    CoreEvent,
    CoreEventList,
    with_events,
)
from jobset_gate.barrier.model import GangSnapshot, WorkloadSeen
from jobset_gate.cli.fetch.source import NamespaceReader
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import EVENTS

READ_INTERVAL: Final = 10.0
"""Seconds between two reads of Events: they are many, and few reasons come from them alone."""


class GangEvents:
    """What Events say of the gangs of a namespace; read when it is needed, and again after a while."""

    def __init__(self, reader: NamespaceReader) -> None:
        self._reader = reader
        self._read_at = float("-inf")
        self._events: list[tuple[CoreEvent, ...]] = []

    async def added(self, gang: GangSnapshot, now: float) -> GangSnapshot:
        """The gang with the causes that the Events name; without the right to list them, as it was."""
        if now - self._read_at >= READ_INTERVAL:
            self._read_at, self._events = now, await self._read(gang.workload)
        if not self._events:
            return gang
        refused, scaled, triggered, *kubelets = self._events
        return with_events(gang, refused, scaled + triggered, [it for some in kubelets for it in some])

    async def _read(self, workload: WorkloadSeen) -> list[tuple[CoreEvent, ...]]:
        """Those of each reason; [] without the right."""
        creator = workload.source.pods_creator or ("" if workload.owner is None else workload.owner.kind)
        reasons = (*NODE_PROVISIONING_REASONS, *KUBELET_REASONS)
        selectors = [f"involvedObject.kind={creator},reason={FAILED_CREATE}"]
        selectors += [f"involvedObject.kind=Pod,reason={it}" for it in reasons]
        try:
            return await asyncio.gather(*(_events(self._reader, it) for it in selectors))
        except Forbidden:
            lost = "what a quota, an autoscaler or a kubelet said is not known"
            self._reader.permissions.add_missing("list", EVENTS, self._reader.namespace, lost)
            return []


async def events_of(reader: NamespaceReader, kind: str, name: str) -> list[CoreEvent]:
    """The Events on one object, oldest first."""
    found = await _events(reader, f"involvedObject.kind={kind},involvedObject.name={name}")
    return sorted(found, key=lambda it: it.last_seen)


async def _events(reader: NamespaceReader, selector: str) -> tuple[CoreEvent, ...]:
    read, where = reader.client.list, reader.namespace
    return (await read(EVENTS, where, field_selector=selector, limit=MAX_EVENTS, type=CoreEventList)).items
