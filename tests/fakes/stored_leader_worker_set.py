"""A namespace with a LeaderWorkerSet as it is stored in a cluster, and nobody who acts."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from typing_extensions import override

from jobset_gate import names
from jobset_gate.barrier.model import Generation, VerdictKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CONFIGMAPS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from jobset_gate.sources.table import LWS
from tests.fakes.stored_gang import Json, StoredJobSet
from tests.fakes.wire_objects import owner


class StoredLeaderWorkerSet(StoredJobSet):
    """The LeaderWorkerSet `vllm`, whose groups have a leader and a worker. A pod's `number` is that of its group."""

    source, resource = LWS, LEADER_WORKER_SETS

    def __init__(self, client: Client, namespace: str) -> None:
        super().__init__(client, namespace)
        self.notes = {names.LWS_SIZE: "2", names.CONFIG: '{"timeoutAfterSeconds": 300}'}
        self.uids: dict[str, str] = {}
        """Of leader pods and of their StatefulSets, by `vllm-2` and `sts/vllm-2`."""

    @override
    async def jobset(self, *jobs: Json, gated: bool = True, replicas: int = 2, **more: Any) -> None:
        notes = {names.CONFIG: self.notes[names.CONFIG]} if gated else {}
        meta = {"name": "vllm", "annotations": notes | more.pop("annotations", {}), **more}
        spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"metadata": {}}}}
        made = await self.client.create(LEADER_WORKER_SETS, {"metadata": meta, "spec": spec}, self.namespace)
        self.uid = made["metadata"]["uid"]
        self.uids["leaders"] = await self._stateful_set("vllm")

    @override
    async def job(self, number: int = 0, replicated: str = "") -> str:
        return ""  # none makes them

    @override
    async def pod(
        self, index: int, job: str = "", number: int = 0, *, node: str = "", replicated: str = "", **status: Any
    ) -> str:
        leader = f"vllm-{number}"
        made_by = (leader, self.uids[f"sts/{leader}"]) if index else ("vllm", self.uids["leaders"])
        labels = self._group_labels(number) | {names.LWS_WORKER_INDEX: str(index), names.GATED: LWS.gated}
        meta = {
            "name": f"{leader}-{index}" if index else leader,
            "labels": labels,
            "annotations": self.notes,
            "ownerReferences": [owner("StatefulSet", *made_by)],
        }
        inits = (job or names.BARRIER_CONTAINER).split()
        uid = await self._create_pod(meta, inits, {}, node=node, status=status)
        if not index:
            self.uids[leader] = uid
            more = {"labels": self._group_labels(number), "ownerReferences": [owner("Pod", leader, uid)]}
            self.uids[f"sts/{leader}"] = await self._stateful_set(leader, **more)
        return uid

    async def recreated(self, number: int) -> None:
        """Another leader and worker in the place of those that there are, which both start."""
        leader = f"vllm-{number}"
        gone = (PODS, leader), (PODS, f"{leader}-1"), (STATEFUL_SETS, leader), (CONFIGMAPS, LWS.config_map_name(leader))
        for resource, name in gone:
            with suppress(NotFound):  # garbage, which the API server may collect itself
                await self.client.delete(resource, name, self.namespace, grace_seconds=0)
        for index in range(2):
            await self.started(index, "", number)

    async def _stateful_set(self, name: str, **meta: Any) -> str:
        spec = {"replicas": 0, "serviceName": "", "selector": {"matchLabels": {"a": "b"}}, "template": {}}
        body = {"metadata": {"name": name, **meta}, "spec": spec}
        return str((await self.client.create(STATEFUL_SETS, body, self.namespace))["metadata"]["uid"])

    @staticmethod
    def _group_labels(number: int) -> dict[str, str]:
        return {names.LWS_NAME: "vllm", names.LWS_GROUP_INDEX: str(number)}

    @override
    async def config_map(
        self, kind: VerdictKind | None = None, cause: str = "", message: str = "", since: float | None = None
    ) -> None:
        """Of the first group."""
        await self.decided(0, kind, cause, message)

    @property
    @override
    def config_map_name(self) -> str:
        return LWS.config_map_name("vllm-0")

    async def decided(self, number: int, kind: VerdictKind | None = None, cause: str = "", message: str = "") -> None:
        """The ConfigMap of this group."""
        leader = f"vllm-{number}"
        its = Generation(self.uids[leader], 0, 0)
        since = None if kind is None else 1785578400.0
        await self._create_config_map(leader, its, (kind, cause, message), since)

    async def stored_config_map(self, number: int) -> Json:
        return await self.client.get(CONFIGMAPS, LWS.config_map_name(f"vllm-{number}"), self.namespace)
