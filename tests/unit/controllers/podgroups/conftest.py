import pytest

from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.podgroups.cluster import InMemoryCluster


@pytest.fixture
async def cluster(clock: VirtualClock) -> InMemoryCluster:
    return InMemoryCluster(clock)
