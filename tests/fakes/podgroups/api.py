"""The API server in memory as the tests of pod groups fill and watch it.

Every write may be refused, or land and lose its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import PODS, Resource
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import Answer, Call, MemoryClient
from tests.fakes.podgroups.snapshots import timestamp

OnObjectChange = Callable[[Resource, Json | None, Json | None], None]
WriteFault = Callable[[str, Resource, str, Any], "KubeError | str | None"]
"""(Verb, kind, name, body) of a write: an error refuses it, "lost" lets it land and loses the answer."""


class InMemoryApi(MemoryClient):
    """`writes` is the log of those that landed, as (verb, kind, name, body); `on_change` hears of every change."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(Api(), self._decide)
        self.clock = clock
        self.writes: list[tuple[str, Resource, str, Any]] = []
        self.fault: WriteFault = lambda *_: None
        self.on_change: OnObjectChange = lambda *_: None
        self.api.listeners.append(self._changed)
        self._numbers = count()

    def without_retries(self) -> Client:
        return self.client

    def put(self, resource: Resource, body: Json) -> Json:
        """This object is there from now on, in a new version."""
        if resource == PODS:
            body = {**body, "metadata": {"creationTimestamp": timestamp(self.clock()), **body["metadata"]}}
        return self.api.put(resource, body)

    def remove(self, resource: Resource, name: str, namespace: str = "team") -> None:
        self.api.remove(resource, name, namespace=namespace)

    def all(self, resource: Resource) -> Sequence[Json]:
        return self.api.all(resource)

    def stored(self, resource: Resource, namespace: str, name: str) -> Json:
        return self.api.known(resource, name, namespace)

    def _changed(self, resource: Resource, old: Json | None, new: Json | None) -> None:
        self.on_change(resource, old, new)

    async def _decide(self, call: Call) -> Answer:
        await asyncio.sleep(0)
        if call.verb in ("get", "list"):
            return Answer.DONE
        write = f"{call.verb} {call.subresource}".strip(), call.kind, call.name, call.body
        fate = self.fault(*write)
        if isinstance(fate, KubeError):
            raise fate
        self.writes.append(write)
        return Answer.DONE if fate is None else Answer.LOST
