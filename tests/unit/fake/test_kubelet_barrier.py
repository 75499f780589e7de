"""How a verdict reaches the played barriers, and when, in virtual seconds."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.fake.clock import EPOCH
from jobset_gate.fake.kubelet import Behaviour
from jobset_gate.kube.resources import JOBSETS, PODS
from tests.unit.fake.gates import gated
from tests.unit.fake.test_kubelet import BARRIER, at_barrier, waiting
from tests.unit.fake.world import (
    FakeClusterStory,
    label,
    on_embedded,
    running,
    state,
)

REAL = Behaviour()  # the speed of a real kubelet


def uid(pod: dict[str, Any]) -> str:
    return str(label(pod, names.JS_UID))


async def annotate(world: FakeClusterStory, pod: dict[str, Any], notes: dict[str, str]) -> None:
    await world.merge(PODS, pod["metadata"]["name"], {"metadata": {"annotations": notes}})


def test_a_release_in_the_config_map_arrives_with_the_kubelets_next_sync() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=2))
        pods = await waiting(world, 2)
        written = world.now
        await world.verdict("gang", f"release {uid(pods[0])} 0 0 AllPodsStarted\n")
        after = await world.until(PODS, lambda pods: len(running(pods)) == 2, 200)
        assert 60 <= world.now - written < 65
        ended = state(after[0], BARRIER)["terminated"]
        assert ended["exitCode"] == 0
        assert "message" not in ended

    on_embedded(story, behaviour=REAL)


def test_a_release_in_the_annotation_arrives_in_a_moment() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=2))
        first, second = await waiting(world, 2)
        await annotate(world, first, {names.VERDICT: f"release {uid(first)} 0 0 AllPodsStarted\n"})
        written = world.now
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 1)
        assert world.now - written < 2
        assert [pod["metadata"]["name"] for pod in at_barrier(pods)] == [second["metadata"]["name"]]

    on_embedded(story, behaviour=REAL)


@pytest.mark.parametrize(
    "verdict", ["release other 0 0 x\n", "release {uid} 1 0 x\n", "release {uid} 0 0 x\n", "rubbish"]
)
def test_a_release_for_another_generation_opens_nothing(verdict: str) -> None:
    """The pods carry attempt 0 and epoch 1."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=1, epoch=1, limit="300"))
        pod = (await waiting(world, 1))[0]
        await world.verdict("gang", verdict.format(uid=uid(pod)))
        # Only the barrier's own limit ends it: that is the next thing that happens to this pod.
        ended = await world.until(PODS, lambda pods: any(not at_barrier([pod]) for pod in pods), 400)
        assert 300 <= world.now - EPOCH < 305
        assert not running(ended)

    on_embedded(story, behaviour=REAL)


def test_a_timeout_fails_every_barrier_with_the_verdicts_message() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=2, restart_policy="Never", backoff_limit=0))
        pods = await waiting(world, 2)
        text = f"timeout {uid(pods[0])} 0 0 TimedOut\ntimed out after 300s: 2/3 pods started\n"
        for pod in pods:
            await annotate(world, pod, {names.VERDICT: text})
        seen: list[dict[str, Any]] = []

        def failed(pods: list[dict[str, Any]]) -> bool:
            seen[:] = [pod for pod in pods if "terminated" in state(pod, BARRIER)]
            return len(seen) == 2

        await world.until(PODS, failed)
        for pod in seen:
            ended = state(pod, BARRIER)["terminated"]
            assert ended["exitCode"] == names.EXIT_TIMED_OUT
            assert ended["reason"] == "Error"
            assert ended["message"] == "timed out after 300s: 2/3 pods started"
            assert pod["status"]["phase"] == "Failed"
        gone = await world.until_condition(JOBSETS, "gang", "Failed")
        assert "gang-workers-0" in gone["message"]

    on_embedded(story)
