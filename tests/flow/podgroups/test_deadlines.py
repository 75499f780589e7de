"""A group that did not reach its minimum in time is taken back whole, or marked, as its mode says (G4)."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import JOBS
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.podgroups.record import AdmissionMode, AdmissionState
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.groups import pass_limit

Json = dict[str, Any]

PROBE = Groups(capacity_check=CapacityCheck.PROBE)
OFF = Groups(capacity_check=CapacityCheck.OFF)
ANNOTATIONS = Format.KOORDINATOR_ANNOTATIONS
WAIT = 60


def job(name: str, group: str, pods: int, **notes: str) -> Json:
    """A Job whose pods say the group by Koordinator's annotations."""
    made = manifests.job(name, group, pods, ANNOTATIONS, pods)
    said: Json = made["spec"]["template"]["metadata"]["annotations"]
    said |= {names.KOORDINATOR_PREFIX + key.replace("_", "-"): value for key, value in notes.items()}
    return made


def name_of(one: Json) -> str:
    return str(one["metadata"]["name"])


def marked(one: Json) -> bool:
    return (one["metadata"].get("annotations") or {}).get(names.KOORDINATOR_TIMED_OUT) == "true"


async def test_a_group_that_is_late_is_taken_back_whole_and_opened_again_after_its_back_off(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "2"}, settings=PROBE, kubelets=True) as stage:
        await stage.make_group("ring", 3, wait=WAIT)
        await stage.apply(manifests.job("w", "ring", 3))
        pods = await stage.until_bound(2)
        stage.clock.stand()
        await pass_limit(stage, WAIT, seen=name_of(pods[0]))
        closed = await stage.until_record("ring", Format.SCHEDULER_PLUGINS, '"Closed"')
        assert (closed.generation, closed.rolled_back, closed.how) == (1, 1, AdmissionMode.PROBE)
        assert closed.why == f"2 of 3 pods were bound within {WAIT}s"
        assert closed.not_before == pytest.approx(stage.clock() + 10)
        await stage.until(lambda pods: len(pods) == 3 and all(map(gated, pods)))
        await stage.add_node("m", "2")
        await stage.until_event("ring", names.REASON_ROLLED_BACK)
        assert all(map(gated, stage.pods.all())), "it is held through its back-off, whatever room there is"
        await pass_limit(stage, 10, seen=name_of(stage.pods.all()[0]))
        await stage.until_bound(3)
        satisfied = await stage.until_record("ring", Format.SCHEDULER_PLUGINS, '"satisfied":1')
        assert (satisfied.generation, satisfied.rolled_back) == (2, 0)
        status = (await stage.client.get(JOBS, "w", stage.namespace))["status"]
        assert not status.get("failed")
        assert "conditions" not in status or all(it["type"] != "Failed" for it in status["conditions"])


async def test_a_koordinator_gang_is_not_tried_again_until_all_of_its_pods_are_gone(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "1"}, settings=OFF, kubelets=True) as stage:
        await stage.apply(job("w", "ring", 2, waiting_time=f"{WAIT}s"))
        pods = await stage.until_bound(1)
        await pass_limit(stage, WAIT, seen=name_of(pods[0]))
        await stage.until(lambda pods: len(pods) == 2 and all(gated(it) and marked(it) for it in pods))
        await stage.add_node("m", "4")
        await stage.create(manifests.pod("more", "ring", ANNOTATIONS, 2))
        await stage.until(lambda pods: len(pods) == 3 and all(gated(it) and marked(it) for it in pods))
        await stage.plane.kubectl("delete", "job", "w", "-n", stage.namespace)
        await stage.delete_pod("more")
        await stage.until(lambda pods: not pods)
        await stage.until_forgotten("ring", ANNOTATIONS)
        await stage.create(*(manifests.pod(name, "ring", ANNOTATIONS, 2) for name in "ab"))
        await stage.until_bound(2)


async def test_of_a_non_strict_gang_nothing_is_taken_back_and_the_unbound_are_marked(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "2"}, settings=PROBE) as stage:
        notes = {"mode": "NonStrict", "waiting-time": f"{WAIT}s"}
        await stage.create(*(manifests.pod(name, "ring", ANNOTATIONS, 3, notes=notes) for name in "abc"))
        await stage.until_bound(2)
        await pass_limit(stage, WAIT, seen="a")
        pods = await stage.until(lambda pods: any(map(marked, pods)))
        assert all(bound(it) is not marked(it) for it in pods)
        found = await stage.until_record("ring", ANNOTATIONS, '"marked":true')
        assert found.stage is AdmissionState.OPEN
        await stage.add_node("m", "1")
        await stage.until_bound(3)
        assert (await stage.until_record("ring", ANNOTATIONS, '"satisfied":1')).rolled_back == 0


async def test_a_gap_of_a_tenth_gets_scheduler_plugins_groups_one_more_limit(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "9"}, settings=PROBE) as stage:
        await stage.make_group("ring", 10, wait=WAIT)
        await stage.create(*(manifests.pod(f"p{number}", "ring") for number in range(10)))
        await stage.until_bound(9)
        await pass_limit(stage, WAIT, seen="p0")
        found = await stage.until_record("ring", Format.SCHEDULER_PLUGINS, '"extended":true')
        assert found.stage is AdmissionState.OPEN
        await stage.add_node("m", "1")
        await stage.until_bound(10)
        assert (await stage.until_record("ring", Format.SCHEDULER_PLUGINS, '"satisfied":1')).generation == 1
