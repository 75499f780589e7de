"""A group that is used again is held again, whatever its last run has left: real scheduler, Job controller, and
garbage collector (G3).
"""

from jobset_gate import names
from jobset_gate.fake.kubelet import PodMatch
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated, of_group
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.evictions import Json
from tests.flow.podgroups.groups import OffsetClock, touch_group, until_reason

RING = "ring"
EACH = 4
PROBE = Groups(capacity_check=CapacityCheck.PROBE)
NO_ROOM = "needs 4 cpu, 2 free"


async def forward(stage: GroupEnvironment, clock: OffsetClock, seconds: float, name: str = RING) -> None:
    """So much later, and something changes on the group, so that it is looked at by the clock as it is now."""
    clock.forward(seconds)
    await touch_group(stage, name)


async def finish(stage: GroupEnvironment, group: str = RING, way: Format = Format.SCHEDULER_PLUGINS) -> None:
    """All pods of its run that are bound succeed."""
    assert stage.kubelets is not None
    running = [one["metadata"]["name"] for one in of_group(stage.pods.all(), group, way) if manifests.runs(one)]

    def done(pods: list[Json]) -> bool:
        return all(one["status"]["phase"] == "Succeeded" for one in pods if one["metadata"]["name"] in running)

    for name in running:
        stage.kubelets.finish(PodMatch(name=name, namespace=stage.namespace))
    await stage.until(done)


async def until_running(
    stage: GroupEnvironment, count: int, group: str = RING, way: Format = Format.SCHEDULER_PLUGINS
) -> None:
    await stage.until(lambda pods: sum(map(manifests.runs, of_group(pods, group, way))) == count)


async def occupy(stage: GroupEnvironment) -> None:
    """Another user else has half of the room by now."""
    await stage.create(manifests.pod("other-0"), manifests.pod("other-1"))
    await stage.until(lambda pods: sum(bound(one) for one in pods if one["metadata"]["name"].startswith("other")) == 2)


async def test_by_the_next_job_while_those_before_are_kept(make_stage: MakeGroupEnvironment) -> None:
    """As a CronJob keeps them."""
    runs = 2
    async with make_stage(kubelets=True, nodes={"n": "4"}) as stage:
        await stage.make_group(RING, EACH)
        for number in range(runs):
            await stage.apply(manifests.job(f"run-{number}", RING, EACH))
            await until_running(stage, EACH)
            await finish(stage)
        await occupy(stage)
        await stage.apply(manifests.job("next", RING, EACH))
        await until_reason(stage, RING, names.REASON_WAITING_FOR_CAPACITY, NO_ROOM)
        pods = [one for one in stage.pods.all() if one["metadata"]["name"].startswith("next")]
        assert all(map(gated, pods))
        for name in ("other-0", "other-1"):
            await stage.delete_pod(name, grace_seconds=0)
        await until_running(stage, EACH)
        found = await stage.record(RING)
        assert found is not None
        assert (found.generation, found.stage) == (1 + runs, AdmissionState.OPEN)
