"""The gate stream of the played barriers, in virtual seconds: requested, answered, torn and cut."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.fake.kubelet import Behaviour, PodFault, PodMatch
from jobset_gate.kube.resources import JOBSETS, PODS
from tests.unit.fake.gate_service import GateService
from tests.unit.fake.gates import gated
from tests.unit.fake.test_kubelet import BARRIER, at_barrier, waiting
from tests.unit.fake.world import FakeClusterStory, label, on_embedded, running, state

REAL = Behaviour()  # the speed of a real kubelet
GANG = "v1/gangs/default/gang/token"


def with_service(
    story: Callable[[FakeClusterStory, GateService], Awaitable[None]], **service: Any
) -> Callable[[FakeClusterStory], Any]:
    """The story with a gate service beside it."""

    async def tell(world: FakeClusterStory) -> None:
        async with GateService(**service) as gate:
            await story(world, gate)

    return tell


async def held(world: FakeClusterStory, gate: GateService, count: int = 1, **settings: Any) -> list[dict[str, Any]]:
    """A gang of so many pods, once all of them hold their request."""
    await world.create(JOBSETS, gated(pods=count, stream=f"{gate.url}/{GANG}", **settings))
    pods = await waiting(world, count)
    await gate.until_held(count)
    return pods


def release(pod: dict[str, Any], epoch: int = 0) -> str:
    return f"release {label(pod, names.JS_UID)} 0 {epoch} AllPodsStarted\n"


@pytest.mark.parametrize("chunked", [False, True], ids=["until closed", "chunked"])
def test_a_release_over_the_stream_needs_no_other_channel(chunked: bool) -> None:
    async def story(world: FakeClusterStory, gate: GateService) -> None:
        pods = await held(world, gate, 2)
        own = f"/{GANG}/{label(pods[0], names.JS_UID)}/0/0/"
        assert sorted(gate.requests) == sorted(own + pod["metadata"]["uid"] for pod in pods)
        answered = world.now
        gate.answer(release(pods[0]))
        after = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        assert world.now - answered < 2
        assert state(after[0], BARRIER)["terminated"]["exitCode"] == 0
        assert len(gate.requests) == 2

    on_embedded(with_service(story, chunked=chunked), behaviour=REAL)


@pytest.mark.parametrize("chunked", [False, True], ids=["until closed", "chunked"])
def test_a_timeout_over_the_stream_carries_its_message(chunked: bool) -> None:
    async def story(world: FakeClusterStory, gate: GateService) -> None:
        pod = (await held(world, gate, restart_policy="Never", backoff_limit=0))[0]
        head = f"timeout {label(pod, names.JS_UID)} 0 0 TimedOut\n"
        gate.answer("\n", head, "timed out after 300s: ", "2/3 pods started\n")
        pods = await world.until(PODS, lambda pods: any("terminated" in state(pod, BARRIER) for pod in pods))
        ended = state(pods[0], BARRIER)["terminated"]
        assert ended["exitCode"] == names.EXIT_TIMED_OUT
        assert ended["message"] == "timed out after 300s: 2/3 pods started"

    on_embedded(with_service(story, chunked=chunked))


@pytest.mark.parametrize(
    "answer",
    [
        "release other 0 1 x\n",
        "release {uid} 1 1 x\n",
        "release {uid} 0 0 x\n",
        "rubbish\n\nrelease {uid} 0 1 x\n",
        "release {uid} 0 1",
    ],
    ids=["another life", "another attempt", "an older epoch", "rubbish first", "torn"],
)
def test_what_is_no_verdict_for_this_barrier_is_requested_again(answer: str) -> None:
    """The pod carries attempt 0 and epoch 1."""

    async def story(world: FakeClusterStory, gate: GateService) -> None:
        pod = (await held(world, gate, epoch=1))[0]
        gate.answer(answer.format(uid=label(pod, names.JS_UID)))
        await gate.until(lambda: len(gate.requests) == 2)
        await gate.until_held(1)
        assert gate.requests[0] == gate.requests[1]
        assert at_barrier(await world.pods(1))
        gate.answer(release(pod, epoch=1))
        await world.until(PODS, lambda pods: len(running(pods)) == 1)

    on_embedded(with_service(story))


def test_a_firewall_breaks_what_is_open_and_lets_nothing_through_until_it_is_cleared() -> None:
    async def story(world: FakeClusterStory, gate: GateService) -> None:
        await held(world, gate, 2)
        wall = world.kubelets.inject_fault(PodFault(PodMatch(index=1), firewalled=True))
        await gate.until_held(1)
        await world.let_pass(300)
        assert (gate.held, len(gate.requests)) == (1, 2)
        world.kubelets.clear_fault(wall)
        await gate.until_held(2)

    on_embedded(with_service(story))
