"""All the nodes' kubelets in one: one watch on pods, one on the gangs' ConfigMaps, timers, and bounded writes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from jobset_gate import names
from jobset_gate.fake.kubelet import mounts, pod_status, pods
from jobset_gate.fake.kubelet.barrier_streams import BarrierStreams
from jobset_gate.fake.kubelet.behaviour import Behaviour, FakeNode, FaultScript, PodFault, PodMatch
from jobset_gate.fake.kubelet.mounts import ConfigMapMounts, ConfigMapWire
from jobset_gate.fake.kubelet.nodes import NodeObjects
from jobset_gate.fake.kubelet.pod_worker import PodWorker
from jobset_gate.fake.kubelet.pods import KubeletPod, KubeletPodWire
from jobset_gate.fake.kubelet.write_queue import WriteQueue
from jobset_gate.fake.objects import Clock, Key
from jobset_gate.fake.scheduler import ExternalScheduler, Scheduler
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from jobset_gate.runtime.informer import Informer
from jobset_gate.runtime.store import ObjectChange

PARALLEL_WRITES = 64
HOST_IP = "192.0.2.1"


class Kubelets:
    """Scheduler and kubelets. `run()` for ever; `wait_synced()` once the nodes that are there at the start have joined.

    `namespace` limits them to one; `heartbeat` is for a real control plane; with `schedule` off its own scheduler binds
    the pods, and the kubelets run what is bound to their nodes. `seed` makes chance repeatable.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        nodes: Sequence[FakeNode],
        behaviour: Behaviour | None = None,
        *,
        namespace: str | None = None,
        heartbeat: bool = False,
        autoscaler: bool = False,
        schedule: bool = True,
        seed: int = 0,
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.script = FaultScript(behaviour or Behaviour())
        self.mounts = ConfigMapMounts(lambda: self.behaviour.configmap_sync)
        self.rng = random.Random(seed)
        self.streams = BarrierStreams(self.script, seed)
        self._client = client
        self._clock = clock
        self._writer = WriteQueue(PARALLEL_WRITES)
        self._objects = NodeObjects(client, clock, heartbeat=heartbeat)
        self._joined: dict[str, FakeNode] = {}
        self._scheduler = self._own_scheduler(autoscaler=autoscaler) if schedule else ExternalScheduler()
        self._runs: dict[str, PodWorker] = {}
        self._unreported: set[str] = set()
        self._ready = asyncio.Event()
        self._pods = Informer(
            client,
            PODS,
            wire=KubeletPodWire,
            convert=pods.decode_kubelet_pod,
            handler=self._pod_changed,
            namespace=namespace,
        )
        self._config_maps = Informer(
            client,
            CONFIGMAPS,
            wire=ConfigMapWire,
            convert=mounts.verdict_of,
            handler=self.mounts.changed,
            namespace=namespace,
            label_selector=f"{names.GATE}={names.GATE_VALUE}",
        )

    def _own_scheduler(self, *, autoscaler: bool) -> Scheduler:
        scheduler = Scheduler(self._client, self._clock, self.script, self._writer, autoscaler=autoscaler)
        scheduler.more_to_come = lambda: len(self._joined) < len(self.nodes)
        return scheduler

    # --- Knobs ------------------------------------------------------------------------------------------------------

    @property
    def behaviour(self) -> Behaviour:
        return self.script.behaviour

    @behaviour.setter
    def behaviour(self, value: Behaviour) -> None:
        """For what begins from now on."""
        self.script.behaviour = value

    def inject_fault(self, trouble: PodFault) -> PodFault:
        """In force from now on, for what has not happened yet."""
        self.script.faults.append(trouble)
        self.streams.check()
        return trouble

    def clear_fault(self, trouble: PodFault) -> None:
        """It ends: pods that it held up are tried again."""
        self.script.faults.remove(trouble)
        self._scheduler.rescan()
        for run in self._runs.values():
            run.retry()

    def restart_barrier(self, where: PodMatch) -> list[Key]:
        """Kill the running barrier containers of those pods; the kubelet restarts them."""
        return self.restart(where, names.BARRIER_CONTAINER)

    def restart(self, where: PodMatch, container: str) -> list[Key]:
        """Kill a running container of those pods; what follows is up to their restart policy."""
        return [run.pod.key for run in self._matching(where) if run.restart(container)]

    def finish(self, where: PodMatch, container: str = "main") -> list[Key]:
        """That container of those pods is done with its work: exit code 0."""
        return [run.pod.key for run in self._matching(where) if run.restart(container, code=0)]

    def reboot(self, where: PodMatch) -> list[Key]:
        """Those pods lose their sandbox and run all their init containers again."""
        found = self._matching(where)
        for run in found:
            run.reboot()
        return [run.pod.key for run in found]

    async def add_node(self, node: FakeNode) -> None:
        """One more node, that joins at once."""
        self.nodes[node.name] = node
        await self._join(node)

    async def vanish_node(self, name: str) -> list[Key]:
        """The machine is gone: its kubelet says nothing more, its Node and its pods are deleted without grace."""
        node = self.nodes.pop(name)
        self._joined.pop(node.name, None)
        self._scheduler.leave(node.name)
        lost = self._matching(PodMatch(node=node.name))
        for run in lost:
            run.drop()
            del self._runs[run.pod.uid]
        await self._objects.leave(node.name)
        await asyncio.gather(*(self._delete(run.pod) for run in lost))
        return [run.pod.key for run in lost]

    async def evict(self, where: PodMatch) -> list[Key]:
        """Those pods are evicted through the API."""
        found = [run.pod for run in self._matching(where)]
        body = {"apiVersion": "policy/v1", "kind": "Eviction"}
        await asyncio.gather(
            *(
                self._client.post(
                    PODS.path(*pod.key, "eviction"), {**body, "metadata": {"name": pod.key[1], "namespace": pod.key[0]}}
                )
                for pod in found
            )
        )
        return [pod.key for pod in found]

    def pods(self, where: PodMatch | None = None) -> list[KubeletPod]:
        """The pods that run on the nodes now."""
        return [run.pod for run in self._matching(where or PodMatch())]

    # --- Running ----------------------------------------------------------------------------------------------------

    async def wait_synced(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._writer.run())
                for node in self.nodes.values():
                    if node.ready_at <= 0:
                        await self._join(node)
                group.create_task(self._config_maps.run())
                await self._config_maps.wait_synced()
                group.create_task(self._pods.run())
                await self._pods.wait_synced()
                self._ready.set()
                group.create_task(self._objects.run())
                for node in list(self.nodes.values()):
                    if node.ready_at > 0:
                        group.create_task(self._join_late(node))
        finally:
            for run in self._runs.values():
                run.drop()
            await self.streams.stop()

    async def clean_up(self) -> None:
        """Take the Node objects away."""
        await self._objects.leave_all()

    async def _join_late(self, node: FakeNode) -> None:
        await asyncio.sleep(node.ready_at)
        if node.name in self.nodes:
            await self._join(node)

    async def _join(self, node: FakeNode) -> None:
        await self._objects.join(node)
        self._joined[node.name] = node
        self._scheduler.join(node)

    # --- What the API server tells ----------------------------------------------------------------------------------

    def _pod_changed(self, change: ObjectChange[KubeletPod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            run = self._runs.pop(old.uid, None)
            if run is not None:
                run.drop()
            self._scheduler.changed(old, None)
        if new is None:
            return
        self._scheduler.changed(old, new)
        node = self._joined.get(new.node)
        if node is not None:
            self._on_node(new, node)

    def _on_node(self, pod: KubeletPod, node: FakeNode) -> None:
        run = self._runs.get(pod.uid)
        if run is not None:
            run.update(pod)
            return
        if pod.over:
            if pod.deleting:
                self._writer.put(pod.uid, lambda: self._delete(pod))
            return
        run = self._runs[pod.uid] = PodWorker(self, pod, node)
        if pod.deleting:
            run.update(pod)
            return
        run.start()

    # --- What the runs need -----------------------------------------------------------------------------------------

    def now(self, node: FakeNode) -> float:
        return self._clock() + node.clock_skew

    def write(self, run: PodWorker) -> None:
        delay, uid = self.behaviour.status_delay, run.pod.uid
        if not delay:
            self._report(run)
        elif uid not in self._unreported:  # what changes meanwhile goes with it
            self._unreported.add(uid)
            asyncio.get_running_loop().call_later(delay, self._report, run)

    def _report(self, run: PodWorker) -> None:
        self._unreported.discard(run.pod.uid)
        self._writer.put(run.pod.uid, lambda: self._write(run))

    async def _write(self, run: PodWorker) -> None:
        if run.gone:
            return
        status = pod_status.render(run.book, self.now(run.node), host_ip=HOST_IP)
        body = {"metadata": {"uid": run.pod.uid}, "status": status}
        namespace, name = run.pod.key
        killed = run.book.killed
        await self._client.patch(PODS, name, namespace, body=body, patch=PatchType.STRATEGIC, subresource="status")
        if killed:
            await self._delete(run.pod)

    async def _delete(self, pod: KubeletPod) -> None:
        try:
            await self._client.delete(PODS, pod.key[1], pod.key[0], uid=pod.uid, grace_seconds=0)
        except (NotFound, Conflict):
            return

    def _matching(self, where: PodMatch) -> list[PodWorker]:
        return [run for run in self._runs.values() if where.matches(run.pod)]
