"""A live view of objects in an API server, and waits for a condition of them: by watching, never by polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Self

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange
from jobset_gate_demo.fake.objects import FakeObject, Json, Key

MANY = 50
LOOK_EVERY = 0.05
"""Seconds between two evaluations for more objects than MANY, since each costs their number."""
SHOWN = 8000
"""Characters of the objects in the error of a timeout."""


class ObjectView:
    """All objects of one kind in one namespace (None: in all), live: `async with ObjectView(...) as view`."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        *,
        each: Callable[[Json], None] = lambda _: None,
    ) -> None:
        """`each` gets every version of every object, also those between two evaluations of `until`."""
        self._changed, self._each = asyncio.Event(), each
        self._informer: Informer[FakeObject, Json] = Informer(
            client,
            WatchSource(
                resource,
                FakeObject,
                FakeObject.body,
                self._on_change,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
            ),
        )
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._informer.run())
        try:
            await self._informer.wait_synced()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def objects(self) -> Mapping[Key, Json]:
        """By (namespace, name)."""
        return self._informer.cache

    def all(self) -> list[Json]:
        """In the order of their names."""
        return [self.objects[key] for key in sorted(self.objects)]

    async def until(self, holds: Callable[[list[Json]], bool], seconds: float = 60.0) -> list[Json]:
        """The objects as soon as `holds` is true of them. Errors: TimeoutError, with the objects instead."""
        try:
            async with asyncio.timeout(seconds):
                while not holds(self.all()):
                    self._changed.clear()
                    await self._changed.wait()
                    if len(self.objects) > MANY:
                        await asyncio.sleep(LOOK_EVERY)
        except TimeoutError as error:
            found = str(self.all())
            more = f" and so on, {len(self.objects)} objects" if len(found) > SHOWN else ""
            raise TimeoutError(f"still not so after {seconds:.0f}s; there are: {found[:SHOWN]}{more}") from error
        return self.all()

    def _on_change(self, change: ObjectChange[Json]) -> None:
        if change.new is not None:
            self._each(change.new)
        self._changed.set()


def conditions(one: Json) -> dict[str, Json]:
    """Those in the status of an object, by their types."""
    return {it["type"]: it for it in (one.get("status") or {}).get("conditions") or ()}


def is_true(one: Json, condition: str) -> bool:
    return conditions(one).get(condition, {}).get("status") == "True"


def unschedulable(pod: Json) -> bool:
    """The scheduler has found no node for it."""
    return conditions(pod).get("PodScheduled", {}).get("reason") == "Unschedulable"
