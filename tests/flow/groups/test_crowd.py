"""Many gangs at once, for whom there is not enough room: each comes up as a whole, and in the end all have been up.

A tenth of the size that is meant, so that the suite stays quick; JOBSET_GATE_CROWD=1000 is all of it.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from jobset_gate import names
from tests.flow.groups.conftest import MakeGroupStage
from tests.flow.groups.gangs import members
from tests.flow.groups.manifests import Json, bound
from tests.flow.groups.stage import GroupStage

GANGS: Final = int(os.environ.get("JOBSET_GATE_CROWD", "100"))
SIZE: Final = 10
NODES: Final = 10
ROOM: Final = 0.4
"""The part of all pods that has room at a time."""
AT_ONCE: Final = 32
PATIENCE: Final = 30.0 + GANGS * 0.6


class Crowd:
    """Takes each gang away once all of it is bound, as if its work were done; notes what it has seen."""

    def __init__(self, stage: GroupStage) -> None:
        self.done: list[str] = []
        self._stage = stage

    async def play(self) -> None:
        """Until all have been up."""
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as ending:
            while len(self.done) < GANGS:
                pods = await self._stage.until(lambda pods: bool(self._whole(pods)), PATIENCE)
                for gang in self._whole(pods):
                    self.done.append(gang)
                    ending.create_task(self._end(gang))

    def _whole(self, pods: Sequence[Json]) -> list[str]:
        return [gang for gang, its in by_gang(pods).items() if gang not in self.done and sum(map(bound, its)) == SIZE]

    async def _end(self, gang: str) -> None:
        for number in range(SIZE):
            await self._stage.delete_pod(f"{gang}-{number}", grace_seconds=0)


def by_gang(pods: Sequence[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    for one in pods:
        found[one["metadata"]["labels"][names.PLUGINS_NAME]].append(one)
    return found


async def test_a_crowd_of_gangs_comes_up_one_whole_gang_after_the_other(make_stage: MakeGroupStage) -> None:
    async with make_stage() as stage:
        cpu = round(GANGS * SIZE * ROOM / NODES)
        for number in range(NODES):
            await stage.add_node(f"n{number}", str(cpu), pods=2 * cpu)
        gangs = [f"gang-{number}" for number in range(GANGS)]
        for begin in range(0, GANGS, AT_ONCE):
            await asyncio.gather(*(stage.make_group(gang, SIZE) for gang in gangs[begin : begin + AT_ONCE]))
        alternately = zip(*(members(gang, SIZE) for gang in gangs), strict=True)
        crowd = Crowd(stage)
        await asyncio.gather(
            stage.create(*(one for turn in alternately for one in turn), at_once=AT_ONCE), crowd.play()
        )
        assert sorted(crowd.done) == sorted(gangs)
