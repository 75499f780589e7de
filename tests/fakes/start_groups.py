"""Start groups: their pods as JSON, and an owner that a test lets create and delete them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS, STATEFUL_SETS
from jobset_gate.settings import Barrier, Settings
from jobset_gate_demo.fake import manifests
from tests.fakes.jobsets import injected
from tests.fakes.wire_objects import owner

Json = dict[str, Any]
RING = "ring"
GRACE_SECONDS = 30


class StartGroup:
    """The start group `ring` of the StatefulSet `set`, which wants three pods. Nobody replaces them but the test."""

    def __init__(self, client: Client, stream: str = "") -> None:
        """`stream`: base URL of the gate stream."""
        self._client, self._stream = client, stream
        self._uid = ""

    async def create(self) -> None:
        spec = {"replicas": 3, "podManagementPolicy": "Parallel"}
        made = await self._client.create(STATEFUL_SETS, {"metadata": {"name": "set"}, "spec": spec}, "default")
        self._uid = made["metadata"]["uid"]
        await self.create_pods(range(3))

    async def create_pods(self, numbers: Iterable[int]) -> None:
        """Pods of these ordinals, as the webhook would have them stored."""
        by, notes = owner("StatefulSet", "set", self._uid), {names.CONFIG: "{}"}
        made = [gated(pod(f"set-{number}", by, size=3, notes=notes), self._stream) for number in numbers]
        await asyncio.gather(*(self._client.create(PODS, it, "default") for it in made))

    async def delete_pods(self, numbers: Iterable[int]) -> None:
        """Asks for their deletion; the kubelets end them."""
        await asyncio.gather(*(self._client.delete(PODS, f"set-{number}", "default") for number in numbers))


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


def stateful_set(name: str, replicas: int, *, size: int, notes: Json | None = None) -> Json:
    """One whose pods are the start group `ring` of that size, all made at once."""
    template = pod("", {}, size=size, notes=notes)
    del template["metadata"]["name"], template["metadata"]["ownerReferences"]
    selector = {"matchLabels": template["metadata"]["labels"]}
    spec = {"replicas": replicas, "podManagementPolicy": "Parallel", "serviceName": name, "selector": selector}
    return {"metadata": {"name": name}, "spec": spec | {"template": template}}


def gated(given: Json, stream: str = "") -> Json:
    """The pod as the webhook has it stored. `stream`: base URL of the gate stream."""
    settings = Settings(barrier=Barrier(stream_url=stream or None, grace_seconds=GRACE_SECONDS))
    return injected(given, settings, token=f"token-of-{given['metadata']['name']}")
