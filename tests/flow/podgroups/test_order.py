"""Who is next when there is room for one: the highest priority, then the oldest, whatever their names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobset_gate import names
from jobset_gate.kube.resources import Resource
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import all_held, create_group, delete_group, until_reason

PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
LOW, HIGH, PATIENT = "low", "high", "patient"


@asynccontextmanager
async def priorities(stage: GroupEnvironment) -> AsyncIterator[None]:
    """Classes of the cluster, by the stage's own names for them."""
    for name, value in ((LOW, 1), (HIGH, 9), (PATIENT, 8)):
        policy = {"preemptionPolicy": "Never"} if name == PATIENT else {}
        made = {"metadata": {"name": _class(stage, name)}, "value": value, **policy}
        await stage.client.create(PRIORITY_CLASSES, made)
    try:
        yield
    finally:
        for name in (LOW, HIGH, PATIENT):
            await stage.client.delete(PRIORITY_CLASSES, _class(stage, name))


def _class(stage: GroupEnvironment, name: str) -> str:
    return f"{stage.namespace}-{name}"


async def waits(
    stage: GroupEnvironment, name: str, priority: str, reason: str = names.REASON_WAITING_FOR_CAPACITY
) -> None:
    """A gang that has said so; whatever comes next is younger by a second."""
    await create_group(stage, name, 2, priorityClassName=_class(stage, priority))
    await until_reason(stage, name, reason)


async def test_priority_comes_before_age_and_age_before_the_name(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "2"}) as stage, priorities(stage):
        await create_group(stage, "first", 2, priorityClassName=_class(stage, HIGH))
        await stage.until_bound(2, "first")
        await waits(stage, "zebra", LOW)
        await waits(stage, "ant", LOW)
        await waits(stage, "urgent", HIGH)
        before, left = "first", ["urgent", "zebra", "ant"]
        while left:
            comes = left.pop(0)
            await delete_group(stage, before)
            pods = await stage.until_bound(2, comes)
            assert [it for it in left if not all_held(pods, it)] == []
            before = comes
