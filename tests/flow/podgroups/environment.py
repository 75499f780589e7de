"""One namespace of a plane with kube-scheduler, nodes of its own, and jobset-gate at work on the groups in it.

Tests share the plane: a test's nodes carry its namespace as a label, and its pods select it, so that no test's pods
land on another's nodes, and their capacity domains are apart. Nodes are mere objects; with `kubelets` the fake ones
run them, so that pods run and end.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from controllers.barrier import crd_patcher
from jobset_gate import names
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, NODES, POD_GROUPS, PODS, Resource
from jobset_gate.podgroups import record
from jobset_gate.podgroups.model import FLAVOR_OF, Format, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.settings import Groups, Settings
from jobset_gate_demo.fake import jobset_crd
from jobset_gate_demo.fake.cluster import Actors
from jobset_gate_demo.fake.kubelet import Behaviour, FakeNode, Kubelets
from tests.fakes.admission_server import registered, registered_for_pods
from tests.fakes.background import in_background
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView
from tests.fakes.podgroups import manifests
from tests.flow.environment import BaseEnvironment, server_side_apply
from tests.plane.planes import Plane
from webhook.server import WebhookServer

Json = dict[str, Any]
STAGE = "stage.test/namespace"
"""Label of the nodes, and selector of the pods, of one test."""
QUICK = Behaviour(sandbox_seconds=0.02, pull_seconds=0.02, init_seconds=0.05, stop_seconds=0.02)


@dataclass
class GroupEnvironment(BaseEnvironment):
    settings: Settings
    kubelets: Kubelets | None = None
    webhook: WebhookServer | None = None
    nodes: dict[str, str] = field(default_factory=dict)
    """The nodes' own names by those that the test has given them."""

    @override
    def options(self) -> Json:
        return {"groups": self.settings.groups}

    # --- Nodes -------------------------------------------------------------------------------------------------------

    async def add_node(self, name: str, cpu: str, *, labels: Mapping[str, str] | None = None) -> None:
        """A node with so much to give."""
        full = self.nodes[name] = f"{self.namespace}-{name}"
        labels, room = {STAGE: self.namespace, **(labels or {})}, {"cpu": cpu, "memory": "64Gi"}
        if self.kubelets is not None:
            await self.kubelets.add_node(FakeNode(full, 110, labels=labels, allocatable=room))
        else:
            await self.client.create(NODES, node(full, {"pods": "110", **room}, labels))

    # --- What users do -----------------------------------------------------------------------------------------------

    async def create(self, *pods: Json, at_once: int = 16) -> list[Json]:
        """Those pods, in this order, on this stage's nodes; `at_once` 1: each after the other is there."""
        limit = asyncio.Semaphore(at_once)

        async def one(manifest: Json) -> Json:
            async with limit:
                return await self.client.create(PODS, self.here(manifest), self.namespace)

        return list(await asyncio.gather(*map(one, pods)))

    async def apply(self, *objects: Json) -> None:
        """Any objects, by server-side apply; pods and templates of pods are sent to this stage's nodes."""
        for one in objects:
            await server_side_apply(self.client, self.here(one), self.namespace)

    async def delete_pod(self, name: str, *, grace_seconds: int | None = None) -> None:
        with suppress(NotFound):
            await self.client.delete(PODS, name, self.namespace, grace_seconds=grace_seconds)

    async def make_group(
        self, name: str, minimum: int | None, way: Format = Format.SCHEDULER_PLUGINS, **more: Any
    ) -> Json:
        """Its PodGroup; arguments as for manifests.pod_group."""
        made = manifests.pod_group(name, minimum, way, **more)
        return await self.client.create(POD_GROUPS[manifests.API_GROUP[way]], made, self.namespace)

    def here(self, manifest: Json) -> Json:
        """The manifest with its pods bound to this stage's nodes."""
        if "containers" in manifest:  # the spec of a pod
            return {**manifest, "nodeSelector": {STAGE: self.namespace} | manifest.get("nodeSelector", {})}
        return {
            key: self.here(value) if isinstance(value, dict) else self._each(value) for key, value in manifest.items()
        }

    def _each(self, value: Any) -> Any:
        return [self.here(one) if isinstance(one, dict) else one for one in value] if isinstance(value, list) else value

    # --- What there is -----------------------------------------------------------------------------------------------

    async def group(self, name: str, way: Format = Format.SCHEDULER_PLUGINS) -> Json:
        return await self.client.get(POD_GROUPS[manifests.API_GROUP[way]], name, self.namespace)

    async def recorded(self, name: str, way: Format = Format.SCHEDULER_PLUGINS) -> AdmissionRecord:
        """What was decided on it."""
        resource, home = self.home(name, way)
        return record.decode_record(manifests.record_text(await self.client.get(resource, home, self.namespace)))

    def home(self, name: str, way: Format) -> tuple[Resource, str]:
        """The object that its record stands on."""
        if way in manifests.API_GROUP:
            return POD_GROUPS[manifests.API_GROUP[way]], name
        return CONFIGMAPS, names.POD_GROUP_CONFIG_MAP_PREFIX + self.label(name, way)

    def label(self, name: str, way: Format = Format.SCHEDULER_PLUGINS) -> str:
        return group_label(PodGroupKey(flavor=FLAVOR_OF[way], namespace=self.namespace, name=name))

    # --- Waiting -----------------------------------------------------------------------------------------------------

    async def until(self, holds: Callable[[list[Json]], bool], seconds: float = PATIENCE) -> list[Json]:
        return await self.pods.until(holds, seconds)

    async def until_bound(self, count: int, group: str = "", way: Format = Format.SCHEDULER_PLUGINS) -> list[Json]:
        def enough(pods: list[Json]) -> bool:
            ours = manifests.of_group(pods, group, way) if group else pods
            return sum(map(manifests.bound, ours)) >= count

        return await self.until(enough)

    async def until_group(
        self, name: str, holds: Callable[[Json], bool], way: Format = Format.SCHEDULER_PLUGINS
    ) -> Json:
        return await self.until_object(POD_GROUPS[manifests.API_GROUP[way]], name, holds)

    async def until_object(self, resource: Resource, name: str, holds: Callable[[Json], bool]) -> Json:
        async with ObjectView(self.client, resource, self.namespace) as view:
            await view.until(lambda all_: any(one["metadata"]["name"] == name and holds(one) for one in all_), PATIENCE)
            return view.objects[self.namespace, name]

    async def until_record(self, name: str, way: Format, *parts: str) -> AdmissionRecord:
        """Until its record has these parts."""
        found = await self.until_object(
            *self.home(name, way), lambda it: all(part in manifests.record_text(it) for part in parts)
        )
        return record.decode_record(manifests.record_text(found))

    async def until_forgotten(self, name: str, way: Format) -> None:
        """Until no object tells of it any more: of a group without a PodGroup."""
        resource, home = self.home(name, way)
        async with ObjectView(self.client, resource, self.namespace) as view:
            await view.until(lambda all_: home not in [one["metadata"]["name"] for one in all_], PATIENCE)

    async def until_event(self, name: str, reason: str) -> str:
        """The message of our Event on an object of that name."""

        def reported(one: Json) -> bool:
            return (one["involvedObject"].get("name"), one["reason"]) == (name, reason)

        async with ObjectView(self.client, EVENTS, self.namespace) as view:
            found = await view.until(lambda all_: any(map(reported, all_)), PATIENCE)
        return next(str(one["message"]) for one in found if reported(one))

    async def clean_up(self) -> None:
        for full in self.nodes.values():
            with suppress(NotFound):
                await self.client.delete(NODES, full)


