"""The played scheduler works pod by pod as kube-scheduler does: most stories run on both."""

from typing import Any

from jobset_gate.fake.kubelet import FakeNode
from jobset_gate.kube.resources import PODS
from tests.unit.fake.world import FakeClusterStory, Run, condition, running


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    asked = {"cpu": cpu}
    main = {"name": "main", "image": "busybox:1.37", "resources": {"requests": asked, "limits": asked}}
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [main], **spec}}


def node(name: str, cpu: str = "4") -> FakeNode:
    return FakeNode(name, allocatable={"cpu": cpu})


async def unschedulable_message(world: FakeClusterStory, name: str) -> str:
    """Why the pod waits, once the scheduler has reported it."""

    def said(pod: dict[str, Any]) -> bool:
        found = condition(pod, "PodScheduled")
        return found is not None and found["status"] == "False"

    return str((condition(await world.until_one(PODS, name, said), "PodScheduled") or {})["message"])


async def until_runs(world: FakeClusterStory, *names: str) -> list[dict[str, Any]]:
    def all_run(pods: list[dict[str, Any]]) -> bool:
        return {it["metadata"]["name"] for it in running(pods)} == set(names)

    return await world.until(PODS, all_run)


def test_a_node_is_full_when_its_pods_request_all_it_has(scheduled: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        for name in ("a", "b", "c"):
            await world.create(PODS, pod(name, cpu="1500m"))
        assert (await unschedulable_message(world, "c")).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await until_runs(world, "a", "b")
        await world.client.delete(PODS, "a", world.namespace)
        await until_runs(world, "b", "c")

    scheduled(story, nodes=[node("only", cpu="3")])


def test_pods_that_others_have_bound_count(scheduled: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(PODS, pod("theirs", cpu="3", schedulerName="volcano"))
        meta = {"name": "theirs", "namespace": world.namespace}
        body = {
            "metadata": meta,
            "target": {"apiVersion": "v1", "kind": "Node", "name": next(iter(world.kubelets.nodes))},
        }
        await world.client.post(PODS.path(world.namespace, "theirs", "binding"), body)
        await until_runs(world, "theirs")
        await world.create(PODS, pod("ours", cpu="2"))
        assert (await unschedulable_message(world, "ours")).startswith("0/1 nodes are available: 1 Insufficient cpu.")

    scheduled(story, nodes=[node("only")])
