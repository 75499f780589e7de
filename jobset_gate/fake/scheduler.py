"""The played kube-scheduler: node usage, and one decision per pod: bind it, or report why no node fits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

from jobset_gate.fake.kubelet.pods import FakeNode, FaultScript, KubeletPod, Placement
from jobset_gate.fake.objects import Clock, Key, stamp
from jobset_gate.fake.tasks import WriteQueue
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.constraints import Amounts, NodeSelection
from jobset_gate.podgroups.fit.constraints import NodeFacts as Target


class _NodeLoad:
    def __init__(self, node: FakeNode) -> None:
        self.node = node
        self.target = Target(name=node.name, labels=node.all_labels)
        self._all = constraints.parse_amounts(node.room)
        self._free = dict(self._all)
        self.pods: dict[str, Placement] = {}

    def add(self, uid: str, placement: Placement) -> None:
        if uid not in self.pods:
            self.pods[uid] = placement
            self._account(placement, 1)

    def remove(self, uid: str) -> bool:
        placement = self.pods.pop(uid, None)
        if placement is not None:
            self._account(placement, -1)
        return placement is not None

    def lacking(self, amounts: Amounts) -> list[str]:
        """The resources that are short; a node without `allocatable` counts pods only."""
        limited = self.node.allocatable is not None
        return [
            name
            for name, many in amounts.items()
            if (limited or name == constraints.PODS) and many > self._free.get(name, 0)
        ]

    @property
    def crowd(self) -> float:
        """The lower, the better."""
        return 1 - self._free[constraints.PODS] / max(1, self._all[constraints.PODS])

    def reasons(self, placement: Placement) -> Iterator[str]:
        """The first filter that rejects; of resources every one that is short."""
        if not placement.selection.matches(self.target):
            yield "node(s) didn't match Pod's node affinity/selector"
        else:
            for name in self.lacking(placement.requests):
                yield "Too many pods" if name == constraints.PODS else f"Insufficient {name}"

    def _account(self, placement: Placement, sign: int) -> None:
        for name, many in placement.requests.items():
            self._free[name] = self._free.get(name, 0) - sign * many


class NodeUsage:
    """All nodes, and which pod is on which."""

    def __init__(self) -> None:
        self._nodes: dict[str, _NodeLoad] = {}
        self._node_of: dict[str, _NodeLoad] = {}
        self._selected: dict[NodeSelection, list[_NodeLoad]] = {}

    def join(self, node: FakeNode) -> None:
        """A new node, or a changed one, which keeps its pods."""
        load, before = _NodeLoad(node), self._nodes.get(node.name)
        for uid, placement in before.pods.items() if before else ():
            load.add(uid, placement)
            self._node_of[uid] = load
        self._nodes[node.name] = load
        self._selected.clear()

    def has_pod(self, uid: str) -> bool:
        return uid in self._node_of

    def place(self, uid: str, name: str, placement: Placement) -> None:
        """The pod is bound to that node, or about to be."""
        load = self._nodes.get(name)
        if load is None or self._node_of.get(uid) is load:
            return
        self.release(uid)
        load.add(uid, placement)
        self._node_of[uid] = load

    def release(self, uid: str) -> bool:
        """Whether the pod was on a node."""
        load = self._node_of.pop(uid, None)
        return load is not None and load.remove(uid)

    def best(self, placement: Placement) -> str | None:
        """The least crowded node of those that fit."""
        loads = self._selected.get(placement.selection)
        if loads is None:
            loads = [load for load in self._nodes.values() if placement.selection.admits(load.target)]
            self._selected[placement.selection] = loads
        fitting = (load for load in loads if not load.lacking(placement.requests))
        found = min(fitting, key=lambda load: load.crowd, default=None)
        return None if found is None else found.node.name

    def why_none(self, placement: Placement) -> str:
        """In kube-scheduler's words."""
        if not self._nodes:
            return "no nodes available to schedule pods"
        counted = Counter(reason for load in self._nodes.values() for reason in load.reasons(placement))
        reasons = sorted(f"{count} {reason}" for reason, count in counted.items())
        return f"0/{len(self._nodes)} nodes are available: {', '.join(reasons)}."


class Scheduler:
    """Pod by pod: the highest priority first, then the oldest, each on the best node that fits. No preemption.

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
        self._usage = NodeUsage()
        self._pending: dict[Key, KubeletPod] = {}
        self._new: dict[Key, None] = {}
        self._reported: dict[str, tuple[str, str]] = {}
        self._all = False
        self._pass: asyncio.Handle | None = None

    def join(self, node: FakeNode) -> None:
        self._usage.join(node)
        self.rescan()

    def on_change(self, old: KubeletPod | None, new: KubeletPod | None) -> None:
        """A watch event of a pod."""
        pod = new or old
        if pod is None or not self._active:
            return
        if new is not None and not new.node and not new.deleting and not new.ended:
            self._on_pending(old, new)
            return
        self._pending.pop(pod.key, None)
        self._new.pop(pod.key, None)
        if new is None or new.ended or not new.node:
            self._reported.pop(pod.uid, None)
            if self._usage.release(pod.uid) and self._pending:
                self.rescan()
        else:
            self._usage.place(new.uid, new.node, new.placement)

    def rescan(self) -> None:
        """Try all pending pods again, soon."""
        self._all = True
        self._schedule_pass()

    def _on_pending(self, old: KubeletPod | None, new: KubeletPod) -> None:
        if not new.ours:
            return
        changed = old is not None and (old.gated != new.gated or old.placement is not new.placement)
        if new.key not in self._pending or changed:
            self._new[new.key] = None
            self._schedule_pass()
        self._pending[new.key] = new

    def _schedule_pass(self) -> None:
        if self._pass is None:
            self._pass = asyncio.get_running_loop().call_soon(self._run_pass)

    def _run_pass(self) -> None:
        """New pods, or all; a placement that fits nowhere is tried once."""
        self._pass = None
        keys = self._pending if self._all else self._new
        pods = sorted((self._pending[key] for key in keys), key=lambda pod: -pod.priority)
        self._all = False
        self._new.clear()
        unschedulable: dict[int, str] = {}
        for pod in pods:
            self._try(pod, unschedulable)

    def _try(self, pod: KubeletPod, unschedulable: dict[int, str]) -> None:
        if self._usage.has_pod(pod.uid):
            return  # the binding is in flight
        if pod.gated:
            self._report(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return
        why = self._script.unschedulable(pod) or unschedulable.get(id(pod.placement), "")
        node = None if why else self._usage.best(pod.placement)
        if node is None:
            if not why:
                why = unschedulable[id(pod.placement)] = self._usage.why_none(pod.placement)
            self._report(pod, "Unschedulable", why)
            return
        self._usage.place(pod.uid, node, pod.placement)
        self._writes.put(f"bind {pod.uid}", lambda: self._bind(pod, node))

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
            self._usage.release(pod.uid)
            self.rescan()
            raise

    def _report(self, pod: KubeletPod, reason: str, message: str) -> None:
        if self._reported.get(pod.uid) != (reason, message):
            self._reported[pod.uid] = (reason, message)
            self._writes.put(f"bind {pod.uid}", lambda: self._write_condition(pod, reason, message))

    async def _write_condition(self, pod: KubeletPod, reason: str, message: str) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": stamp(self._clock()),
        }
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        await self._client.patch(
            PODS, pod.key[1], pod.key[0], body=body, patch=PatchType.STRATEGIC, subresource="status"
        )
