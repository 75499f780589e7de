"""Scheduler and kubelets in virtual time: the status of pods, and the faults that a test can inject."""

from __future__ import annotations

import asyncio
from typing import Any

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.clock import EPOCH
from jobset_gate.fake.kubelet import Behaviour, PodFault, PodMatch
from jobset_gate.fake.objects import stamp
from jobset_gate.kube.resources import JOBSETS, NODES, PODS
from tests.unit.fake.gates import gated, plain
from tests.unit.fake.world import (
    FakeClusterStory,
    condition,
    container_status,
    has,
    living,
    on_embedded,
    running,
    spread,
    state,
)

BARRIER = names.BARRIER_CONTAINER


def at_barrier(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [pod for pod in living(pods) if "running" in state(pod, BARRIER)]


def why(pod: dict[str, Any], container: str) -> str:
    """The reason for which a container waits, "" if it does not."""
    return str(state(pod, container).get("waiting", {}).get("reason", ""))


async def waiting(world: FakeClusterStory, count: int) -> list[dict[str, Any]]:
    """The pods at the barrier, once there are so many."""
    return at_barrier(await world.until(PODS, lambda pods: len(at_barrier(pods)) == count, 4000))


def test_a_pod_at_the_barrier_looks_as_a_kubelet_writes_it() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=1))
        pod = (await waiting(world, 1))[0]
        status = pod["status"]
        assert status["phase"] == "Pending"
        assert has(pod, "PodScheduled")
        assert has(pod, "Initialized", "False")
        assert (condition(pod, "Initialized") or {})["message"] == f"containers with incomplete status: [{BARRIER}]"
        assert has(pod, "Ready", "False")
        barrier = container_status(pod, BARRIER)
        assert barrier["ready"] is False
        assert barrier["started"] is True
        assert barrier["state"] == {"running": {"startedAt": stamp(EPOCH + 1)}}
        assert state(pod, "main") == {"waiting": {"reason": "PodInitializing"}}
        assert status["startTime"] == stamp(EPOCH)
        assert status["podIP"].startswith("10.")

    on_embedded(story, behaviour=Behaviour())


def test_init_containers_run_one_after_another_and_sidecars_stay() -> None:
    sidecar = manifests.container("proxy", restartPolicy="Always")
    fetch = manifests.container("fetch")

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=1, init=(sidecar, fetch)))
        pod = (await waiting(world, 1))[0]
        assert "running" in state(pod, "proxy")
        assert container_status(pod, "proxy")["ready"] is True
        assert state(pod, "fetch")["terminated"]["exitCode"] == 0
        assert container_status(pod, "fetch")["ready"] is True
        proxy, fetch_ended = state(pod, "proxy")["running"], state(pod, "fetch")["terminated"]
        assert proxy["startedAt"] <= fetch_ended["startedAt"] < fetch_ended["finishedAt"]
        assert fetch_ended["finishedAt"] <= state(pod, BARRIER)["running"]["startedAt"]

    on_embedded(story, behaviour=Behaviour(init_seconds=5.0))


def test_an_image_that_cannot_be_pulled_is_backed_off_until_the_fault_is_cleared() -> None:
    async def story(world: FakeClusterStory) -> None:
        stuck = world.kubelets.inject_fault(PodFault(PodMatch(index=1), image_pull_backoff=BARRIER))
        await world.create(JOBSETS, gated(pods=2))
        pods = await world.until(PODS, lambda pods: any(why(pod, BARRIER) == "ImagePullBackOff" for pod in pods))
        assert len(at_barrier(pods)) == 1
        world.kubelets.clear_fault(stuck)
        await waiting(world, 2)

    on_embedded(story)


def test_pods_wait_for_nodes_and_nodes_take_only_so_many() -> None:
    """The condition has the scheduler's reason; a late node takes them."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, plain(pods=5))
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        refused = [condition(pod, "PodScheduled") for pod in pods if not pod["spec"].get("nodeName")]
        assert len(refused) == 3
        for scheduled in refused:
            assert scheduled is not None
            assert scheduled["status"] == "False"
            assert scheduled["reason"] == "Unschedulable"
            assert scheduled["message"] == "0/1 nodes are available: 1 Too many pods."
        assert await world.until(PODS, lambda pods: len(running(pods)) == 4, 100)
        assert EPOCH + 60 <= world.now < EPOCH + 65
        await world.until(PODS, lambda pods: len(running(pods)) == 5, 100)
        assert EPOCH + 120 <= world.now < EPOCH + 125
        assert len(await world.client.list(NODES, type=dict)) > 0

    on_embedded(story, nodes=spread(3, 2, every=60.0))


async def bind(world: FakeClusterStory, pod: dict[str, Any], node: str) -> None:
    meta = {"name": pod["metadata"]["name"], "namespace": world.namespace}
    body = {"metadata": meta, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
    await world.client.post(PODS.path(world.namespace, meta["name"], "binding"), body)


def test_a_vanished_node_takes_its_pods_along_and_they_are_replaced_elsewhere() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, plain(pods=4, backoff_limit=6))
        await world.until(PODS, lambda pods: len(running(pods)) == 4)
        lost = await world.kubelets.vanish_node("node-0")
        assert len(lost) == 2
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 4, 200)
        assert {pod["spec"]["nodeName"] for pod in running(pods)} == {"node-1"}
        assert {pod["metadata"]["name"] for pod in pods}.isdisjoint(name for _, name in lost)

    on_embedded(story, nodes=spread(2))


def test_a_deleted_pod_is_failed_before_it_is_gone() -> None:
    """So that the Job controller can count it: the last thing a kubelet writes."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=1))
        pod = (await waiting(world, 1))[0]
        seen: list[dict[str, Any]] = []

        def gone(pods: list[dict[str, Any]]) -> bool:
            seen.extend(it for it in pods if it["metadata"]["uid"] == pod["metadata"]["uid"])
            return all(it["metadata"]["uid"] != pod["metadata"]["uid"] for it in pods)

        async def delete() -> None:
            await world.client.delete(PODS, pod["metadata"]["name"], world.namespace)

        await asyncio.gather(world.until(PODS, gone), delete())
        last = seen[-1]["status"]
        assert last["phase"] == "Failed"
        assert state(seen[-1], BARRIER)["terminated"]["exitCode"] == 143
        assert state(seen[-1], "main")["terminated"]["reason"] == "ContainerStatusUnknown"

    on_embedded(story)
