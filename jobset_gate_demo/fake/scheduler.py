"""The played kube-scheduler: one decision per pod: bind it, or report why no node fits."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterator

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.constraints import NodeFacts
from jobset_gate_demo.fake.kubelet.pods import FakeNode, FaultScript, KubeletPod, Placement
from jobset_gate_demo.fake.objects import Clock, Key, stamp
from jobset_gate_demo.fake.tasks import WriteQueue


class _NodeLoad:
    """A node and the pods on it. One without `allocatable` counts pods only."""

    def __init__(self, node: FakeNode) -> None:
        self.name = node.name
        self._facts = NodeFacts(name=node.name, labels=node.all_labels)
        self._free = constraints.parse_amounts(node.room if node.allocatable else {constraints.PODS: str(node.pods)})
        self._unknown = 0 if node.allocatable else math.inf
        self._pods: dict[str, Placement] = {}

    @property
    def room(self) -> int:
        """For so many more pods."""
        return self._free[constraints.PODS]

    def add(self, uid: str, placement: Placement) -> None:
        self._pods[uid] = placement
        self._account(placement, 1)

    def remove(self, uid: str) -> None:
        self._account(self._pods.pop(uid), -1)

    def rejections(self, placement: Placement) -> Iterator[str]:
        """The first filter that rejects; of resources every one that is short."""
        if not placement.selection.matches(self._facts):
            yield "node(s) didn't match Pod's node affinity/selector"
            return
        for name, many in placement.requests.items():
            if many > self._free.get(name, self._unknown):
                yield "Too many pods" if name == constraints.PODS else f"Insufficient {name}"

    def _account(self, placement: Placement, sign: int) -> None:
        for name, many in placement.requests.items():
            if name in self._free:
                self._free[name] -= sign * many


class Scheduler:
    """Pod by pod, the oldest first, each on the node with the most room of those that fit. No preemption.

    Not `active` on a control plane that has a scheduler of its own.
    """

    def __init__(
        self, client: Client, clock: Clock, script: FaultScript, writes: WriteQueue, *, active: bool = True
    ) -> None:
        self._active = active
        self._client = client
        self._clock = clock
        self._script = script
        self._writes = writes
        self._nodes: list[_NodeLoad] = []
        self._node_of: dict[str, _NodeLoad] = {}
        self._pending: dict[Key, KubeletPod] = {}
        self._reported: dict[str, str] = {}
        self._pass: asyncio.Handle | None = None

    def join(self, node: FakeNode) -> None:
        """A new node."""
        self._nodes.append(_NodeLoad(node))
        self.rescan()

    def on_change(self, old: KubeletPod | None, new: KubeletPod | None) -> None:
        """A watch event of a pod."""
        pod = new or old
        if pod is None or not self._active:
            return
        if new is not None and not (new.node or new.deleting or new.ended):
            if new.key not in self._pending or (old is not None and old.gated != new.gated):
                self.rescan()
            self._pending[new.key] = new
            return
        self._pending.pop(pod.key, None)
        if new is None or new.ended or not new.node:
            self._reported.pop(pod.uid, None)
            self._release(pod.uid)

    def rescan(self) -> None:
        """Try all pending pods, soon."""
        if self._pass is None:
            self._pass = asyncio.get_running_loop().call_soon(self._run_pass)

    def _release(self, uid: str) -> None:
        if load := self._node_of.pop(uid, None):
            load.remove(uid)
            self.rescan()

    def _run_pass(self) -> None:
        """A placement that fits nowhere is tried once."""
        self._pass = None
        unschedulable: dict[int, str] = {}
        for pod in self._pending.values():
            if not pod.gated and pod.uid not in self._node_of:  # else its binding is in flight
                self._try(pod, unschedulable)

    def _try(self, pod: KubeletPod, unschedulable: dict[int, str]) -> None:
        placement = pod.placement
        why = self._script.unschedulable(pod) or unschedulable.get(id(placement), "")
        fitting = () if why else (load for load in self._nodes if not any(load.rejections(placement)))
        load = max(fitting, key=lambda load: load.room, default=None)
        if load is None:
            if not why:
                why = unschedulable[id(placement)] = self._why_none(placement)
            self._report(pod, why)
            return
        self._node_of[pod.uid] = load
        load.add(pod.uid, placement)
        self._writes.put(f"bind {pod.uid}", lambda: self._bind(pod, load.name))

    def _why_none(self, placement: Placement) -> str:
        if not self._nodes:
            return "no nodes available to schedule pods"
        counted = Counter(reason for load in self._nodes for reason in load.rejections(placement))
        reasons = sorted(f"{count} {reason}" for reason, count in counted.items())
        return f"0/{len(self._nodes)} nodes are available: {', '.join(reasons)}."

    async def _bind(self, pod: KubeletPod, node: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.key[1], "namespace": pod.key[0], "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._client.post(PODS.path(pod.key[0], pod.key[1], "binding"), body)
        except KubeError:
            self._release(pod.uid)
            raise

    def _report(self, pod: KubeletPod, message: str) -> None:
        if self._reported.get(pod.uid) != message:
            self._reported[pod.uid] = message
            self._writes.put(f"bind {pod.uid}", lambda: self._write_condition(pod, message))

    async def _write_condition(self, pod: KubeletPod, message: str) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": stamp(self._clock()),
        }
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        await self._client.patch(
            PODS, pod.key[1], pod.key[0], body=body, patch=PatchType.STRATEGIC, subresource="status"
        )
