"""An informer at work on a scripted server, and the changes that it reported."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.runtime.decoder import WatchProblem, WatchProblemKind
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange


class SampleMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class SampleObject(msgspec.Struct, frozen=True, gc=False):
    metadata: SampleMeta
    data: dict[str, str] = {}


def value_of(thing: SampleObject) -> str | None:
    """The model of the tests: data.value, where "odd" is more than we can take."""
    value = thing.data["value"]
    if value == "odd":
        raise ValueError(value)
    return value


class InformerHarness:
    """`changes` as (name, old, new); `problems` by kind."""

    def __init__(
        self,
        client: Client,
        *,
        scope: str = "ns",
        label_selector: str = "",
        field_selector: str = "",
        written_at: Callable[[SampleObject], float | None] = lambda _: None,
        **options: Any,
    ) -> None:
        """`options` of the informer."""
        self.changes: list[tuple[str, str | None, str | None]] = []
        self.problems: list[WatchProblemKind] = []
        source = WatchSource(
            CONFIGMAPS, SampleObject, value_of, self._changed, scope, label_selector, field_selector, written_at
        )
        self.informer: Informer[SampleObject, str] = Informer(
            client,
            source,
            rng=random.Random(1),  # noqa: S311 - it must repeat
            on_problem=self._problem,
            **({"relist_seconds": 600.0} | options),
        )
        self._news = asyncio.Event()

    @property
    def values(self) -> dict[str, str]:
        return {name: value for (_, name), value in self.informer.cache.items()}

    async def sees(self, **values: str) -> None:
        while self.values != values:
            self._news.clear()
            await self._news.wait()

    async def reports(self, *kinds: WatchProblemKind) -> None:
        """Waits until these problems, in this order, are all there have been."""
        while self.problems != list(kinds):
            self._news.clear()
            await self._news.wait()

    def _changed(self, change: ObjectChange[str]) -> None:
        self.changes.append((change.key[1], change.old, change.new))
        self._news.set()

    def _problem(self, problem: WatchProblem) -> None:
        self.problems.append(problem.kind)
        self._news.set()


@asynccontextmanager
async def running_informer(client: Client, **options: Any) -> AsyncIterator[InformerHarness]:
    """Synced; ends with the block, and fails with it if the informer has died."""
    watched = InformerHarness(client, **options)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watched.informer.run())
        await watched.informer.wait_synced()
        yield watched
        task.cancel()
