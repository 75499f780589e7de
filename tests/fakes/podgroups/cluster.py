"""A cluster in memory with the part of the controller that keeps groups, on virtual time.

Nobody schedules: a test binds pods itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

from prometheus_client import CollectorRegistry

from controllers.dependencies import ControllerDependencies
from controllers.podgroups import informers
from controllers.podgroups.setup import PodGroupControllers
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import NODES, POD_GROUPS, PODS, Resource
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Flavor, PodGroupKey
from jobset_gate.podgroups.record import AdmissionRecord, decode_record
from jobset_gate.runtime.controller import ControllerMetrics
from jobset_gate.runtime.metrics import RuntimeMetrics
from jobset_gate.settings import Groups as Settings
from jobset_gate_demo.fake.apiserver import patches
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.memory_api import Api, Listener
from tests.fakes.memory_client import Answer, Call, MemoryClient
from tests.fakes.podgroups.filled_cache import InformerFeed
from tests.fakes.podgroups.manifests import record_text
from tests.fakes.podgroups.objects import key, made_by, node, pod, pod_group
from tests.fakes.podgroups.snapshots import timestamp
from tests.fakes.podgroups.sources import GANG, Json

PLUGINS = POD_GROUPS[names.PLUGINS_GROUP]
OFF = Settings(capacity_check=CapacityCheck.OFF)
PROBE = Settings(capacity_check=CapacityCheck.PROBE)
OWNED = made_by("r", kind="ReplicaSet")
"""Metadata of a pod that a controller has created: such pods are evicted."""


def asking(cpu: str) -> Json:
    """The spec of a pod with this request."""
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}


WriteFault = Callable[[str, Resource, str, Any], "KubeError | str | None"]
"""(Verb, kind, name, body) of a write: an error refuses it, "lost" lets it land and loses the answer."""


class InMemoryCluster(MemoryClient):
    """`writes` is the log of those that landed, as (verb, kind, name, body); `on_change` hears of every change."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(Api(), self._decide)
        self.clock = clock
        self.writes: list[tuple[str, Resource, str, Any]] = []
        self.fault: WriteFault = lambda *_: None
        self.on_change: Listener = lambda *_: None
        self.api.listeners.append(self._changed)
        self._numbers = count()

    def without_retries(self) -> Client:
        return self.client

    def _changed(self, resource: Resource, old: Json | None, new: Json | None) -> None:
        self.on_change(resource, old, new)

    async def _decide(self, call: Call) -> Answer:
        await asyncio.sleep(0)
        if call.verb in ("get", "list"):
            return Answer.DONE
        write = f"{call.verb} {call.subresource}".strip(), call.kind, call.name, call.body
        fate = self.fault(*write)
        if isinstance(fate, KubeError):
            raise fate
        self.writes.append(write)
        return Answer.DONE if fate is None else Answer.LOST

    def put(self, resource: Resource, body: Json) -> Json:
        """This object is there from now on, in a new version."""
        if resource == PODS:
            body = {**body, "metadata": {"creationTimestamp": timestamp(self.clock()), **body["metadata"]}}
        return self.api.put(resource, body)

    def remove(self, resource: Resource, name: str, namespace: str = "team") -> None:
        self.api.remove(resource, name, namespace=namespace)

    def all(self, resource: Resource) -> Sequence[Json]:
        return self.api.all(resource)

    def stored(self, resource: Resource, namespace: str, name: str) -> Json:
        return self.api.known(resource, name, namespace)

    def patch_object(self, resource: Resource, name: str, body: Json, namespace: str = "team") -> None:
        self.api.change(resource, name, lambda it: patches.patched(patches.MERGE, body, it), namespace=namespace)

    def pod(self, name: str) -> Json:
        return self.stored(PODS, "team", name)

    def bind(self, *pods: str) -> None:
        for name in pods:
            assert not self.pod(name)["spec"]["schedulingGates"], f"{name} is held"
            self.patch_object(PODS, name, {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}})

    def create_group(
        self, group: str, *pods: str, minimum: int | None = None, of: PodGroupKey | None = None, **more: Any
    ) -> None:
        """Pods of a group, and its PodGroup unless it is there already."""
        if minimum is not None:
            spec = {"minMember": minimum, **more.pop("terms", {})}
            self.put(PLUGINS, pod_group(group, uid=f"uid-{group}-{next(self._numbers)}", spec=spec))
        for name in pods:
            body = pod(name, of=of or key(group), **more)
            body["metadata"] |= {
                "creationTimestamp": timestamp(self.clock()),
                "uid": f"uid-{name}-{next(self._numbers)}",
            }
            self.put(PODS, body)

    def ungated_pods(self) -> list[str]:
        """Names of the pods that our gate does not hold."""
        return [it["metadata"]["name"] for it in self.all(PODS) if not it["spec"]["schedulingGates"]]

    def create_gang(
        self,
        name: str,
        *pods: str,
        partners: str = "",
        minimum: int | None = None,
        said: Json | None = None,
        **more: Any,
    ) -> None:
        """Pods of a gang of Koordinator's annotations, which needs all of them unless `minimum` is given.

        `partners`: the gangs of its GangGroup, as in "one two"; `said`: its other annotations.
        """
        said = {"name": name, "min-available": str(minimum or len(pods)), **(said or {})}
        if partners:
            said["groups"] = json.dumps([f"team/{it}" for it in partners.split()])
        notes = {GANG + about: value for about, value in said.items()}
        self.create_group(name, *pods, of=key(name, Flavor.KOORDINATOR), labels={}, notes=notes, **more)

    def recorded(self, group: str = "g") -> AdmissionRecord:
        found = self.record(group)
        assert found is not None
        return found

    def record(self, group: str = "g") -> AdmissionRecord | None:
        text = record_text(self.stored(PLUGINS, "team", group))
        return decode_record(text) if text else None

    def count_writes(self, verb: str, resource: Resource) -> int:
        return sum(it[:2] == (verb, resource) for it in self.writes)


