"""Start groups: their pods as JSON, and an owner that a test lets create and delete them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from jobset_gate import names
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS, STATEFUL_SETS
from jobset_gate.settings import Barrier, Settings
from jobset_gate.sources import startgroup
from jobset_gate.sources.table import START_GROUP
from jobset_gate_demo.fake import manifests
from tests.fakes.jobsets import injected
from tests.fakes.wire_objects import owner

Json = dict[str, Any]
RING = "ring"
GRACE_SECONDS = 30


class StartGroup:
    """The start group `ring` of a StatefulSet that creates its pods at once. Nobody replaces them but the test."""

    def __init__(
        self, client: Client, *, size: int = 2, timeout: int | None = 30, stream: str = "", name: str = "set"
    ) -> None:
        self.client, self.size, self.timeout, self.stream, self.name = client, size, timeout, stream, name
        self.namespace = "default"
        self.uid = ""

    @property
    def key(self) -> GangKey:
        return GangKey(self.namespace, startgroup.gang_name(RING, self.uid), START_GROUP.name)

    async def create(self) -> None:
        spec = {"replicas": self.size, "podManagementPolicy": "Parallel"}
        made = await self.client.create(STATEFUL_SETS, {"metadata": {"name": self.name}, "spec": spec}, self.namespace)
        self.uid = made["metadata"]["uid"]
        await self.create_pods(range(self.size))

    async def create_pods(self, numbers: Iterable[int]) -> list[Json]:
        """Pods of these ordinals, as the webhook would have them stored."""
        made = [gated(self.pod(number), self.stream) for number in numbers]
        return list(await asyncio.gather(*(self.client.create(PODS, it, self.namespace) for it in made)))

    async def delete_pods(self, numbers: Iterable[int]) -> None:
        """Asks for their deletion; the kubelets end them."""
        gone = [f"{self.name}-{number}" for number in numbers]
        await asyncio.gather(*(self.client.delete(PODS, name, self.namespace) for name in gone))

    def pod(self, number: int) -> Json:
        """The pod of this ordinal, as the owner sends it."""
        config = {} if self.timeout is None else {names.TIMEOUT_FIELD: self.timeout}
        return pod(
            f"{self.name}-{number}",
            owner("StatefulSet", self.name, self.uid),
            size=self.size,
            notes={names.CONFIG: json.dumps(config)},
        )


def pod(name: str, owned_by: Json, *, size: int = 2, notes: Json | None = None, **spec: Any) -> Json:
    """A pod of the start group `ring` before any webhook."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {names.START_GROUP: RING},
            "annotations": {names.START_SIZE: str(size)} | (notes or {}),
            "ownerReferences": [owned_by],
        },
        "spec": {"restartPolicy": "Always", "containers": [manifests.container()]} | spec,
    }


def gated(given: Json, stream: str = "") -> Json:
    """The pod as the webhook has it stored. `stream`: base URL of the gate stream."""
    settings = Settings(barrier=Barrier(stream_url=stream or None, grace_seconds=GRACE_SECONDS))
    return injected(given, settings, token=f"token-of-{given['metadata']['name']}")
