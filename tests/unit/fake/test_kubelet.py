"""Kubelets and their barriers in virtual time: what they write, and the verdicts that they read."""

from __future__ import annotations

import asyncio
from typing import Any

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.clock import EPOCH
from jobset_gate.fake.kubelet import Behaviour
from jobset_gate.fake.objects import stamp
from jobset_gate.injection import inject
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.settings import Settings
from tests.unit.fake.world import (
    FakeClusterStory,
    condition,
    container_status,
    has,
    label,
    living,
    on_embedded,
    running,
    state,
)

BARRIER = names.BARRIER_CONTAINER


def gated(pods: int) -> dict[str, Any]:
    """A gang as the webhook would have it stored."""
    return inject.injected(manifests.gang(jobs=1, pods=pods), None, settings=Settings()).document


def at_barrier(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [pod for pod in living(pods) if "running" in state(pod, BARRIER)]


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


def test_a_release_arrives_by_annotation_in_a_moment_and_by_config_map_with_the_next_sync() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=2))
        first, _ = await waiting(world, 2)
        verdict = f"release {label(first, names.JS_UID)} 0 0 AllPodsStarted\n"
        written = world.now
        await world.merge(PODS, first["metadata"]["name"], {"metadata": {"annotations": {names.VERDICT: verdict}}})
        await world.until(PODS, lambda pods: len(running(pods)) == 1)
        assert world.now - written < 2
        written = world.now
        gate = {"name": names.config_map_name("gang"), "labels": {names.GATE: names.GATE_VALUE}}
        await world.create(CONFIGMAPS, {"metadata": gate, "data": {names.KEY_VERDICT: verdict}})
        await world.until(PODS, lambda pods: len(running(pods)) == 2, 200)
        assert 60 <= world.now - written < 65

    on_embedded(story, behaviour=Behaviour())
