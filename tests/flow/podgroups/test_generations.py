"""A group that is used again is held again, whatever its last run has left: real scheduler, Job controller, and
garbage collector (G3).
"""

from jobset_gate import names
from jobset_gate.fake.kubelet import PodMatch
from jobset_gate.podgroups import record
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated, of_group
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.evictions import Json, add_finalizers, remove_finalizers
from tests.flow.podgroups.groups import OffsetClock, touch_group, until_reason, until_satisfied

RING = "ring"
EACH = 4
PROBE = Groups(capacity_check=CapacityCheck.PROBE)
NO_ROOM = "needs 4 cpu, 2 free"


async def forward(stage: GroupEnvironment, clock: OffsetClock, seconds: float, name: str = RING) -> None:
    """So much later, and something changes on the group, so that it is looked at by the clock as it is now."""
    clock.forward(seconds)
    await touch_group(stage, name)


async def until_closed(stage: GroupEnvironment, times: int) -> AdmissionRecord:
    """The decision, once the group was taken back so often."""

    def closed(group: Json) -> bool:
        text = (group["metadata"].get("annotations") or {}).get(names.POD_GROUP_RECORD)
        stands = None if text is None else record.decode_record(text)
        return stands is not None and (stands.stage, stands.rolled_back) == (AdmissionState.CLOSED, times)

    await stage.until_group(RING, closed)
    found = await stage.record(RING)
    assert found is not None
    return found


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


async def remove(stage: GroupEnvironment, job: str) -> None:
    """As `kubectl delete` does it: the Job is gone at once, and its pods later."""
    await stage.plane.kubectl("delete", "job", job, "-n", stage.namespace, "--cascade=background", "--wait=false")


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


async def test_by_a_job_that_is_deleted_in_the_background_and_made_again(make_stage: MakeGroupEnvironment) -> None:
    """The pods of the old one are there for a while, and at first nothing on them tells that they will go."""
    async with make_stage(kubelets=True, nodes={"n": "4"}) as stage:
        work = manifests.job("work", RING, EACH)
        await stage.make_group(RING, EACH)
        await stage.apply(work)
        await until_running(stage, EACH)
        await finish(stage)
        await occupy(stage)
        await add_finalizers(stage)
        old = {one["metadata"]["uid"] for one in of_group(stage.pods.all(), RING)}
        await remove(stage, "work")
        await stage.apply(work)
        await until_reason(stage, RING, names.REASON_WAITING_FOR_CAPACITY, NO_ROOM)
        new = [one for one in of_group(stage.pods.all(), RING) if one["metadata"]["uid"] not in old]
        assert [gated(one) for one in new] == [True] * EACH
        await remove_finalizers(stage)
        for name in ("other-0", "other-1"):
            await stage.delete_pod(name, grace_seconds=0)
        await until_running(stage, EACH)


async def test_a_job_with_a_succeeded_pod_is_placed_when_the_others_come_again(
    make_stage: MakeGroupEnvironment,
) -> None:
    """What is gathered is what is bound in the end, or the group would be opened and taken back again and again."""
    clock = OffsetClock()
    async with make_stage(kubelets=True, nodes={"n": "3"}, settings=PROBE, controller=False) as stage:
        stage.start_controller(clock=clock)
        await stage.make_group(RING, EACH, wait=60)
        await stage.apply(manifests.job("work", RING, EACH))
        await until_running(stage, EACH - 1)
        await stage.plane.kubectl("cordon", stage.nodes["n"])
        assert stage.kubelets is not None
        one = next(it for it in stage.pods.all() if manifests.runs(it))["metadata"]["name"]
        stage.kubelets.finish(PodMatch(name=one, namespace=stage.namespace))
        await stage.until(lambda pods: any(it["status"].get("phase") == "Succeeded" for it in pods))
        await forward(stage, clock, 61)
        closed = await until_closed(stage, 1)
        await stage.until(lambda pods: sum(map(gated, pods)) == EACH - 1)
        await stage.add_node("m", "10")
        await forward(stage, clock, closed.not_before - clock())
        await until_running(stage, EACH - 1)
        await until_satisfied(stage, RING)
        await forward(stage, clock, 3600)
        await until_reason(stage, RING, names.REASON_RUNNING, "have succeeded")
        found = await stage.record(RING)
        assert found is not None
        assert (found.generation, found.stage, found.rolled_back) == (2, AdmissionState.OPEN, 0)
