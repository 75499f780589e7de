"""When a group is opened, on a real API server with a real scheduler: gathered, with room, and in its turn (G3)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import NODES, POD_GROUPS, PODS, Resource
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.podgroups.record import AdmissionMode, AdmissionState
from jobset_gate.settings import Groups
from jobset_gate_demo.fake import manifests as jobsets
from tests.fakes.object_view import unschedulable
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated, of_group
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment, Json
from tests.flow.podgroups.groups import all_held, bound_count, create_group, members, until_reason, until_satisfied


@pytest.mark.parametrize("check", [CapacityCheck.OFF, CapacityCheck.FIT])
async def test_a_group_is_opened_when_its_minimum_is_there_and_later_members_pass(
    make_stage: MakeGroupEnvironment, check: CapacityCheck
) -> None:
    async with make_stage(nodes={"n": "8"}, settings=Groups(capacity_check=check)) as stage:
        await stage.make_group("ring", 3)
        await stage.create(manifests.pod("a", "ring"), manifests.pod("b", "ring"))
        await stage.until_group("ring", lambda it: "2/3" in str(it))
        assert manifests.record_text(await stage.group("ring")) == ""
        await stage.create(manifests.pod("c", "ring"))
        await stage.until_bound(3)
        found = await stage.recorded("ring")
        wanted = AdmissionMode.OFF if check is CapacityCheck.OFF else AdmissionMode.FIT
        assert (found.generation, found.stage, found.how, found.minimum) == (1, AdmissionState.OPEN, wanted, 3)
        await stage.create(manifests.pod("late", "ring"))
        pods = await stage.until_bound(4)
        assert set(map(manifests.opened, pods)) == {1}


PROBE = Groups(capacity_check=CapacityCheck.PROBE, wait_seconds=3600)
"""No limit passes, however slow the machine is."""


async def until_reported_unschedulable(stage: GroupEnvironment, name: str) -> None:
    """Until the scheduler has looked at a pod of the gang in vain, as an autoscaler waits for."""
    await stage.until(lambda pods: any(map(unschedulable, of_group(pods, name))))


async def test_the_first_in_order_shows_its_pods_to_the_autoscaler_one_gang_at_a_time(
    make_stage: MakeGroupEnvironment,
) -> None:
    """Also under another leader."""
    async with make_stage(nodes={"n": "1"}, settings=PROBE) as stage:
        await create_group(stage, "first", 3)
        await until_reported_unschedulable(stage, "first")
        await create_group(stage, "second", 3)
        await until_reason(stage, "second", names.REASON_BEHIND_OTHER, f"{stage.namespace}/first")
        assert (await stage.recorded("first")).how is AdmissionMode.PROBE
        await stage.stop_controller()
        stage.start_controller()
        await create_group(stage, "third", 3)  # the next leader has looked at all of them when it says this:
        await until_reason(stage, "third", names.REASON_BEHIND_OTHER)
        assert all_held(stage.pods.all(), "second")
        assert all_held(stage.pods.all(), "third")
        await stage.add_node("m", "2")
        await stage.until_bound(3, "first")
        await until_reported_unschedulable(stage, "second")
        await stage.add_node("o", "3")
        await stage.until_bound(3, "second")


GROUPS = Format.KOORDINATOR_POD_GROUP


async def say(stage: GroupEnvironment, gang: str, minimum: int, *gangs: str) -> None:
    """The PodGroup of a gang whose GangGroup is that list of `namespace/name`."""
    listed = {names.KOORDINATOR_GANGS: json.dumps(gangs)} if gangs else {}
    made = manifests.pod_group(gang, minimum, GROUPS, annotations=listed)
    await stage.client.create(POD_GROUPS[names.SIGS_GROUP], made, stage.namespace)


async def join(stage: GroupEnvironment, gang: str, count: int, *, first: int = 0) -> None:
    """So many of its pods."""
    for one in members(gang, count, GROUPS, first=first):
        await stage.client.create(PODS, stage.here(one), stage.namespace)


async def test_all_gangs_open_in_one_decision_once_each_has_gathered(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "4"}) as stage:
        both = [f"{stage.namespace}/ps", f"{stage.namespace}/worker"]
        await say(stage, "ps", 1, *both)
        await join(stage, "ps", 1)
        await until_reason(stage, "ps", names.REASON_WAITING_FOR_GANG_GROUP, "worker: not there yet", GROUPS)
        await say(stage, "worker", 3, *both)
        await join(stage, "worker", 2)
        await until_reason(stage, "worker", names.REASON_GATHERING, "2/3", GROUPS)
        await until_reason(stage, "ps", names.REASON_WAITING_FOR_GANG_GROUP, "worker", GROUPS)
        assert all(map(gated, stage.pods.all()))
        await join(stage, "worker", 1, first=2)
        await stage.until(lambda pods: [bound_count(pods, it, GROUPS) for it in ("ps", "worker")] == [1, 3])
        found = await stage.recorded("ps", GROUPS)
        assert [(key.name, generation) for key, generation in found.gangs] == [("ps", 1), ("worker", 1)]


MINIMUM = 3
LATER = 60.0
"""Seconds: more than a group has until its owners are read."""


def stateful_set(name: str, policy: str) -> Json:
    ours = manifests.job(name, name, MINIMUM, Format.ALIBABA, MINIMUM)
    return manifests.owner("StatefulSet", ours, podManagementPolicy=policy)


def jobset(name: str, **spec: Json) -> Json:
    """A driver and two workers in one gang, the workers after the driver."""
    meta = manifests.membership_metadata(name, Format.ALIBABA, MINIMUM)
    parts = [
        jobsets.replicated_job(part, parallelism=count, pod=manifests.template_spec(), pod_metadata=meta)
        for part, count in (("driver", 1), ("workers", 2))
    ]
    if not spec:
        parts[1]["dependsOn"] = [{"name": "driver", "status": "Complete"}]
    made = jobsets.jobset(name, replicated_jobs=parts)
    made["spec"] |= spec
    del made["metadata"]["namespace"]
    return made


async def test_who_makes_too_few_pods_while_they_are_held_is_named(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "32"}, jobsets=True, controller=False) as stage:
        await stage.apply(
            stateful_set("ordered", "OrderedReady"),
            manifests.job("narrow", "narrow", 2, Format.ALIBABA, MINIMUM),
            jobset("depends"),
            jobset("inorder", startupPolicy={"startupPolicyOrder": "InOrder"}),
            stateful_set("parallel", "Parallel"),
        )
        await stage.until(lambda pods: len(pods) == 1 + 2 + 1 + 1 + MINIMUM)
        stage.clock.forward(LATER)
        stage.start_controller()
        for pod, reported in (
            (
                "ordered-0",
                "needs 3 pods at once, 1 can be there: StatefulSet ordered makes its pods one after the other",
            ),
            ("narrow-0", "needs 3 pods at once, 2 can be there: Job narrow makes 2"),
            ("depends-driver-0-0", "JobSet depends (workers) waits for driver"),
            ("inorder-driver-0-0", "JobSet inorder (workers) waits for driver"),
        ):
            full = next(one["metadata"]["name"] for one in stage.pods.all() if one["metadata"]["name"].startswith(pod))
            assert reported in await stage.until_event(full, names.REASON_CANNOT_GATHER)
        pods = await stage.until_bound(MINIMUM, "parallel", Format.ALIBABA)
        others = [one for one in pods if not one["metadata"]["name"].startswith("parallel")]
        assert all(map(gated, others))


FIVE_NODES = {f"n{number}": "2" for number in range(5)}
ALL = 10
"""Processors of all nodes, one for each pod."""
EACH = 6
"""Pods of each gang, and its minimum."""


def whole(pods: list[Json]) -> list[str]:
    return [name for name in "ab" if bound_count(pods, name) >= EACH]


class UngateChecker:
    """Sees whether a pod is ungated while its gang has no room."""

    def __init__(self) -> None:
        self.breaches: list[str] = []

    def look(self, pods: list[Json]) -> bool:
        for name, other in ("ab", "ba"):
            ungated = sum(not manifests.gated(it) and not manifests.bound(it) for it in of_group(pods, name))
            if ungated and bound_count(pods, other) > ALL - EACH:
                self.breaches.append(f"{ungated} of {name} while {bound_count(pods, other)} of {other} are bound")
        return False


async def test_with_us_one_is_bound_after_the_other(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes=FIVE_NODES) as stage:
        for name in "ab":
            await stage.make_group(name, EACH)
        checker = UngateChecker()
        looking = asyncio.create_task(stage.pods.until(checker.look, 3600))
        in_turn = (manifests.pod(f"{name}{number}", name) for number in range(EACH) for name in "ab")
        await stage.create(*in_turn, at_once=1)
        (first,) = whole(await stage.until(lambda pods: bool(whole(pods))))
        second = "b" if first == "a" else "a"
        await stage.until_group(second, lambda it: f"needs {EACH} cpu, {ALL - EACH} free" in str(it))
        for pod in of_group(stage.pods.all(), first):
            await stage.delete_pod(pod["metadata"]["name"], grace_seconds=0)
        await stage.until(lambda pods: whole(pods) == [second])
        looking.cancel()
        assert not checker.breaches


PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
LOW, HIGH = "low", "high"


@asynccontextmanager
async def priorities(stage: GroupEnvironment) -> AsyncIterator[None]:
    """Classes of the cluster, by the stage's own names for them."""
    for name, value in ((LOW, 1), (HIGH, 9)):
        made = {"metadata": {"name": _class(stage, name)}, "value": value}
        await stage.client.create(PRIORITY_CLASSES, made)
    try:
        yield
    finally:
        for name in (LOW, HIGH):
            await stage.client.delete(PRIORITY_CLASSES, _class(stage, name))


