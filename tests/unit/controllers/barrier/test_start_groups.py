"""A start group, pass by pass: its attempt, its ConfigMap, and what is written where (K5 to K7)."""

from __future__ import annotations

import pytest

from jobset_gate import names
from jobset_gate.fake.clock import VirtualClock
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.start_group_controller import OWNER, RUNS, StartGroupController, member


@pytest.fixture
def ring(api: Api, memory: MemoryClient, clock: VirtualClock) -> StartGroupController:
    return StartGroupController(api, memory, clock)


async def test_the_last_pod_opens_the_gate(ring: StartGroupController) -> None:
    ring.show(member("ring-0", RUNS), member("ring-1"))
    await ring.reconcile()
    assert (ring.verdict, ring.attempt, ring.members) == (None, 0, {"ring-0", "ring-1"})
    assert ring.state[0] == "False"
    assert ring.state[1].startswith("WaitingForPods: 1/2 pods started; missing: 1 pod: ")
    ring.show(member("ring-1", RUNS))
    await ring.reconcile()
    assert ring.verdict is not None
    assert ring.verdict.cause == names.REASON_STARTED
    assert ring.state == ("True", f"AllPodsStarted: all 2 pods started (uid {OWNER}, attempt 0, epoch 0)")
