"""Killed at every single write of a roll-back, and of the resuming after it: the successor finishes it (G4)."""

import asyncio
from typing import Any

import pytest

from controllers.podgroups.evictor import Evictor
from jobset_gate.kube import client as kube
from jobset_gate.kube.resources import JOBS
from jobset_gate.podgroups.model import group_label
from tests.fakes.crash_point import CrashPoint
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.evictions import (
    POLICIES,
    ManualEviction,
    add_finalizers,
    all_held,
    indexes,
    job,
    placed,
    remove_finalizers,
    uids,
    unharmed_owner,
)

WRITES = {"no policy": 2, "fails on any code": 4}
"""Suspend and resume; or else each of two pods is released and deleted."""


class CrashingClient(kube.Client):
    """Of a process that ends at some write."""

    def __init__(self, fate: CrashPoint, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._fate = fate

    async def _send(self, call: Any, wanted: Any) -> Any:
        return await self._fate.send(kube.Client._send, self, call, wanted)


async def run_until_crash(rolling: ManualEviction, fate: CrashPoint) -> None:
    """A controller that takes the group back and resumes its owners, until it is killed."""
    async with CrashingClient(fate, rolling.stage.plane.access) as client:

        async def work() -> None:
            await rolling.roll_back(client)
            key, generation = rolling.record.gangs[0]
            await Evictor(client).resume_owners(group_label(key), generation, key.namespace)

        working, dead = asyncio.create_task(work()), asyncio.create_task(fate.dead.wait())
        await asyncio.wait((working, dead), return_when=asyncio.FIRST_COMPLETED)
        for task in (working, dead):
            task.cancel()
        ends = await asyncio.gather(working, dead, return_exceptions=True)
        assert fate.dead.is_set() or ends[0] is None, ends[0]


async def open_one(stage: GroupEnvironment, rolling: ManualEviction, policy: str) -> list[str]:
    """A Job of two pods, whose one runs and one has no place. Their UIDs."""
    await stage.apply(job("work", 2, POLICIES[policy]))
    held = await stage.until(all_held(2))
    await rolling.open(held)
    await stage.until(placed(1, 1, 2))
    await add_finalizers(stage)
    return uids(held)


@pytest.mark.parametrize("lands", [True, False], ids=["write lands", "write lost"])
@pytest.mark.parametrize("policy", WRITES)
async def test_killed_at_any_write_a_successor_takes_the_group_back(
    make_stage: MakeGroupEnvironment, policy: str, lands: bool
) -> None:
    async with make_stage(kubelets=True, nodes={"n": "1"}, controller=False) as stage:
        for last in range(1, WRITES[policy] + 1):
            rolling, fate = ManualEviction(stage, minimum=2), CrashPoint(last_write=last, lands=lands)
            old = await open_one(stage, rolling, policy)
            await run_until_crash(rolling, fate)
            assert fate.dead.is_set(), f"there are only {len(fate.writes)} writes: {fate.writes}"
            # The successor begins where the record stands; closing it is the controller's.
            assert (await rolling.roll_back()).blocked == ()
            await rolling.resume()
            new = await stage.until(all_held(2, but=old))
            assert indexes(new) == ["0", "1"], f"killed at {fate.writes}"
            await unharmed_owner(stage, "work")
            await remove_finalizers(stage)
            await stage.client.delete(JOBS, "work", stage.namespace, propagation="Background")
            await stage.until(lambda pods: not pods)
