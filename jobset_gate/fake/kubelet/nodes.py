"""The Node objects of the played nodes, and on a real control plane the leases that keep them alive."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from jobset_gate.fake.kubelet.behaviour import FakeNode
from jobset_gate.fake.objects import Clock, Json, stamp
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, NotFound
from jobset_gate.kube.resources import LEASES, NODES

HEARTBEAT_SECONDS = 10.0
LEASE_SECONDS = 40
LEASE_NAMESPACE = "kube-node-lease"


class NodeObjects:
    """Without a Node object kube-controller-manager deletes the pods bound to it; without a lease it evicts them."""

    def __init__(self, client: Client, clock: Clock, *, heartbeat: bool) -> None:
        self._client = client
        self._clock = clock
        self._heartbeat = heartbeat
        self._alive: dict[str, FakeNode] = {}

    async def join(self, node: FakeNode) -> None:
        body = self._node(node)
        try:
            await self._client.create(NODES, body)
        except AlreadyExists:
            await self._client.delete(NODES, node.name)
            await self._client.create(NODES, body)
        self._alive[node.name] = node
        if self._heartbeat:
            await self._renew(node)

    async def leave(self, name: str) -> None:
        self._alive.pop(name, None)
        try:
            await self._client.delete(NODES, name)
        except NotFound:
            return

    async def leave_all(self) -> None:
        for name in list(self._alive):
            await self.leave(name)

    async def run(self) -> None:
        """Renew the leases, if there is a controller that reads them."""
        while self._heartbeat:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            for node in list(self._alive.values()):
                await self._renew(node)

    async def _renew(self, node: FakeNode) -> None:
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        lease: Json = {
            "metadata": {"name": node.name, "namespace": LEASE_NAMESPACE},
            "spec": {"holderIdentity": node.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
        }
        try:
            await self._client.patch(LEASES, node.name, LEASE_NAMESPACE, body=lease, patch=PatchType.MERGE)
        except NotFound:
            await self._client.create(LEASES, lease)

    def _node(self, node: FakeNode) -> Json:
        now = stamp(self._clock() + node.clock_skew)
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the played kubelet is posting ready status",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        taints = [{"key": key, "value": value, "effect": effect} for key, value, effect in node.taints]
        return {
            "metadata": {"name": node.name, "labels": node.all_labels},
            **({"spec": {"taints": taints}} if taints else {}),
            "status": {"capacity": node.room, "allocatable": node.room, "conditions": [ready]},
        }
