"""Reads lists page by page into the shapes of wire.py; an object that cannot be read hides no other."""

from collections.abc import Callable
from typing import TypeVar

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.decoder import ObjectDecoder, PartialObjectMetadata
from jobset_gate.runtime.paging import ListScope, list_pages
from jobset_gate.runtime.store import WireObject

PAGE = 500

W = TypeVar("W", bound=WireObject)


async def list_objects(
    client: Client,
    resource: Resource,
    shape: type[W],
    namespace: str | None,
    *,
    labels: str = "",
    fields: str = "",
    on_problem: Callable[[str], None] = lambda _: None,
) -> list[W]:
    """Everything that the selectors let through. Raises what a list raises."""
    reader = ObjectDecoder(shape, lambda _, detail: on_problem(f"not readable: {detail}"))
    found: list[W] = []
    async for items, _ in list_pages(client, ListScope(resource, namespace, labels, fields), PAGE):
        for raw in items:
            item = reader.decode_object(raw)
            if item is not None and not isinstance(item, PartialObjectMetadata):
                found.append(item)
    return found
