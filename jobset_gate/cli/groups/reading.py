"""Reads the groups of a cluster once, as a user with whatever rights he has: what may not be read is left out and said.

The objects, their readers and their index are those of the controller, so that both see the same.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from controllers.groups.index import GroupIndex
from controllers.groups.watches import POD_GROUP_KINDS, Kept, kinds
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.listwatch import Scope, pages
from jobset_gate.kube.reader import Bare, Reader
from jobset_gate.kube.resources import CONFIGMAPS, NODES, PODS, RESOURCEQUOTAS, Resource
from jobset_gate.kube.store import Change
from jobset_gate.settings import Groups

PAGE = 500


@dataclass(slots=True)
class Reading:
    """What was read."""

    index: GroupIndex
    missing: list[str] = field(default_factory=list)
    """Rights that would have been needed, as sentences."""
    blind: bool = False
    """What is free on nodes is not known."""
    members: bool = True
    """Pods of groups could be listed."""


async def read(client: Client, settings: Groups, namespace: str | None) -> Reading:
    """All groups of a namespace (None: of all), and the cluster's nodes with what is bound to them."""
    index = GroupIndex(lambda _: None, lambda _: None, settings)
    reading = Reading(index)
    await asyncio.gather(*(_fill(client, kind, reading) for kind in kinds(index, settings, namespace)))
    reading.missing.sort()
    return reading


async def _fill(client: Client, kind: Kept, reading: Reading) -> None:
    scope = Scope(kind.resource, kind.namespace, kind.label_selector, kind.field_selector)
    found: list[msgspec.Raw] = []
    try:
        async for items, _ in pages(client, scope, PAGE):
            found += items
    except NotFound:
        if kind.resource not in POD_GROUP_KINDS:  # those come and go with their CRDs
            raise
    except Forbidden as refused:
        blinded(kind, reading, str(refused))
        return
    reader: Reader[Any] = Reader(kind.shape, lambda _, detail: reading.missing.append(f"not readable: {detail}"))
    for raw in found:
        item = reader.object(raw)
        if item is not None and not isinstance(item, Bare):
            _take(kind, item)


def _take(kind: Kept, item: Any) -> None:
    model = kind.convert(item)
    if model is not None:
        kind.handler(Change((item.metadata.namespace, item.metadata.name), None, model))


def blinded(kind: Kept, reading: Reading, refusal: str) -> None:
    """What cannot be told without this list."""
    where = f"in namespace {kind.namespace}" if kind.namespace else "in all namespaces"
    if not kind.resource.namespaced:
        where = "(they belong to no namespace)"
    about = f"no right to list {_named(kind.resource)} {where}"
    if kind.resource == NODES or (kind.resource == PODS and kind.field_selector):
        reading.blind = True
        about += ": whether a group has room is not looked at"
    elif kind.resource == PODS:
        reading.members = False
        about += f": no member can be seen ({refusal})"
    elif kind.resource in POD_GROUP_KINDS:
        about += ": its groups look as if theirs were missing"
    elif kind.resource == CONFIGMAPS:
        about += ": of groups without a PodGroup it is not known whether they were opened"
    elif kind.resource == RESOURCEQUOTAS:
        about += ": totalResources are not compared with what is left of them"
    if about not in reading.missing:
        reading.missing.append(about)


def _named(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural
