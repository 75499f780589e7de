"""Liveness of a leader and of its standby: the kubelet is to start again whom that helps, and nobody else."""

import asyncio

import pytest

from controllers.manager import Manager
from jobset_gate.runtime import controller
from tests.fakes.service_process import TIMEOUT, fetch
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import QUICK_LEASE


async def probe(manager: Manager, path: str) -> tuple[int, str]:
    await manager.serving.wait()
    return await fetch(f"{manager.url}{path}")


async def until_ready(manager: Manager) -> None:
    """It leads as soon as pods and Jobs are listed; its readiness waits for JobSets as well."""
    async with asyncio.timeout(TIMEOUT):
        while (await probe(manager, "/readyz"))[0] != 200:
            pass  # each answer is waited for


async def test_a_stuck_leader_fails_and_its_standby_does_not(
    make_stage: MakeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_stage(controller=False, webhook=False) as stage:
        leader = stage.start_controller(**QUICK_LEASE, identity="one", port=0)
        await leader.leading.wait()
        standby = stage.start_controller(**QUICK_LEASE, identity="two", port=0)
        for each in (leader, standby):
            await until_ready(each)
            assert await probe(each, "/healthz") == (200, "ok")

        monkeypatch.setattr(controller, "STUCK_SECONDS", -1.0)  # every pass takes too long
        status, reported = await probe(leader, "/healthz")
        assert status == 500
        assert "at one key" in reported
        assert await probe(standby, "/healthz") == (200, "ok")
        assert await probe(leader, "/readyz") == (200, "ok"), "it is not traffic that should go elsewhere"
