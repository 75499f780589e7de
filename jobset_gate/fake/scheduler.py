"""The scheduler's part: pods without a node get one that has joined and has room, or are told why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jobset_gate.fake.kubelet.behaviour import FakeNode, FaultScript
from jobset_gate.fake.kubelet.pods import KubeletPod
from jobset_gate.fake.kubelet.write_queue import WriteQueue
from jobset_gate.fake.node_usage import NodeUsage
from jobset_gate.fake.objects import Clock, Json, Key, stamp
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import EVENTS, PODS


class ExternalScheduler:
    """Stands where the scheduler would, on a control plane that has one of its own."""

    def join(self, node: FakeNode) -> None:
        """A node more."""

    def leave(self, name: str) -> None:
        """A node less."""

    def changed(self, old: KubeletPod | None, new: KubeletPod | None) -> None:
        """A watch event of a pod."""

    def rescan(self) -> None:
        """Nothing waits here."""


class Scheduler:
    """kube-scheduler's usual way, pod by pod: the highest priority first, then who has waited longest, each on the
    node with the least on it of those that it may use and that have room. No pod is ever preempted.

    `autoscaler`: tell by an event, as a cluster autoscaler does, that a node is on its way while one has yet to join.
    """

    def __init__(
        self, client: Client, clock: Clock, script: FaultScript, writer: WriteQueue, *, autoscaler: bool
    ) -> None:
        self._client = client
        self._clock = clock
        self._script = script
        self._writer = writer
        self._autoscaler = autoscaler
        self._places = NodeUsage()
        self._pending: dict[Key, KubeletPod] = {}
        self._fresh: dict[Key, None] = {}
        self._told: dict[str, tuple[str, str]] = {}
        self._scaled: set[str] = set()
        self._all = False
        self._round: asyncio.Handle | None = None
        self.more_to_come: Callable[[], bool] = lambda: False
        """Whether a node has yet to join."""

    def join(self, node: FakeNode) -> None:
        self._places.join(node)
        self.rescan()

    def leave(self, name: str) -> None:
        self._places.leave(name)

    def changed(self, old: KubeletPod | None, new: KubeletPod | None) -> None:
        """A watch event of a pod."""
        pod = new or old
        if pod is None:
            return
        if new is not None and not new.node and not new.deleting and not new.over:
            self._waits(old, new)
            return
        self._pending.pop(pod.key, None)
        self._fresh.pop(pod.key, None)
        if new is None or new.over or not new.node:
            self._told.pop(pod.uid, None)
            self._scaled.discard(pod.uid)
            if self._places.release(pod.uid) and self._pending:
                self.rescan()
        else:
            self._places.take(new.uid, new.node, new.placement)

    def rescan(self) -> None:
        """Look at all waiting pods once more, soon."""
        self._all = True
        self._soon()

    def _waits(self, old: KubeletPod | None, new: KubeletPod) -> None:
        if not new.ours:
            return
        changed = old is not None and (old.gated != new.gated or old.placement is not new.placement)
        if new.key not in self._pending or changed:
            self._fresh[new.key] = None
            self._soon()
        self._pending[new.key] = new

    def _soon(self) -> None:
        if self._round is None:
            self._round = asyncio.get_running_loop().call_soon(self._go_round)

    def _go_round(self) -> None:
        """Those that have come, or all: in order, those alike in vain only once."""
        self._round = None
        keys = self._pending if self._all else self._fresh
        pods = sorted((self._pending[key] for key in keys), key=lambda pod: -pod.priority)
        self._all = False
        self._fresh.clear()
        in_vain: dict[int, str] = {}
        for pod in pods:
            self._try(pod, in_vain)

    def _try(self, pod: KubeletPod, in_vain: dict[int, str]) -> None:
        """Bind it or say why not."""
        if self._places.holds(pod.uid):
            return  # the binding is on its way
        if pod.gated:
            self._tell(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return
        why = self._script.unschedulable(pod) or in_vain.get(id(pod.placement), "")
        node = None if why else self._places.best(pod.placement)
        if node is None:
            if not why:
                why = in_vain[id(pod.placement)] = self._places.why_none(pod.placement)
            self._tell(pod, "Unschedulable", why)
            return
        self._places.take(pod.uid, node, pod.placement)
        self._writer.put(f"bind {pod.uid}", lambda: self._bind(pod, node))

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
            self._places.release(pod.uid)
            self.rescan()
            raise

    def _tell(self, pod: KubeletPod, reason: str, message: str) -> None:
        if self._told.get(pod.uid) == (reason, message):
            return
        self._told[pod.uid] = (reason, message)
        self._writer.put(f"bind {pod.uid}", lambda: self._write_condition(pod, reason, message))
        if self._autoscaler and reason == "Unschedulable" and self.more_to_come() and pod.uid not in self._scaled:
            self._scaled.add(pod.uid)
            self._writer.put(f"scale {pod.uid}", lambda: self._write_event(pod))

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

    async def _write_event(self, pod: KubeletPod) -> None:
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
