"""The back-off between two tries of one group: 10 s, doubled each time, 5 minutes at most; and how long is waited for
those that do not come.

What is asserted is what the controller writes down. Its clock is set forward, so nobody waits for it.
"""

from datetime import datetime
from typing import Any

from jobset_gate import names
from jobset_gate.kube.resources import EVENTS
from jobset_gate.podgroups import record
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated, opened
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import OffsetClock, touch_group, until_reason

Json = dict[str, Any]
RING = "ring"
WAIT = 60
PROBE = Groups(capacity_check=CapacityCheck.PROBE)
PAUSES = [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


async def forward(stage: GroupEnvironment, clock: OffsetClock, seconds: float, name: str = RING) -> None:
    """So much later, and something changes on the group, so that it is looked at by the clock as it is now."""
    clock.forward(seconds)
    await touch_group(stage, name)


async def replicas(stage: GroupEnvironment, count: int) -> None:
    """Pods that are made again whenever they are taken back, and that no node has room for."""
    template = manifests.job(RING, RING, count)["spec"]["template"]
    template["metadata"]["labels"]["app"] = RING
    template["spec"] |= {"restartPolicy": "Always"}
    spec = {"replicas": count, "selector": {"matchLabels": {"app": RING}}, "template": template}
    await stage.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": RING}, "spec": spec})


async def until_opened(stage: GroupEnvironment, generation: int) -> None:
    """Until both pods are let through, for the so-many-th time."""
    await stage.until(lambda pods: [opened(one) for one in pods] == [generation] * 2)


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


async def test_it_begins_with_10_seconds_and_doubles_up_to_5_minutes(make_stage: MakeGroupEnvironment) -> None:
    clock = OffsetClock()
    async with make_stage(settings=PROBE, controller=False) as stage:
        stage.start_controller(clock=clock)
        await stage.make_group(RING, 2, wait=WAIT)
        await replicas(stage, 2)
        for times, pause in enumerate(PAUSES, start=1):
            await until_opened(stage, times)
            before = clock()
            await forward(stage, clock, WAIT + 1)
            closed = await until_closed(stage, times)
            assert before + WAIT + 1 + pause <= closed.not_before <= clock() + pause
            assert (closed.generation, closed.why) == (times, "0 of 2 pods were bound within 60s")
            held = await stage.until(lambda pods: len(pods) == 2 and all(map(gated, pods)))
            assert not any(map(opened, held))
            await forward(stage, clock, closed.not_before - clock())


async def test_it_begins_again_once_the_minimum_was_bound(make_stage: MakeGroupEnvironment) -> None:
    clock = OffsetClock()
    async with make_stage(settings=PROBE, controller=False) as stage:
        stage.start_controller(clock=clock)
        await stage.make_group(RING, 2, wait=WAIT)
        await replicas(stage, 2)
        for times in (1, 2):
            await until_opened(stage, times)
            await forward(stage, clock, WAIT + 1)
            closed = await until_closed(stage, times)
            await forward(stage, clock, closed.not_before - clock())
        node = await stage.add_node("n", "2")
        await stage.until_bound(2)
        await stage.until_group(RING, lambda it: '"satisfied":1' in str(it["metadata"]["annotations"]))
        satisfied = await stage.record(RING)
        assert satisfied is not None
        assert (satisfied.generation, satisfied.rolled_back) == (3, 0)
        # All of them end together with their node: a pod that makes them again is a new generation with no past.
        await stage.plane.kubectl("cordon", node)
        for pod in stage.pods.all():
            await stage.delete_pod(pod["metadata"]["name"], grace_seconds=0)
        await until_opened(stage, 4)
        before = clock()
        await forward(stage, clock, WAIT + 1)
        closed = await until_closed(stage, 1)
        assert before + WAIT + 1 + PAUSES[0] <= closed.not_before <= clock() + PAUSES[0]


async def test_a_group_that_gathers_has_no_limit_and_is_spoken_of_after_5_minutes(
    make_stage: MakeGroupEnvironment,
) -> None:
    clock = OffsetClock()
    async with make_stage(nodes={"n": "4"}, controller=False) as stage:
        stage.start_controller(clock=clock)
        await stage.make_group(RING, 2, wait=1)
        first = (await stage.create(manifests.pod("a", RING)))[0]
        await until_reason(stage, RING, names.REASON_GATHERING, "1/2 pods exist")
        await forward(stage, clock, 299)
        await forward(stage, clock, 2)
        reported = await stage.until_event(RING, names.REASON_GATHERING)
        assert reported == "still gathering after 5 minutes: 1/2 pods exist"
        await forward(stage, clock, 3600)
        await stage.create(manifests.pod("b", RING))
        bound = await stage.until_bound(2)
        assert first["metadata"]["uid"] in [one["metadata"]["uid"] for one in bound]
        await stage.until_event(RING, names.REASON_SATISFIED)
        events = (await stage.client.list(EVENTS, stage.namespace, field_selector=f"reason={names.REASON_GATHERING}"))[
            "items"
        ]
        assert len(events) == 1
        assert seconds(events[0]["firstTimestamp"]) >= seconds(first["metadata"]["creationTimestamp"]) + 300
        found = await stage.record(RING)
        assert found is not None
        assert (found.generation, found.rolled_back) == (1, 0)


def seconds(date: str) -> float:
    """Since the epoch, of a date as the API writes it."""
    return datetime.fromisoformat(date).timestamp()
