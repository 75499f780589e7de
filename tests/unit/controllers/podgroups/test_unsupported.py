"""Groups whose pods say more of their nodes than is looked into: they are tried, and nobody waits for them (G3)."""

from __future__ import annotations

import pytest

from jobset_gate.fake.clock import VirtualClock
from jobset_gate.podgroups.record import AdmissionMode
from tests.fakes.podgroups.cluster import InMemoryCluster, add_node, run_for, running_controller
from tests.unit.podgroups.test_decode_limits import wide


@pytest.fixture
async def cluster(clock: VirtualClock) -> InMemoryCluster:
    return InMemoryCluster(clock)


async def test_a_wide_group_is_opened_for_a_try_and_an_ordinary_one_beside_it_by_its_room(
    cluster: InMemoryCluster,
) -> None:
    add_node(cluster, cpu="8")
    async with running_controller(cluster):
        cluster.create_group("wide", "a", minimum=1, spec={"affinity": wide(20_000)})
        await run_for()
        cluster.create_group("plain", "b", minimum=1)
        await run_for()
        tried, proven = cluster.record("wide"), cluster.record("plain")
        assert tried is not None
        assert proven is not None
        assert (tried.how, proven.how) == (AdmissionMode.PROBE, AdmissionMode.FIT)
        assert cluster.ungated_pods() == ["a", "b"]
