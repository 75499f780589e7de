"""Reads a list page by page, in slices that leave the loop free."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import msgspec

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource

SLICE_OBJECTS = 64
SLICE_BYTES = 256 * 1024
PAGE_BYTES = 4 * 1024 * 1024  # what a page should weigh at most: it is scanned in one go, about 1 ms per MiB
SMALLEST_PAGE = 10


@dataclass(frozen=True, slots=True)
class Scope:
    """What to list and watch."""

    resource: Resource
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""


class Pacer:
    """Gives the loop a turn after every slice of work. Counts instead of looking at a clock, which may be virtual."""

    def __init__(self) -> None:
        self._objects = 0
        self._bytes = 0

    async def did(self, size: int) -> None:
        """One object of that many bytes has been worked on."""
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


async def pages(client: Client, scope: Scope, page_size: int) -> AsyncGenerator[tuple[list[msgspec.Raw], str], None]:
    """Each page's items, not yet decoded, and the list's resourceVersion. Pages shrink if objects are large.

    Raises what Client.list raises; Expired if the continue token has become too old on the way.
    """
    limit, go_on = page_size, ""
    while True:
        page = await client.list(
            scope.resource,
            scope.namespace,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            limit=limit,
            continue_=go_on,
            type=_Page,
        )
        items = page.items or []
        yield items, page.metadata.resource_version
        go_on = page.metadata.go_on
        if not go_on:
            return
        weight = sum(len(memoryview(item)) for item in items)
        limit = max(SMALLEST_PAGE, min(page_size, limit * PAGE_BYTES // max(weight, 1)))
