"""Gates are removed by one patch for each pod, in the order of the decisions, a few at a time (G3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from controllers.groups.gates import ECHO_SECONDS, Gates
from jobset_gate import names
from jobset_gate.groups.read import opened
from jobset_gate.groups.seen import MemberSeen
from jobset_gate.kube.errors import Conflict, Invalid, KubeError, NotFound, ServerError, Throttled
from jobset_gate.kube.resources import PODS
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import SmallCluster, settled
from tests.jobset_gate.groups.objects import key, read_pod

ONE, TWO = key("one"), key("two")


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


@pytest.fixture
def outcomes() -> list[str]:
    return []


@pytest.fixture
async def gates(cluster: SmallCluster, clock: VirtualClock, outcomes: list[str]) -> AsyncIterator[Gates]:
    made = Gates(cluster.client, clock, concurrency=1, sent=outcomes.append)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def members(cluster: SmallCluster, *pods: str) -> list[MemberSeen]:
    return [read_pod(cluster.pod(name)) for name in pods]


def patched(cluster: SmallCluster) -> list[str]:
    """Names, in order."""
    return [name for verb, kind, name, _ in cluster.writes if (verb, kind) == ("patch", PODS)]


async def test_the_patch_takes_our_gate_alone_and_says_in_which_generation(
    cluster: SmallCluster, gates: Gates, clock: VirtualClock
) -> None:
    cluster.gather("one", "a", gates=("other.dev/gate", names.GANG_GATE))
    gates.want(ONE, members(cluster, "a"), 3)
    await settled()
    stored = cluster.pod("a")
    assert stored["spec"]["schedulingGates"] == [{"name": "other.dev/gate"}]
    number, at = opened(stored["metadata"]["annotations"][names.GANG_OPENED])
    assert number == 3
    assert 0 <= clock() - at < 2


async def test_those_decided_first_go_first(cluster: SmallCluster, gates: Gates) -> None:
    cluster.gather("one", *"ab")
    cluster.gather("two", *"cd")
    gates.want(TWO, members(cluster, *"cd"), 1)
    gates.want(ONE, members(cluster, *"ab"), 1)
    await settled()
    assert patched(cluster) == ["c", "d", "a", "b"]


async def test_a_pod_is_patched_once_though_the_watch_lags(cluster: SmallCluster, gates: Gates) -> None:
    cluster.gather("one", "a")
    before = members(cluster, "a")
    for _ in range(3):
        gates.want(ONE, before, 1)
        await settled(5)
    assert patched(cluster) == ["a"]
    assert gates.under_way(ONE) == {before[0].uid}
    gates.want(ONE, [], 1)
    assert gates.under_way(ONE) == frozenset()


async def test_but_once_more_if_nothing_shows_of_it_for_long(cluster: SmallCluster, gates: Gates) -> None:
    cluster.gather("one", "a")
    before = members(cluster, "a")
    gates.want(ONE, before, 1)
    await settled(ECHO_SECONDS + 5)
    gates.want(ONE, before, 1)
    await settled()
    assert patched(cluster) == ["a", "a"]


@pytest.mark.parametrize("error", [ServerError(503), Throttled(429)])
async def test_what_is_refused_is_tried_again(
    cluster: SmallCluster, gates: Gates, outcomes: list[str], error: KubeError
) -> None:
    cluster.gather("one", "a")
    fates: list[KubeError | None] = [error, error]
    cluster.fate = lambda *_: fates.pop() if fates else None
    gates.want(ONE, members(cluster, "a"), 1)
    await settled(10)
    assert cluster.open() == ["a"]
    assert outcomes == ["error", "error", "ok"]


async def test_a_patch_whose_answer_was_lost_is_sent_again_and_changes_nothing_more(
    cluster: SmallCluster, gates: Gates
) -> None:
    cluster.gather("one", "a")
    fates: list[str | None] = ["lost"]
    cluster.fate = lambda *_: fates.pop() if fates else None
    gates.want(ONE, members(cluster, "a"), 1)
    await settled(10)
    assert cluster.open() == ["a"]


async def test_a_pod_that_is_gone_or_another_by_now_is_left_alone(
    cluster: SmallCluster, gates: Gates, outcomes: list[str]
) -> None:
    cluster.gather("one", *"ab")
    old = members(cluster, *"ab")
    cluster.remove(PODS, "a")
    cluster.remove(PODS, "b")
    cluster.gather("one", "b")
    gates.want(ONE, old, 1)
    await settled(60)
    assert outcomes == ["gone", "gone"]
    assert cluster.open() == []


async def test_when_it_has_stopped_nothing_is_on_its_way(cluster: SmallCluster, gates: Gates) -> None:
    cluster.gather("one", *"abc")
    gates.want(ONE, members(cluster, *"abc"), 1)
    begun = asyncio.Event()
    cluster.fate = lambda *_: begun.set()
    await begun.wait()
    await gates.stop(ONE)
    there = list(cluster.writes)
    await settled(60)
    assert cluster.writes == there
    assert len(there) < 3


async def test_stopping_waits_for_a_patch_that_is_on_its_way(cluster: SmallCluster, gates: Gates) -> None:
    order: list[str] = []
    cluster.gather("one", "a")

    def slow(*_: object) -> None:
        order.append("patched")

    cluster.fate = slow
    gates.want(ONE, members(cluster, "a"), 1)
    await asyncio.sleep(0)  # the worker has it
    await gates.stop(ONE)
    order.append("stopped")
    await settled()
    assert order in (["patched", "stopped"], ["stopped"])


async def test_marks_go_the_same_way_and_take_no_gate(cluster: SmallCluster, gates: Gates) -> None:
    cluster.gather("one", "a")
    gates.mark(ONE, members(cluster, "a"))
    await settled()
    assert cluster.open() == []
    assert cluster.pod("a")["metadata"]["annotations"][names.KOORDINATOR_TIMED_OUT] == "true"


async def test_who_is_gone_is_not_asked_for_again(cluster: SmallCluster, gates: Gates, outcomes: list[str]) -> None:
    cluster.gather("one", "a")
    cluster.fate = lambda *_: NotFound(404)
    gates.want(ONE, members(cluster, "a"), 1)
    await settled(60)
    assert outcomes == ["gone"]


CHANGED = Conflict(409, "Conflict", "the object has been modified")
UNEDITABLE = Invalid(422, details={"causes": [{"field": "metadata.uid"}]})


@pytest.mark.parametrize("error", [CHANGED, UNEDITABLE], ids=str)
async def test_a_conflict_is_no_word_that_the_pod_is_gone(
    cluster: SmallCluster, gates: Gates, outcomes: list[str], error: KubeError
) -> None:
    """Somebody else wrote to the pod at the same time; nobody asks for it a second time."""
    cluster.gather("one", "a")
    fates: list[KubeError] = [error]
    cluster.fate = lambda *_: fates.pop() if fates else None
    gates.want(ONE, members(cluster, "a"), 1)
    await settled(10)
    assert outcomes == ["error", "ok"]
    assert cluster.open() == ["a"]


async def test_after_a_conflict_a_namesake_keeps_its_gate(
    cluster: SmallCluster, gates: Gates, outcomes: list[str]
) -> None:
    cluster.gather("one", "a")
    old = members(cluster, "a")
    cluster.gather("one", "a")  # made anew
    cluster.fate = lambda *_: CHANGED
    gates.want(ONE, old, 1)
    await settled(60)
    assert outcomes == ["gone"]
