"""Groups whose pods say more of their nodes than is looked into: they are tried, and nobody waits for them (G3)."""

from __future__ import annotations

import pytest

from jobset_gate.groups.record import How
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import SmallCluster, add_node, keeping, settled
from tests.jobset_gate.groups.test_read_size import wide


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


async def test_a_wide_group_is_opened_for_a_try_and_an_ordinary_one_beside_it_by_its_room(
    cluster: SmallCluster,
) -> None:
    add_node(cluster, cpu="8")
    async with keeping(cluster):
        cluster.gather("wide", "a", minimum=1, spec={"affinity": wide(20_000)})
        await settled()
        cluster.gather("plain", "b", minimum=1)
        await settled()
        tried, proven = cluster.record("wide"), cluster.record("plain")
        assert tried is not None
        assert proven is not None
        assert (tried.how, proven.how) == (How.PROBE, How.FIT)
        assert cluster.open() == ["a", "b"]