class RunningController:
    """All controllers of pod groups; every change is delivered at once, unless a test pauses an informer."""

    def __init__(
        self, cluster: InMemoryCluster, settings: Settings, stale: Sequence[Json] | None = None, client: Any = None
    ) -> None:
        self.registry = CollectorRegistry()
        around = ControllerDependencies(
            client=client or cluster.client,
            writer=client or cluster.client,
            namespace=None,
            clock=cluster.clock,
            registry=self.registry,
            runtime=RuntimeMetrics(self.registry),
            metrics=ControllerMetrics(self.registry),
        )
        self.controllers = PodGroupControllers(settings, around, keep_crds=False)
        self._feeds = [InformerFeed(it) for it in informers.watch_sources(self.controllers.cache, settings, None)]
        self.paused_selector: Any = None
        """The selector of the watch that tells nothing for a while."""
        for resource in dict.fromkeys(feed.kind.resource for feed in self._feeds):
            for body in cluster.all(resource) if stale is None or resource != PLUGINS else stale:
                self.deliver(resource, None, body)
        cluster.on_change = self.deliver

    def deliver(self, resource: Resource, old: Json | None, new: Json | None) -> None:
        for feed in self._feeds:
            kind = feed.kind
            if kind.resource != resource or self.paused_selector in (kind.field_selector, kind.label_selector):
                continue
            if new is not None:
                feed.put(new)
            elif old is not None:
                feed.remove(old)

    def metric(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(f"jobset_gate_group_{name}", labels)
        assert found is not None, name
        return found


@asynccontextmanager
async def running_controller(
    cluster: InMemoryCluster,
    settings: Settings | None = None,
    *,
    stale: Sequence[Json] | None = None,
    client: Any = None,
) -> AsyncIterator[RunningController]:
    """A controller that leads, until it is killed at the end. `stale`: PodGroups as its informer has delivered them;
    `client`: another than the cluster's own.
    """
    running = RunningController(cluster, settings or Settings(), stale, client)
    async with asyncio.TaskGroup() as tasks:
        works = [tasks.create_task(work()) for work in running.controllers.runnables]
        try:
            yield running
        finally:
            for work in works:
                work.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*works)


async def run_for(seconds: float = 1.0) -> None:
    """All that is to happen in so many (virtual) seconds has."""
    await asyncio.sleep(seconds)


def add_node(cluster: InMemoryCluster, name: str = "n", cpu: str = "100") -> None:
    cluster.put(NODES, node(name, cpu=cpu, memory="1000Gi"))