def _class(stage: GroupEnvironment, name: str) -> str:
    return f"{stage.namespace}-{name}"


async def test_it_ends_the_try_of_a_lower_one_that_is_in_its_way(make_stage: MakeGroupEnvironment) -> None:
    """The lower one's own rule keeps it from ever being whole, and its limit is half an hour."""
    async with make_stage(nodes={"n": "4"}, kubelets=True) as stage, priorities(stage):
        term = {"labelSelector": {"matchLabels": {names.PLUGINS_NAME: "low"}}, "topologyKey": "kubernetes.io/hostname"}
        alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        await stage.make_group("low", 2, wait=1800)
        template = {"affinity": alone, "priorityClassName": _class(stage, LOW)}
        await stage.apply(stage.here(manifests.job("low", "low", 2, template=template)))
        await stage.until_bound(1, "low")
        await create_group(stage, "high", 4, priorityClassName=_class(stage, HIGH))
        stage.clock.forward(10)
        await stage.until_bound(4, "high")
        assert (await stage.recorded("low")).why == "1 of 2 pods were bound when a group of higher priority came"


async def test_while_its_victims_end_its_limit_does_not_run(make_stage: MakeGroupEnvironment) -> None:
    """They write a checkpoint, say, and take longer than the limit: it would be taken back, and kill others again."""
    async with make_stage(nodes={"n": "2"}) as stage, priorities(stage):
        await create_group(stage, "low", 2, priorityClassName=_class(stage, LOW), terminationGracePeriodSeconds=600)
        await until_satisfied(stage, "low")
        await stage.make_group("high", 2, wait=5)
        await stage.create(*members("high", 2, priorityClassName=_class(stage, HIGH)))

        def nominated(pods: list[manifests.Json]) -> bool:
            return all(it["status"].get("nominatedNodeName") for it in of_group(pods, "high"))

        await stage.until(nominated)
        stage.clock.forward(600)
        # Something has changed, and a group that comes then shows that the controller has looked at everybody since.
        await stage.client.patch(
            NODES, stage.nodes["n"], body={"metadata": {"labels": {"seen": "now"}}}, patch=PatchType.MERGE
        )
        await stage.add_node("m", "100m", labels={"pool": "m"})
        await stage.make_group("shown", 1)
        await stage.create(*members("shown", 1, cpu="10m", nodeSelector={"pool": "m"}))
        await stage.until_bound(1, "shown")
        for number in range(2):
            await stage.delete_pod(f"low-{number}", grace_seconds=0)
        pods = await stage.until_bound(2, "high")
        assert bound_count(pods, "low") == 0
        await until_satisfied(stage, "high")
        found = await stage.recorded("high")
        assert (found.generation, found.rolled_back) == (1, 0)
