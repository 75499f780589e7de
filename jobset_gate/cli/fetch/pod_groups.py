"""Reads the groups of a cluster once, as a user with whatever rights he has: what may not be read is left out and said.

The objects, their readers and their index are those of the controller, so that both see the same.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.informers import POD_GROUP_RESOURCES, watch_sources
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, NODES, PODS, RESOURCEQUOTAS, Resource
from jobset_gate.runtime.decoder import ObjectDecoder, PartialObjectMetadata
from jobset_gate.runtime.informer import AnyWatchSource
from jobset_gate.runtime.paging import ListScope, list_pages
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.settings import Groups

PAGE = 500


@dataclass(slots=True)
class FetchedPodGroups:
    """What was read."""

    cache: PodGroupCache
    missing: list[str] = field(default_factory=list)
    """Rights that would have been needed, as sentences."""
    nodes_forbidden: bool = False
    """What is free on nodes is not known."""
    pods_listed: bool = True
    """Pods of groups could be listed."""


async def fetch_pod_groups(client: Client, settings: Groups, namespace: str | None) -> FetchedPodGroups:
    """All groups of a namespace (None: of all), and the cluster's nodes with what is bound to them."""
    index = PodGroupCache(settings)
    reading = FetchedPodGroups(index)
    await asyncio.gather(*(_fill(client, kind, reading) for kind in watch_sources(index, settings, namespace)))
    reading.missing.sort()
    return reading


async def _fill(client: Client, kind: AnyWatchSource, reading: FetchedPodGroups) -> None:
    scope = ListScope(kind.resource, kind.namespace, kind.label_selector, kind.field_selector)
    found: list[msgspec.Raw] = []
    try:
        async for items, _ in list_pages(client, scope, PAGE):
            found += items
    except NotFound:
        if kind.resource not in POD_GROUP_RESOURCES:  # those come and go with their CRDs
            raise
    except Forbidden as refused:
        add_forbidden(kind, reading, str(refused))
        return
    reader: ObjectDecoder[Any] = ObjectDecoder(
        kind.wire, lambda _, detail: reading.missing.append(f"not readable: {detail}")
    )
    for raw in found:
        item = reader.decode_object(raw)
        if item is not None and not isinstance(item, PartialObjectMetadata):
            _take(kind, item)


def _take(kind: AnyWatchSource, item: Any) -> None:
    model = kind.convert(item)
    if model is not None:
        kind.handler(ObjectChange((item.metadata.namespace, item.metadata.name), None, model))


def add_forbidden(kind: AnyWatchSource, reading: FetchedPodGroups, refusal: str) -> None:
    """What cannot be told without this list."""
    where = f"in namespace {kind.namespace}" if kind.namespace else "in all namespaces"
    if not kind.resource.namespaced:
        where = "(they belong to no namespace)"
    about = f"no right to list {_named(kind.resource)} {where}"
    if kind.resource == NODES or (kind.resource == PODS and kind.field_selector):
        reading.nodes_forbidden = True
        about += ": whether a group has room is not looked at"
    elif kind.resource == PODS:
        reading.pods_listed = False
        about += f": no member can be seen ({refusal})"
    elif kind.resource in POD_GROUP_RESOURCES:
        about += ": its groups look as if theirs were missing"
    elif kind.resource == CONFIGMAPS:
        about += ": of groups without a PodGroup it is not known whether they were opened"
    elif kind.resource == RESOURCEQUOTAS:
        about += ": totalResources are not compared with what is left of them"
    if about not in reading.missing:
        reading.missing.append(about)


def _named(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural
