"""On Kubernetes before 1.36 the Job controller leaves startTime when it suspends a Job: ours clears it (K4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobset_gate import names
from tests.flow.environment import Environment, environment
from tests.flow.test_jobs import JobStage
from tests.plane.kinds import install_all
from tests.plane.places import Binaries
from tests.plane.planes import Real, fresh_name
from tests.plane.real import RealPlane

pytestmark = pytest.mark.real

OLDER = ("MutableSchedulingDirectivesForSuspendedJobs=false", "MutablePodResourcesForSuspendedJobs=false")
"""With these the Job controller behaves as it did."""


@pytest.fixture
async def stage(control_plane_binaries: Binaries) -> AsyncIterator[Environment]:
    running = RealPlane(control_plane_binaries, features=OLDER, prepare=install_all)
    try:
        plane, namespace = Real(await asyncio.to_thread(running.start)), fresh_name()
        await plane.make_namespace(namespace)
        async with environment(plane, namespace) as made:
            yield made
    finally:
        await asyncio.to_thread(running.stop)


async def test_a_suspended_job_can_be_resumed_and_waits_again(stage: Environment) -> None:
    run = JobStage(stage)
    await run.create(pods=2)
    await stage.until_running(2)
    await run.suspend()
    await run.resume()
    await stage.until_running(2)
    await run.until_condition(names.REASON_STARTED, "epoch 1)")
