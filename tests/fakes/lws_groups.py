"""A LeaderWorkerSet on the embedded cluster, whose groups a test lets come and go as LWS does."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.injection import inject
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CRDS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from jobset_gate.settings import Barrier, Settings
from tests.fakes import leader_worker_sets as builders
from tests.fakes.leader_worker_sets import NAME
from tests.fakes.start_groups import GRACE_SECONDS

Json = dict[str, Any]
SPACE = "default"
POLL_SECONDS = 0.1

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_CONDITIONS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": True}
    | {"properties": {"type": {"type": "string"}}},
}
CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{LEADER_WORKER_SETS.plural}.{LEADER_WORKER_SETS.group}"},
    "spec": {
        "group": LEADER_WORKER_SETS.group,
        "scope": "Namespaced",
        "names": {
            "plural": LEADER_WORKER_SETS.plural,
            "singular": "leaderworkerset",
            "kind": LEADER_WORKER_SETS.kind,
            "listKind": f"{LEADER_WORKER_SETS.kind}List",
        },
        "versions": [
            {
                "name": LEADER_WORKER_SETS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": _ANYTHING,
                            "status": {"type": "object", "properties": {"conditions": _CONDITIONS}},
                        },
                    }
                },
            }
        ],
    },
}


class LwsGroups:
    """The LeaderWorkerSet `vllm`. Nobody makes or replaces anything of it but the test."""

    def __init__(self, client: Client, *, size: int = 3, config: str = "{}", stream: str = "") -> None:
        self.client, self.size, self.config, self.stream = client, size, config, stream
        self.uid = self.leaders = ""

    async def create(self, replicas: int = 1, **notes: str) -> None:
        """The CRD, the object and the StatefulSet of its leaders, without groups."""
        await self.client.create(CRDS, CRD)
        body = builders.leader_worker_set(size=self.size, notes={names.CONFIG: self.config} | notes, replicas=replicas)
        made = await self.client.create(LEADER_WORKER_SETS, body, SPACE)
        self.uid = made["metadata"]["uid"]
        leaders = {"metadata": {"name": NAME, "labels": {names.LWS_NAME: NAME}}, "spec": {}}
        self.leaders = (await self.client.create(STATEFUL_SETS, leaders, SPACE))["metadata"]["uid"]

    async def create_group(self, group: int = 0) -> Json:
        """A leader, its StatefulSet, and its workers."""
        leader = await self.create_leader(group)
        await self.create_workers(leader, *range(1, self.size))
        return leader

    async def create_leader(self, group: int = 0) -> Json:
        return await self._create(0, group, NAME, self.leaders)

    async def create_workers(self, leader: Json, *indexes: int) -> None:
        """Of this leader; the first time their StatefulSet, too."""
        meta = leader["metadata"]
        name, group = meta["name"], int(meta["labels"][names.LWS_GROUP_INDEX])
        try:
            made = await self.client.get(STATEFUL_SETS, name, SPACE)
        except NotFound:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": meta["uid"], "controller": True}
            # The garbage collector of the embedded cluster is never late; of two owners it waits for both.
            late = {"apiVersion": names.LWS_API_VERSION, "kind": "LeaderWorkerSet", "name": NAME, "uid": self.uid}
            labels = {names.LWS_NAME: NAME, names.LWS_GROUP_INDEX: str(group)}
            body = {"metadata": {"name": name, "labels": labels, "ownerReferences": [owner, late]}, "spec": {}}
            made = await self.client.create(STATEFUL_SETS, body, SPACE)
        await asyncio.gather(*(self._create(index, group, name, made["metadata"]["uid"]) for index in indexes))

    async def delete_leader(self, group: int = 0) -> None:
        """In the background."""
        await self.delete_pod(f"{NAME}-{group}")

    async def collect(self, group: int = 0) -> None:
        """The garbage collector comes at last: the workers of a leader that is gone go with their StatefulSet."""
        await self.client.delete(STATEFUL_SETS, f"{NAME}-{group}", SPACE)
        for index in range(1, self.size):
            await self._until_gone(f"{NAME}-{group}-{index}")

    async def condition(self) -> Json:
        """Ours."""
        found = (await self.client.get(LEADER_WORKER_SETS, NAME, SPACE)).get("status", {}).get("conditions", [])
        return next((it for it in found if it["type"] == names.CONDITION), {})

    async def _create(self, index: int, group: int, owner: str, uid: str) -> Json:
        given = builders.pod(index, labels={names.LWS_GROUP_INDEX: str(group)}, notes={names.LWS_SIZE: str(self.size)})
        meta = given["metadata"]
        meta["name"] = f"{NAME}-{group}-{index}" if index else f"{NAME}-{group}"
        meta["annotations"][names.CONFIG] = self.config
        meta["ownerReferences"][0] |= {"name": owner, "uid": uid}
        given["spec"]["containers"] = [manifests.container()]
        settings = Settings(barrier=Barrier(stream_url=self.stream or None, grace_seconds=GRACE_SECONDS))
        token = f"token-of-{meta['name']}"
        gated = copy.deepcopy(inject.injected(given, None, settings=settings, token=token).document)
        return await self.client.create(PODS, gated, SPACE)

    async def delete_pod(self, name: str) -> None:
        """Returns when its name is free."""
        await self.client.delete(PODS, name, SPACE)
        await self._until_gone(name)

    async def _until_gone(self, name: str) -> None:
        while True:
            try:
                await self.client.get(PODS, name, SPACE)
            except NotFound:
                return
            await asyncio.sleep(POLL_SECONDS)