@asynccontextmanager
async def group_environment(
    plane: Plane,
    namespace: str,
    *,
    nodes: Mapping[str, str] | None = None,
    settings: Groups | None = None,
    controller: bool = True,
    webhook: bool = True,
    kubelets: bool = False,
    jobsets: bool = False,
) -> AsyncIterator[GroupEnvironment]:
    """The stage. `nodes`: name to cpu of those that are there from the start; others by add_node.

    `jobsets`: JobSet's stand-in and our barrier are there as well, and kubelets with them.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(plane.client("stage"))
        pods = await stack.enter_async_context(ObjectView(client, PODS, namespace))
        stage = GroupEnvironment(plane, namespace, client, pods, Settings(groups=settings or Groups()))
        stack.push_async_callback(stage.clean_up)
        if jobsets:
            stage.kubelets = await _with_jobsets(stage, stack)
        elif kubelets:
            stage.kubelets = await _with_kubelets(stage, stack)
        for name, cpu in (nodes or {}).items():
            await stage.add_node(name, cpu)
        stack.push_async_callback(stage.stop_controllers)
        if webhook:
            served = registered_for_pods(client, namespace, stage.settings)
            stage.webhook = await stack.enter_async_context(served)
        if webhook and jobsets:
            await stack.enter_async_context(registered(client, namespace, stage.settings))
        if controller:
            stage.start_controller()
        yield stage


async def _with_kubelets(stage: GroupEnvironment, stack: AsyncExitStack) -> Kubelets:
    client = await stack.enter_async_context(stage.plane.client("kubelets"))
    kubelets = Kubelets(client, time.time, (), QUICK, namespace=stage.namespace, schedule=False)
    await stack.enter_async_context(in_background(kubelets.run()))
    await kubelets.wait_synced()
    return kubelets


async def _with_jobsets(stage: GroupEnvironment, stack: AsyncExitStack) -> Kubelets:
    await jobset_crd.install(stage.client)
    await crd_patcher.extend_crd(stage.client)
    actors = Actors(stage.plane.access, namespace=stage.namespace, nodes=(), behaviour=QUICK, schedule=False)
    return (await stack.enter_async_context(actors)).kubelets


def node(name: str, allocatable: Mapping[str, str], labels: Mapping[str, str]) -> Json:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": dict(allocatable), "allocatable": dict(allocatable), "conditions": [ready]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}
