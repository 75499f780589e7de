"""Asks for what Events say of a gang, with whatever rights a person has (A9)."""

import asyncio

from jobset_gate.barrier.events import (
    FAILED_CREATE,
    KUBELET_REASONS,
    MAX_EVENTS,
    NODE_PROVISIONING_REASONS,
    CoreEvent,
    CoreEventList,
    with_events,
)
from jobset_gate.barrier.model import GangSnapshot
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import EVENTS


async def add_events(client: Client, seen: GangSnapshot, rights: Permissions) -> GangSnapshot:
    """The gang with what Events say of it; without the right to list them, as it was."""
    namespace = seen.jobset.namespace
    asked = (("Job", FAILED_CREATE), *(("Pod", reason) for reason in (*NODE_PROVISIONING_REASONS, *KUBELET_REASONS)))
    try:
        found = await asyncio.gather(*(_events(client, namespace, kind, reason) for kind, reason in asked))
    except Forbidden:
        lost = "what a quota, an autoscaler or a kubelet said is not known"
        rights.add_missing("list", EVENTS, namespace, lost)
        return seen
    refused, coming, troubles = found[0], found[1] + found[2], [it for some in found[3:] for it in some]
    return with_events(seen, refused, coming, troubles)


async def events_of(client: Client, namespace: str, kind: str, name: str) -> list[CoreEvent]:
    """The Events on one object, oldest first."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    page = await client.list(EVENTS, namespace, field_selector=selector, limit=MAX_EVENTS, type=CoreEventList)
    return sorted(page.items, key=lambda it: it.last_seen)


async def _events(client: Client, namespace: str, kind: str, reason: str) -> tuple[CoreEvent, ...]:
    selector = f"involvedObject.kind={kind},reason={reason}"
    page = await client.list(EVENTS, namespace, field_selector=selector, limit=MAX_EVENTS, type=CoreEventList)
    return page.items
