"""Asks for what Events say of a gang, with whatever rights a person has (A9)."""

import asyncio

from jobset_gate.cli.looking.rights import Rights
from jobset_gate.heard import COMING, KUBELETS, MOST_EVENTS, REFUSED, Event, Events, told
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import EVENTS
from jobset_gate.model import GangSeen


async def hear(client: Client, seen: GangSeen, rights: Rights) -> GangSeen:
    """The gang with what Events say of it; without the right to list them, as it was."""
    namespace = seen.jobset.namespace
    asked = (("Job", REFUSED), *(("Pod", reason) for reason in (*COMING, *KUBELETS)))
    try:
        found = await asyncio.gather(*(_events(client, namespace, kind, reason) for kind, reason in asked))
    except Forbidden:
        lost = "what a quota, an autoscaler or a kubelet said is not known"
        rights.lacks("list", EVENTS, namespace, lost)
        return seen
    refused, coming, troubles = found[0], found[1] + found[2], [it for some in found[3:] for it in some]
    return told(seen, refused, coming, troubles)


async def about(client: Client, namespace: str, kind: str, name: str) -> list[Event]:
    """The Events on one object, oldest first."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    page = await client.list(EVENTS, namespace, field_selector=selector, limit=MOST_EVENTS, type=Events)
    return sorted(page.items, key=lambda it: it.at)


async def _events(client: Client, namespace: str, kind: str, reason: str) -> tuple[Event, ...]:
    selector = f"involvedObject.kind={kind},reason={reason}"
    page = await client.list(EVENTS, namespace, field_selector=selector, limit=MOST_EVENTS, type=Events)
    return page.items
