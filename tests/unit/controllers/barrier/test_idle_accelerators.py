"""Idle accelerators: counted while they are held, bounded in labels, never taken back."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from controllers.barrier.idle_accelerators import MAX_RESOURCES, OTHER, IdleAccelerators, held_devices
from jobset_gate.barrier.model import BarrierStage, GangKey, PodSeen
from tests.fakes.gangs import gang, jobset, pod, replicated_job, waiting_pod

TRAIN, OTHERS = GangKey("default", "train"), GangKey("default", "others")
GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
THREE = jobset(replicated_job(parallelism=3, completions=3, devices=((GPU, 8), (EFA, 4))))


class ScrapedIdle:
    """The collector, and what a scrape would show."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.idle = IdleAccelerators(lambda: self.now)
        self.registry = CollectorRegistry()
        self.registry.register(self.idle)

    def value(self, name: str, resource: str) -> float | None:
        labels = {"source": "jobset", "resource": resource}
        return self.registry.get_sample_value(f"jobset_gate_idle_accelerator{name}", labels)

    def seconds(self, resource: str = GPU) -> float | None:
        return self.value("_seconds_total", resource)


@pytest.fixture
def shown() -> ScrapedIdle:
    return ScrapedIdle()


def test_a_clock_that_is_put_back_takes_nothing_back(shown: ScrapedIdle) -> None:
    """A counter that falls is read as one that began again."""
    shown.idle.set_held(TRAIN, {GPU: 1})
    shown.now += 10
    assert shown.seconds() == 10
    shown.now -= 3600
    assert shown.seconds() == 10
    shown.now += 5
    assert shown.seconds() == 15


def test_users_cannot_make_as_many_labels_as_they_like(shown: ScrapedIdle) -> None:
    for number in range(MAX_RESOURCES * 3):
        shown.idle.set_held(GangKey("default", f"gang-{number}"), {f"example.com/device-{number}": 1})
    shown.now += 1
    resources = {sample.labels["resource"] for family in shown.registry.collect() for sample in family.samples}
    assert len(resources) == MAX_RESOURCES + 1
    assert shown.seconds(OTHER) == MAX_RESOURCES * 2
    shown.idle.set_held(TRAIN, {"example.com/device-0": 1})
    assert shown.value("s", "example.com/device-0") == 2, "who has a label keeps it"


HELD = {
    "nobody": ((), 0),
    "both": ((pod(0), pod(1)), 2),
    "not-started": ((pod(0), waiting_pod(1)), 1),
    "passed": ((pod(0), pod(1, stage=BarrierStage.PASSED)), 1),
    "leaving": ((pod(0), pod(1, deleting=True)), 1),
    "done": ((pod(0), pod(1, phase="Succeeded")), 1),
    "old-life": ((pod(0), pod(1, workload_uid="another life")), 1),
    "no-target": ((pod(0), pod(1, replicated="leader")), 1),
}


@pytest.mark.parametrize(("pods", "many"), HELD.values(), ids=HELD)
def test_only_pods_that_have_started_and_wait_hold_devices(pods: tuple[PodSeen, ...], many: int) -> None:
    assert held_devices(gang(*pods, workload=THREE)) == ({GPU: 8 * many, EFA: 4 * many} if many else {})


def test_a_pod_that_announces_itself_holds_its_devices_already() -> None:
    early = waiting_pod(0)
    assert held_devices(gang(early, workload=THREE, announced={early.uid: 1.0})) == {GPU: 8, EFA: 4}
