"""The played controllers on one API server: in virtual time on the embedded one, in real time on the real one."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS, Resource
from jobset_gate_demo.fake.clock import run_virtual
from jobset_gate_demo.fake.cluster import Actors, embedded_cluster
from jobset_gate_demo.fake.kubelet import Behaviour, FakeNode, Kubelets
from tests.fakes.object_view import ObjectView
from tests.plane.planes import Real, fresh_name

Json = dict[str, Any]
QUICK = Behaviour(
    configmap_sync=1.0, sandbox_seconds=0.05, pull_seconds=0.05, init_seconds=0.05, barrier_poll=0.02, stop_seconds=0.05
)


@dataclass(frozen=True, slots=True)
class FakeClusterStory:
    """What a test works with. `namespace` is its own."""

    actors: Actors
    namespace: str

    @property
    def client(self) -> Client:
        return self.actors.client

    @property
    def kubelets(self) -> Kubelets:
        return self.actors.kubelets

    async def create(self, resource: Resource, body: Mapping[str, Any]) -> Json:
        own = {**body, "metadata": {**body["metadata"], "namespace": self.namespace}}
        return await self.client.create(resource, own)

    async def until(self, resource: Resource, holds: Callable[[list[Json]], bool]) -> list[Json]:
        """The namespace's objects of that kind, once `holds` is true of them."""
        async with ObjectView(self.client, resource, self.namespace) as view:
            await self.actors.until(view.until(holds, 45.0))
            return view.all()

    async def until_one(self, resource: Resource, name: str, holds: Callable[[Json], bool]) -> Json:
        """One object, once it is there and `holds` is true of it."""

        def found(objects: list[Json]) -> bool:
            return any(item["metadata"]["name"] == name and holds(item) for item in objects)

        objects = await self.until(resource, found)
        return next(item for item in objects if item["metadata"]["name"] == name)

    async def until_condition(self, resource: Resource, name: str, kind: str, status: str = "True") -> Json:
        """That condition of an object, once it has that status."""
        seen = await self.until_one(resource, name, lambda item: condition(item, kind, status) is not None)
        return condition(seen, kind, status) or {}

    async def pods(self, count: int) -> list[Json]:
        """All pods that are alive, once there are so many."""
        alive = await self.until(PODS, lambda pods: len(living(pods)) == count)
        return living(alive)


Story = Callable[[FakeClusterStory], Coroutine[Any, Any, None]]
Run = Callable[[Story], None]


def on_embedded(story: Story) -> None:
    """In virtual time."""

    async def tell() -> None:
        async with embedded_cluster(behaviour=QUICK) as actors:
            await story(FakeClusterStory(actors, "default"))

    run_virtual(tell())


def on_real(plane: Real, story: Story) -> None:
    """In real time, on the session's control plane."""

    async def tell() -> None:
        namespace = fresh_name()
        await plane.make_namespace(namespace)
        nodes = [FakeNode(f"{namespace}-node", pods=1000)]
        try:
            async with Actors(plane.access, behaviour=QUICK, nodes=nodes, namespace=namespace) as actors:
                await story(FakeClusterStory(actors, namespace))
        finally:
            await plane.drop_namespace(namespace)

    asyncio.run(tell())


def condition(item: Json, kind: str, status: str) -> Json | None:
    """That condition, if it has that status."""
    found = item.get("status", {}).get("conditions", ())
    return next((it for it in found if (it["type"], it["status"]) == (kind, status)), None)


def living(pods: list[Json]) -> list[Json]:
    there = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"])
    return [pod for pod in there if pod["status"].get("phase") not in ("Failed", "Succeeded")]
