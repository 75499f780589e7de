"""Nobody is held up for ever by a group that does not take what it needs: with the real scheduler and API server (G3).

What is written of five minutes is played with the controller's clock.
"""

from typing import Any

from jobset_gate import names
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import Json
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import (
    OffsetClock,
    all_held,
    create_group,
    members,
    until_reason,
)

GPU = "example.com/gpu"


async def alone(stage: GroupEnvironment, name: str, cpu: str, **more: Any) -> Json:
    """A pod of nobody's group, bound by the scheduler."""
    (made,) = await stage.create(manifests.pod(name, cpu=cpu, **more))
    await stage.until(lambda pods: any(it["metadata"]["name"] == name and manifests.bound(it) for it in pods))
    return made


async def test_a_gang_that_queues_for_devices_stops_no_gang_that_wants_none(make_stage: MakeGroupEnvironment) -> None:
    """It holds back its own kind alone, and says for what."""
    clock = OffsetClock()
    async with make_stage(controller=False) as stage:
        await stage.add_node("n", "8", more={GPU: "2"})
        stage.start_controller(clock=clock)
        await alone(stage, "first", "1", requests={GPU: "1"})
        await stage.make_group("gpus", 2)
        await stage.create(*members("gpus", 2, requests={GPU: "1"}))
        await until_reason(stage, "gpus", names.REASON_WAITING_FOR_CAPACITY, f"needs 2 {GPU}, 1 free")
        clock.forward(stage.settings.groups.starvation_seconds)
        await stage.make_group("one", 1)
        await stage.create(*members("one", 1, requests={GPU: "1"}))
        await until_reason(stage, "one", names.REASON_BEHIND_OTHER, f"too long for {GPU} to be passed")
        await create_group(stage, "cpus", 4)
        pods = await stage.until_bound(4, "cpus")
        assert all_held(pods, "gpus")
        assert all_held(pods, "one")
