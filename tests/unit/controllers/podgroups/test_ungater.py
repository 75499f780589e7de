"""Gates are removed by one patch for each pod, in the order of the admissions, bounded (G3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from controllers.podgroups.ungater import RESEND_SECONDS, Ungater
from jobset_gate import names
from jobset_gate.kube.errors import KubeError, ServerError
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.decode import parse_opened
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.background import in_background
from tests.fakes.podgroups.cluster import InMemoryCluster, run_for
from tests.fakes.podgroups.objects import key, read_pod

ONE, TWO = key("one"), key("two")


@pytest.fixture
def outcomes() -> list[str]:
    return []


@pytest.fixture
async def gates(cluster: InMemoryCluster, clock: VirtualClock, outcomes: list[str]) -> AsyncIterator[Ungater]:
    made = Ungater(cluster.client, clock, concurrency=1, on_outcome=outcomes.append)
    async with in_background(made.run()):
        yield made


def members(cluster: InMemoryCluster, *pods: str) -> list[MemberPod]:
    return [read_pod(cluster.pod(name)) for name in pods]


def patched(cluster: InMemoryCluster) -> list[str]:
    """Names, in order."""
    return [name for verb, kind, name, _ in cluster.writes if (verb, kind) == ("patch", PODS)]


async def test_the_patch_removes_our_gate_alone_and_records_the_generation(
    cluster: InMemoryCluster, gates: Ungater, clock: VirtualClock
) -> None:
    cluster.create_group("one", "a", gates=("other.dev/gate", names.POD_GROUP_GATE))
    gates.set_desired(ONE, members(cluster, "a"), 3)
    await run_for()
    stored = cluster.pod("a")
    assert stored["spec"]["schedulingGates"] == [{"name": "other.dev/gate"}]
    number, at = parse_opened(stored["metadata"]["annotations"][names.POD_GROUP_OPENED])
    assert number == 3
    assert 0 <= clock() - at < 2


async def test_groups_are_ungated_in_the_order_of_their_admission(cluster: InMemoryCluster, gates: Ungater) -> None:
    cluster.create_group("one", *"ab")
    cluster.create_group("two", *"cd")
    gates.set_desired(TWO, members(cluster, *"cd"), 1)
    gates.set_desired(ONE, members(cluster, *"ab"), 1)
    await run_for()
    assert patched(cluster) == ["c", "d", "a", "b"]


async def test_a_pod_is_patched_once_though_the_watch_lags(cluster: InMemoryCluster, gates: Ungater) -> None:
    cluster.create_group("one", "a")
    before = members(cluster, "a")
    for _ in range(3):
        gates.set_desired(ONE, before, 1)
        await run_for(5)
    assert patched(cluster) == ["a"]
    assert gates.in_flight(ONE) == {before[0].uid}
    await run_for(RESEND_SECONDS)
    gates.set_desired(ONE, before, 1)
    await run_for()
    assert patched(cluster) == ["a", "a"], "once more if nothing shows of it for long"
    gates.set_desired(ONE, [], 1)
    assert gates.in_flight(ONE) == frozenset()


@pytest.mark.parametrize("fate", [ServerError(503), "lost"], ids=str)
async def test_what_fails_is_tried_again(
    cluster: InMemoryCluster, gates: Ungater, outcomes: list[str], fate: KubeError | str
) -> None:
    """The reconciler does not ask for it a second time. A lost answer: the second patch changes nothing more."""
    cluster.create_group("one", "a")
    fates: list[KubeError | str] = [fate, fate]
    cluster.fault = lambda *_: fates.pop() if fates else None
    gates.set_desired(ONE, members(cluster, "a"), 1)
    await run_for(10)
    assert cluster.ungated_pods() == ["a"]
    assert outcomes == ["error", "error", "ok"]


async def test_when_it_has_stopped_nothing_is_on_its_way(cluster: InMemoryCluster, gates: Ungater) -> None:
    cluster.create_group("one", *"abc")
    gates.set_desired(ONE, members(cluster, *"abc"), 1)
    begun = asyncio.Event()
    cluster.fault = lambda *_: begun.set()
    await begun.wait()
    await gates.stop_group(ONE)
    there = list(cluster.writes)
    await run_for(60)
    assert cluster.writes == there
    assert len(there) < 3


async def test_marks_go_the_same_way_and_take_no_gate(cluster: InMemoryCluster, gates: Ungater) -> None:
    cluster.create_group("one", "a")
    gates.mark_timed_out(ONE, members(cluster, "a"))
    gates.set_desired(ONE, [], 1)
    await run_for()
    assert cluster.ungated_pods() == []
    assert cluster.pod("a")["metadata"]["annotations"][names.KOORDINATOR_TIMED_OUT] == "true"
