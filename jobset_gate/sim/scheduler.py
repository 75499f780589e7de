"""The scheduler's part: pods without a node get one that has joined and has room, or are told why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import EVENTS, PODS
from jobset_gate.sim.kubelet.behaviour import Node, Script
from jobset_gate.sim.kubelet.pods import KubePod
from jobset_gate.sim.kubelet.writer import Writer
from jobset_gate.sim.objects import Clock, Json, Key, stamp


class Scheduler:
    """Counts pods only: a node has room for `node.pods` of them. First come, first served, spread over the nodes.

    `autoscaler`: tell by an event, as a cluster autoscaler does, that a node is on its way while one has yet to join.
    """

    def __init__(self, client: Client, clock: Clock, script: Script, writer: Writer, *, autoscaler: bool) -> None:
        self._client = client
        self._clock = clock
        self._script = script
        self._writer = writer
        self._autoscaler = autoscaler
        self._nodes: dict[str, Node] = {}
        self._on: dict[str, set[str]] = {}
        self._pending: dict[Key, KubePod] = {}
        self._told: dict[str, tuple[str, str]] = {}
        self._scaled: set[str] = set()
        self._rescan: asyncio.Handle | None = None
        self.more_to_come: Callable[[], bool] = lambda: False
        """Whether a node has yet to join."""

    def join(self, node: Node) -> None:
        self._nodes[node.name] = node
        self._on.setdefault(node.name, set())
        self.rescan()

    def leave(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._on.pop(name, None)

    def changed(self, old: KubePod | None, new: KubePod | None) -> None:
        """A watch event of a pod."""
        pod = new or old
        if pod is None:
            return
        if new is not None and not new.node and not new.deleting and not new.over:
            fresh = pod.key not in self._pending or (old is not None and old.gated != new.gated)
            self._pending[pod.key] = new
            if fresh:
                self._try(new)
            return
        self._pending.pop(pod.key, None)
        if new is None or new.over:
            self._told.pop(pod.uid, None)
            self._scaled.discard(pod.uid)
            self._free(pod)
        elif new.node in self._on:
            self._on[new.node].add(new.uid)

    def rescan(self) -> None:
        """Look at all waiting pods once more, soon."""
        if self._rescan is None:
            self._rescan = asyncio.get_running_loop().call_soon(self._scan)

    def _scan(self) -> None:
        self._rescan = None
        for pod in list(self._pending.values()):
            if not self._try(pod) and not self._room():
                return

    def _free(self, pod: KubePod) -> None:
        for held in self._on.values():
            if pod.uid in held:
                held.discard(pod.uid)
                if self._pending:
                    self.rescan()

    def _try(self, pod: KubePod) -> bool:
        """Bind it or say why not."""
        if any(pod.uid in held for held in self._on.values()):
            return True  # the binding is on its way
        if pod.gated:
            self._tell(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return False
        scripted = self._script.unschedulable(pod)
        node = None if scripted else self._best(pod)
        if node is None:
            self._tell(pod, "Unschedulable", scripted or self._why(pod))
            return False
        self._on[node.name].add(pod.uid)
        self._writer.put(f"bind {pod.uid}", lambda: self._bind(pod, node))
        return True

    def _best(self, pod: KubePod) -> Node | None:
        free = (node for node in self._nodes.values() if len(self._on[node.name]) < node.pods)
        fitting = [node for node in free if self._fits(pod, node)]
        return min(fitting, key=lambda node: len(self._on[node.name]) / node.pods, default=None)

    def _fits(self, pod: KubePod, node: Node) -> bool:
        return pod.node_selector.items() <= node.all_labels.items()

    def _room(self) -> bool:
        return any(len(self._on[node.name]) < node.pods for node in self._nodes.values())

    def _why(self, pod: KubePod) -> str:
        if not self._nodes:
            return "no nodes available to schedule pods"
        fitting = sum(self._fits(pod, node) for node in self._nodes.values())
        reasons = []
        if fitting:
            reasons.append(f"{fitting} Too many pods")
        if other := len(self._nodes) - fitting:
            reasons.append(f"{other} node(s) didn't match Pod's node affinity/selector")
        return f"0/{len(self._nodes)} nodes are available: {', '.join(reasons)}."

    async def _bind(self, pod: KubePod, node: Node) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.key[1], "namespace": pod.key[0], "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node.name},
        }
        try:
            await self._client.post(PODS.path(pod.key[0], pod.key[1], "binding"), body)
        except KubeError:
            self._on.get(node.name, set()).discard(pod.uid)
            self.rescan()
            raise

    def _tell(self, pod: KubePod, reason: str, message: str) -> None:
        if self._told.get(pod.uid) == (reason, message):
            return
        self._told[pod.uid] = (reason, message)
        self._writer.put(f"bind {pod.uid}", lambda: self._write_condition(pod, reason, message))
        if self._autoscaler and reason == "Unschedulable" and self.more_to_come() and pod.uid not in self._scaled:
            self._scaled.add(pod.uid)
            self._writer.put(f"scale {pod.uid}", lambda: self._write_event(pod))

    async def _write_condition(self, pod: KubePod, reason: str, message: str) -> None:
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

    async def _write_event(self, pod: KubePod) -> None:
        now = stamp(self._clock())
        namespace, name = pod.key
        event: Json = {
            "metadata": {"name": f"{name}.{pod.uid}", "namespace": namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": namespace, "uid": pod.uid},
            "type": "Normal",
            "reason": "TriggeredScaleUp",
            "message": "pod triggered scale-up",
            "source": {"component": "cluster-autoscaler"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._client.create(EVENTS, event)
