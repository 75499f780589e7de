"""Lists objects page by page, and yields to the event loop after each slice of work."""

# ruff: noqa: A002 - `type` is the word of msgspec.json.Decoder() for the same thing.

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import DECODE_ERRORS, InvalidResponse, ResponseTooLarge
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.decoder import excerpt

T = TypeVar("T")

SLICE_OBJECTS = 64
SLICE_BYTES = 256 * 1024
PAGE = 250  # objects, by default
PAGE_BYTES = 4 * 1024 * 1024  # what a page should weigh at most: it is scanned in one go, about 1 ms per MiB


@dataclass(frozen=True, slots=True)
class ListScope:
    resource: Resource
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""


class LoopYielder:
    """Yields to the event loop after each slice of work. It counts, since the clock may be virtual."""

    def __init__(self) -> None:
        self._objects = 0
        self._bytes = 0

    async def yield_after(self, size: int) -> None:
        """One object of that many bytes has been processed."""
        self._objects += 1
        self._bytes += size
        if self._objects >= SLICE_OBJECTS or self._bytes >= SLICE_BYTES:
            self._objects = self._bytes = 0
            await asyncio.sleep(0)


class _PageMeta(
    msgspec.Struct, frozen=True, gc=False, rename={"resource_version": "resourceVersion", "go_on": "continue"}
):
    resource_version: str = ""
    go_on: str = ""


class _Page(msgspec.Struct, frozen=True, gc=False):
    metadata: _PageMeta = _PageMeta()
    items: list[msgspec.Raw] | None = None


async def list_pages(
    client: Client, scope: ListScope, page_size: int, page_bytes: int = PAGE_BYTES
) -> AsyncGenerator[tuple[list[msgspec.Raw], str], None]:
    """Each page's items, not yet decoded, and the list's resourceVersion. Pages shrink if objects are large.

    Raises what Client.list raises; Expired if the continue token has become too old on the way.
    """
    limit, go_on = page_size, ""
    while True:
        try:  # tenants choose the size of their objects, so the weight of a page is not known beforehand
            page = await client.list(
                scope.resource,
                scope.namespace,
                label_selector=scope.label_selector,
                field_selector=scope.field_selector,
                limit=limit,
                continue_=go_on,
                max_bytes=2 * page_bytes if limit > 1 else None,
                type=_Page,
            )
        except ResponseTooLarge:
            limit = max(1, limit // 4)
            continue
        items = page.items or []
        yield items, page.metadata.resource_version
        go_on = page.metadata.go_on
        if not go_on:
            return
        weight = sum(len(memoryview(item)) for item in items)
        limit = max(1, min(page_size, max(1, len(items)) * page_bytes // max(weight, 1)))


async def list_objects(
    client: Client,
    scope: ListScope,
    type: type[T],
    page_size: int = PAGE,
    on_unreadable: Callable[[str], None] | None = None,
) -> AsyncGenerator[T, None]:
    """Each object of a list, decoded; never more than a page of them in memory.

    An object that does not fit `type` is reported and left out, so that it hides no other; without `on_unreadable` it
    raises InvalidResponse. Raises what `list_pages` raises.
    """
    decoder, yielder = msgspec.json.Decoder(type), LoopYielder()
    async with aclosing(list_pages(client, scope, page_size)) as pages:
        async for items, _ in pages:
            for item in items:
                try:
                    found = decoder.decode(item)
                except DECODE_ERRORS as error:
                    if on_unreadable is None:
                        raise InvalidResponse(f"list {scope.resource.plural}: {error}") from error
                    on_unreadable(f"not readable: {error}: {excerpt(item)}")
                else:
                    yield found
                await yielder.yield_after(len(memoryview(item)))
