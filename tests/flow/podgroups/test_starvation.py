"""Nobody is held up for ever by a group that does not take what it needs: with the real scheduler and API server (G3).

What is written of five minutes is played with the controller's clock.
"""

import time
from fractions import Fraction
from typing import Any

from jobset_gate import names
from jobset_gate.kube.resources import PODS, Resource
from jobset_gate.podgroups.model import FLAVOR_OF, Format, GangMode, PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, encode_record
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
    until_satisfied,
)

GPU = "example.com/gpu"
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")


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


async def test_what_a_daemonset_takes_is_never_free(make_stage: MakeGroupEnvironment) -> None:
    """So a pod of the whole node can never fit, and stops nobody."""
    clock = OffsetClock()
    async with make_stage(nodes={"n": "4"}, controller=False) as stage:
        stage.start_controller(clock=clock)
        spec: Json = {"selector": {"matchLabels": {"app": "agent"}}}
        spec["template"] = {"metadata": {"labels": {"app": "agent"}}, "spec": manifests.template_spec()}
        spec["template"]["spec"]["restartPolicy"] = "Always"
        body = {"metadata": {"name": "agent"}, "spec": spec}
        made = await stage.client.create(DAEMON_SETS, body, stage.namespace)
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": made["metadata"]["uid"]}
        agent = manifests.pod("agent", cpu="100m")  # its controller does not run on this plane
        agent["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        await stage.create(agent)
        await stage.until_bound(1)
        await create_group(stage, "whole", 1, cpu="4")
        await until_reason(stage, "whole", names.REASON_WAITING_FOR_CAPACITY, "can never fit")
        clock.forward(stage.settings.groups.starvation_seconds)
        await create_group(stage, "small", 1, cpu="100m")
        pods = await stage.until_bound(1, "small")
        assert all_held(pods, "whole")


async def test_a_record_reserves_no_room_for_pods_that_do_not_exist(make_stage: MakeGroupEnvironment) -> None:
    """A pod that may write PodGroups writes one that says what was decided: a million pods, and years to place them."""
    async with make_stage(nodes={"n": "4"}) as stage:
        evil = PodGroupKey(flavor=FLAVOR_OF[Format.SCHEDULER_PLUGINS], namespace=stage.namespace, name="evil")
        said = AdmissionRecord(
            generation=1,
            stage=AdmissionState.OPEN,
            how=AdmissionMode.FIT,
            at=time.time(),
            gangs=((evil, 1),),
            minimum=10**6,
            many=10**6,
            newest=time.time() + 3600,
            wait=Fraction(10**9),
            mode=GangMode.STRICT,
        )
        await stage.make_group("evil", 2, annotations={names.POD_GROUP_RECORD: encode_record(said)})
        await stage.create(*members("evil", 1, cpu="1m"))
        await stage.until_bound(1, "evil")
        await create_group(stage, "honest", 3)
        await stage.until_bound(3, "honest")


async def test_a_running_pod_that_keeps_the_group_away_is_counted(make_stage: MakeGroupEnvironment) -> None:
    """The scheduler would bind none of it: it is not opened as if there were room, and nobody waits for it."""
    async with make_stage(nodes={"n": "4"}) as stage:
        term = {"labelSelector": {"matchLabels": {"app": "ring"}}, "topologyKey": "kubernetes.io/hostname"}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        await alone(stage, "loner", "1", affinity={"podAntiAffinity": required})
        await stage.make_group("ring", 2)
        await stage.create(*members("ring", 2, labels={"app": "ring"}))
        await until_reason(stage, "ring", names.REASON_WAITING_FOR_CAPACITY, "from 1 node others keep it away")
        await create_group(stage, "others", 3)
        pods = await stage.until_bound(3, "others")
        assert all_held(pods, "ring")
        await until_satisfied(stage, "others")
        assert await stage.record("ring") is None
        await stage.client.delete(PODS, "loner", stage.namespace, grace_seconds=0)
        for number in range(2):
            await stage.delete_pod(f"others-{number}", grace_seconds=0)
        await stage.until_bound(2, "ring")
        found = await stage.record("ring")
        assert found is not None
        assert found.how is AdmissionMode.FIT


async def test_pods_above_the_minimum_take_a_node_that_joins_before_a_group_is_proven_there(
    make_stage: MakeGroupEnvironment,
) -> None:
    """However long they have waited. It may be tried without proof, but it is not taken for one that fits."""
    clock = OffsetClock()
    async with make_stage(nodes={"n": "2"}, controller=False) as stage:
        stage.start_controller(clock=clock)
        await create_group(stage, "elastic", 6, minimum=2)
        await until_satisfied(stage, "elastic")
        await stage.until(lambda pods: not any(map(manifests.gated, pods)))
        clock.forward(3600)
        await create_group(stage, "other", 3)
        await until_reason(stage, "other", names.REASON_WAITING_FOR_CAPACITY)
        await stage.add_node("m", "4")
        await stage.until_bound(6, "elastic")
        found = await stage.record("other")
        assert found is None or found.how is AdmissionMode.PROBE
