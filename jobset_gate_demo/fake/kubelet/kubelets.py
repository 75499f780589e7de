"""All nodes' kubelets in one: one watch on pods, one on verdict ConfigMaps, timers, and bounded writes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, NODES, PODS
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange
from jobset_gate_demo.fake.kubelet import barrier, pod_status
from jobset_gate_demo.fake.kubelet.barrier import BarrierStreams, ConfigMapMounts
from jobset_gate_demo.fake.kubelet.pod_worker import KILLED, PodWorker
from jobset_gate_demo.fake.kubelet.pods import Behaviour, FakeNode, FaultScript, KubeletPod, PodFault, PodMatch
from jobset_gate_demo.fake.objects import Clock, FakeObject, Json, Key, stamp
from jobset_gate_demo.fake.scheduler import Scheduler
from jobset_gate_demo.fake.tasks import WriteQueue

PARALLEL_WRITES = 64


class Kubelets:
    """Scheduler and kubelets. `run()` until cancelled; `wait_synced()` once the first nodes have joined.

    `namespace` limits them to one. Without `schedule` another scheduler binds the pods, and the kubelets run what is
    bound to their nodes.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        nodes: Sequence[FakeNode],
        behaviour: Behaviour | None = None,
        *,
        namespace: str | None = None,
        schedule: bool = True,
    ) -> None:
        self.script = FaultScript(behaviour or Behaviour())
        self.mounts = ConfigMapMounts(lambda: self.script.behaviour.configmap_sync)
        self.rng = random.Random(0)
        self.streams = BarrierStreams(self.script)
        self._client = client
        self._clock = clock
        self._writes = WriteQueue(PARALLEL_WRITES)
        self._first_nodes = nodes
        self._joined: dict[str, FakeNode] = {}
        self._scheduler = Scheduler(client, clock, self.script, self._writes, active=schedule)
        self._workers: dict[str, PodWorker] = {}
        self._unreported: set[str] = set()
        self._ready = asyncio.Event()
        self._pods = Informer(client, WatchSource(PODS, FakeObject, KubeletPod, self._on_pod, namespace=namespace))
        self._config_maps = Informer(
            client,
            WatchSource(
                CONFIGMAPS,
                FakeObject,
                barrier.verdict_of,
                self.mounts.on_change,
                namespace=namespace,
                label_selector=f"{names.GATE}={names.GATE_VALUE}",
            ),
        )

    # --- What a test can do -------------------------------------------------------------------------------------------

    def inject_fault(self, fault: PodFault) -> PodFault:
        """In force from now on, for what has not happened yet."""
        self.script.faults.append(fault)
        return fault

    def clear_fault(self, fault: PodFault) -> None:
        """Pods that it held up are tried again."""
        self.script.faults.remove(fault)
        self._scheduler.rescan()
        for worker in self._workers.values():
            worker.retry()

    def restart(self, match: PodMatch) -> list[Key]:
        """Kill the main containers of those pods; the rest is up to their restart policy."""
        return [worker.pod.key for worker in self._matching(match) if worker.end_main(KILLED)]

    def restart_sandbox(self, match: PodMatch) -> None:
        """The node of those pods boots again: all their containers start again, beginning with the init containers."""
        for worker in self._matching(match):
            worker.restart_sandbox()

    def finish(self, match: PodMatch) -> None:
        """The main containers of those pods end with exit code 0."""
        for worker in self._matching(match):
            worker.end_main(0)

    # --- Running ------------------------------------------------------------------------------------------------------

    async def wait_synced(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._writes.run())
                for node in self._first_nodes:
                    await self.add_node(node)
                group.create_task(self._config_maps.run())
                await self._config_maps.wait_synced()
                group.create_task(self._pods.run())
                await self._pods.wait_synced()
                self._ready.set()
        finally:
            for worker in self._workers.values():
                worker.drop()
            await self.streams.stop()

    async def clean_up(self) -> None:
        """Delete the Node objects."""
        for name in self._joined:
            with suppress(NotFound):
                await self._client.delete(NODES, name)

    async def add_node(self, node: FakeNode) -> None:
        """One more node, which joins at once."""
        body = _node_object(node, stamp(self.now(node)))
        await self._client.create(NODES, body)
        self._joined[node.name] = node
        self._scheduler.join(node)

    # --- Watch events -------------------------------------------------------------------------------------------------

    def _on_pod(self, change: ObjectChange[KubeletPod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            worker = self._workers.pop(old.uid, None)
            if worker is not None:
                worker.drop()
            self._scheduler.on_change(old, None)
        if new is None:
            return
        self._scheduler.on_change(old, new)
        node = self._joined.get(new.node)
        if node is not None:
            self._on_bound_pod(new, node)

    def _on_bound_pod(self, pod: KubeletPod, node: FakeNode) -> None:
        worker = self._workers.get(pod.uid)
        if worker is not None:
            worker.update(pod)
            return
        if not pod.ended:
            worker = self._workers[pod.uid] = PodWorker(self, pod, node)
            worker.start()

    # --- What the pod workers need ------------------------------------------------------------------------------------

    def now(self, node: FakeNode) -> float:
        return self._clock() + node.clock_skew

    def write(self, worker: PodWorker) -> None:
        """Write the pod's status, after `status_delay`; changes meanwhile are part of it."""
        delay, uid = self.script.behaviour.status_delay, worker.pod.uid
        if not delay:
            self._write_soon(worker)
        elif uid not in self._unreported:
            self._unreported.add(uid)
            asyncio.get_running_loop().call_later(delay, self._write_soon, worker)

    def _write_soon(self, worker: PodWorker) -> None:
        self._unreported.discard(worker.pod.uid)
        self._writes.put(worker.pod.uid, lambda: self._write(worker))

    async def _write(self, worker: PodWorker) -> None:
        if worker.gone:
            return
        status = pod_status.render(worker.record, self.now(worker.node))
        body = {"metadata": {"uid": worker.pod.uid}, "status": status}
        namespace, name = worker.pod.key
        killed = worker.record.killed
        await self._client.patch(PODS, name, namespace, body=body, patch=PatchType.STRATEGIC, subresource="status")
        if killed:
            await self._delete(worker.pod)

    async def _delete(self, pod: KubeletPod) -> None:
        with suppress(NotFound, Conflict):
            await self._client.delete(PODS, pod.key[1], pod.key[0], uid=pod.uid, grace_seconds=0)

    def _matching(self, match: PodMatch) -> list[PodWorker]:
        return [worker for worker in self._workers.values() if match.matches(worker.pod)]


def _node_object(node: FakeNode, now: str) -> Json:
    """Without it kube-scheduler binds no pod to the node, and kube-controller-manager may delete its pods."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "the played kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "metadata": {"name": node.name, "labels": node.all_labels},
        "status": {"capacity": node.room, "allocatable": node.room, "conditions": [ready]},
    }
