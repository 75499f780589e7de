"""Many gangs at once, for whom there is not enough room: each comes up as a whole, and in the end all have been up.

A few groups, so that the suite stays quick; JOBSET_GATE_CROWD=1000 is all of it.
"""

import asyncio
import gc
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import pytest

from jobset_gate import names
from jobset_gate.fake.cluster import SELDOM
from jobset_gate.fake.view import ObjectView
from jobset_gate.kube.resources import PODS
from tests.fakes.podgroups.manifests import Json, bound
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import members

GANGS: Final = int(os.environ.get("JOBSET_GATE_CROWD", "15"))
SIZE: Final = 10
NODES: Final = 10
ROOM: Final = 0.4
"""The part of all pods that has room at a time."""
AT_ONCE: Final = 32
PATIENCE: Final = 90.0 + GANGS * 0.6


class GroupLoad:
    """Takes each gang away once all of it is bound, as if its work were done."""

    def __init__(self, stage: GroupEnvironment) -> None:
        self.done: set[str] = set()
        self._stage = stage
        self._bound: dict[str, set[str]] = defaultdict(set)
        self._whole: asyncio.Queue[str] = asyncio.Queue()
        self._ending = asyncio.Semaphore(AT_ONCE)

    def see(self, pod: Json) -> None:
        """Every version of every pod."""
        if not bound(pod):
            return
        gang = pod["metadata"]["labels"][names.PLUGINS_NAME]
        there = self._bound[gang]
        if pod["metadata"]["name"] not in there:
            there.add(pod["metadata"]["name"])
            if len(there) == SIZE:
                self._whole.put_nowait(gang)

    async def play(self) -> None:
        """Until all have been up."""
        async with asyncio.TaskGroup() as ending:
            while len(self.done) < GANGS:
                gang = await self._whole.get()
                self.done.add(gang)
                ending.create_task(self._end(gang))

    async def _end(self, gang: str) -> None:
        async with self._ending:
            for number in range(SIZE):
                await self._stage.delete_pod(f"{gang}-{number}", grace_seconds=0)


@pytest.fixture
def _seldom_collected() -> Iterator[None]:
    """Webhook, controller and views are one process here: a collection takes seconds, in which the API server would
    wait for the webhook in vain.
    """
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("_seldom_collected")
@pytest.mark.timeout(PATIENCE + 60.0)
async def test_a_crowd_of_gangs_comes_up_one_whole_gang_after_the_other(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage() as stage:
        cpu = round(GANGS * SIZE * ROOM / NODES)
        for number in range(NODES):
            await stage.add_node(f"n{number}", str(cpu), pods=2 * cpu)
        gangs = [f"gang-{number}" for number in range(GANGS)]
        for begin in range(0, GANGS, AT_ONCE):
            await asyncio.gather(*(stage.make_group(gang, SIZE) for gang in gangs[begin : begin + AT_ONCE]))
        alternately = [one for turn in zip(*(members(gang, SIZE) for gang in gangs), strict=True) for one in turn]
        crowd = GroupLoad(stage)
        async with ObjectView(stage.client, PODS, stage.namespace, each=crowd.see), asyncio.timeout(PATIENCE):
            await asyncio.gather(stage.create(*alternately, at_once=AT_ONCE), crowd.play())
        assert crowd.done == set(gangs)
