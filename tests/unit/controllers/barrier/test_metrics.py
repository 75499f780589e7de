"""The metrics of gangs: right, never negative, and free of names (A9, faults.md 12)."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controllers.barrier.idle_accelerators import MAX_RESOURCES, held_devices
from controllers.barrier.metrics import GangMetrics
from jobset_gate.barrier.decision import Blocked, Decide, Wait
from jobset_gate.barrier.model import (
    BarrierStage,
    GangKey,
    GangSnapshot,
    PendingReason,
    PodSeen,
    VerdictKind,
    WorkloadSeen,
)
from tests.fakes.gangs import T0, clock, config_map, decided, gang, jobset, pod, replicated_job, verdict, waiting_pod

TRAIN = GangKey("default", "train")
OTHER = GangKey("default", "other")
TWO = jobset()
THREE = jobset(replicated_job(parallelism=3, completions=3))
BARE = decided(Blocked, gang(workload=jobset(replicated_job(has_barrier=False))), T0)
"""A gang whose pods have no barrier."""


class ScrapedMetrics:
    """Measures, and what a scrape would show."""

    def __init__(self, *sources: str) -> None:
        self.registry = CollectorRegistry()
        self.now = T0
        self.measures = GangMetrics(self.registry, lambda: self.now, sources or ("jobset",))

    def value(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(f"jobset_gate_{name}", {"source": "jobset"} | labels)
        return -1.0 if found is None else found

    def seconds(self, name: str) -> tuple[float, float]:
        """(how often, sum)."""
        return self.value(f"{name}_seconds_count"), self.value(f"{name}_seconds_sum")

    def waiting(self) -> tuple[float, float]:
        return self.value("waiting_gangs"), self.value("waiting_pods")


@pytest.fixture
def shown() -> ScrapedMetrics:
    return ScrapedMetrics()


def waits(*pods: PodSeen, workload: WorkloadSeen = TWO, **more: Any) -> tuple[GangSnapshot, Wait]:
    seen = gang(*pods, workload=workload, **more)
    return seen, decided(Wait, seen, T0)


def release(seen: GangSnapshot, at: float) -> Decide:
    decision = decided(Decide, seen, at)
    assert decision.verdict.kind is VerdictKind.RELEASE
    return decision


def main(index: int, at: float | None) -> PodSeen:
    return pod(index, stage=BarrierStage.PASSED, phase="Running", main_since=at)


def test_waiting_gangs_and_pods_are_counted_by_reason(shown: ScrapedMetrics) -> None:
    shown.measures.on_waiting(TRAIN, *waits(pod(0), waiting_pod(1, PendingReason.IMAGE_PULL), workload=THREE))
    shown.measures.on_waiting(OTHER, *waits(waiting_pod(0, PendingReason.IMAGE_PULL), waiting_pod(1)))
    assert shown.waiting() == (2, 1)
    assert shown.value("missing_pods", reason="ImagePull") == 2
    assert shown.value("missing_pods", reason="Unscheduled") == 1
    assert shown.value("missing_pods", reason="NotCreated") == 1
    assert shown.value("missing_pods", reason="CrashLoop") == 0


def test_a_release_is_counted_and_timed(shown: ScrapedMetrics) -> None:
    early = waiting_pod(0)  # its kubelet has not reported it yet
    seen = gang(
        early,
        pod(1, barrier_since=T0 + 40),
        config_map=config_map(waiting_since=clock(T0)),
        announced={early.uid: T0 - 4},
    )
    shown.measures.on_decided(TRAIN, seen, release(seen, T0 + 42), T0 + 42)
    assert shown.value("decisions_total", kind="release", cause="AllPodsStarted") == 1
    assert shown.seconds("time_to_release") == (1, 42)
    assert shown.seconds("last_start_to_release") == (1, 2)
    assert shown.seconds("pod_start_skew") == (1, 44)


def test_clocks_that_disagree_make_no_negative_time(shown: ScrapedMetrics) -> None:
    """A node's clock may be minutes ahead of ours."""
    seen = gang(
        pod(0, barrier_since=T0 + 200),
        pod(1, barrier_since=T0 + 300),
        config_map=config_map(waiting_since=clock(T0 + 90)),
    )
    shown.measures.on_decided(TRAIN, seen, release(seen, T0), T0)
    ahead = gang(main(0, T0 - 50), main(1, T0 - 40))
    shown.measures.on_enforced(TRAIN, ahead, verdict())
    assert shown.seconds("time_to_release") == (1, 0)
    assert shown.seconds("last_start_to_release") == (1, 0)
    assert shown.seconds("release_to_last_main_start") == (1, 0)
    assert shown.seconds("start_skew") == (1, 10)


def test_the_start_of_the_last_main_container_is_timed_once_all_have_started(shown: ScrapedMetrics) -> None:
    seen = gang(pod(0), pod(1))
    shown.measures.on_decided(TRAIN, seen, release(seen, T0 + 10), T0 + 10)
    shown.measures.on_enforced(TRAIN, gang(main(0, T0 + 11), main(1, None)), verdict())
    assert shown.seconds("start_skew")[0] == 0
    for _ in range(3):
        shown.measures.on_enforced(TRAIN, gang(main(0, T0 + 11), main(1, T0 + 14)), verdict())
    assert shown.seconds("release_to_last_main_start") == (1, 4)
    assert shown.seconds("start_skew") == (1, 3)


def test_the_longest_wait_grows_without_a_pass_and_ends_with_it(shown: ScrapedMetrics) -> None:
    assert shown.value("longest_wait_seconds") == 0
    shown.measures.on_waiting(TRAIN, *waits(pod(0), config_map=config_map(waiting_since=clock(T0))))
    shown.measures.on_waiting(OTHER, *waits(pod(0), config_map=config_map(waiting_since=clock(T0 - 50))))
    shown.now = T0 + 100
    assert shown.value("longest_wait_seconds") == 150
    shown.measures.forget_gang(OTHER)
    assert shown.value("longest_wait_seconds") == 100
    shown.now = T0 - 10
    assert shown.value("longest_wait_seconds") == 0, "the clock that was kept is another process's"


def test_gangs_without_a_gate_that_works_are_counted_by_reason(shown: ScrapedMetrics) -> None:
    shown.measures.on_waiting(TRAIN, *waits(pod(0)))
    shown.measures.on_blocked(TRAIN, BARE)
    assert (shown.value("blocked_gangs", reason="GateMissing"), shown.waiting()) == (1, (0, 0))
    assert shown.value("blocked_gangs", reason="ConfigMapConflict") == 0
    shown.measures.on_waiting(TRAIN, *waits(pod(0)))
    assert (shown.value("blocked_gangs", reason="GateMissing"), shown.waiting()) == (0, (1, 1))
    shown.measures.on_blocked(TRAIN, BARE)
    shown.measures.forget_gang(TRAIN)
    assert shown.value("blocked_gangs", reason="GateMissing") == 0


# --- Until the verdict -----------------------------------------------------------------------------------------------

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
GPUS = jobset(replicated_job(devices=((GPU, 8),)))


@pytest.mark.parametrize("end", ["decided", "stands", "forget", "clear", "blocked"])
def test_a_gang_waits_and_its_accelerators_are_idle_from_the_start_to_the_verdict(
    shown: ScrapedMetrics, end: str
) -> None:
    shown.measures.on_waiting(TRAIN, *waits(pod(0), waiting_pod(1), workload=GPUS))
    shown.now += 30
    assert (shown.waiting(), shown.value("idle_accelerators", resource=GPU)) == ((1, 1), 8)
    seen = gang(pod(0), pod(1), workload=GPUS)
    measures = shown.measures
    {
        "decided": lambda: measures.on_decided(TRAIN, seen, release(seen, shown.now), shown.now),
        "stands": lambda: measures.on_enforced(TRAIN, seen, verdict()),
        "forget": lambda: measures.forget_gang(TRAIN),
        "clear": lambda: measures.clear_gang(TRAIN),
        "blocked": lambda: measures.on_blocked(TRAIN, BARE),
    }[end]()
    shown.now += 500
    assert (shown.waiting(), shown.value("missing_pods", reason="Unscheduled")) == ((0, 0), 0)
    assert shown.value("idle_accelerator_seconds_total", resource=GPU) == 240
    assert shown.value("idle_accelerators", resource=GPU) == 0


def test_a_clock_that_is_put_back_takes_nothing_back(shown: ScrapedMetrics) -> None:
    """A counter that falls is read as one that began again."""
    shown.measures.on_waiting(TRAIN, *waits(pod(0), workload=GPUS))
    for passed, seconds in ((10, 80), (-3600, 80), (5, 120)):
        shown.now += passed
        assert shown.value("idle_accelerator_seconds_total", resource=GPU) == seconds


def test_users_cannot_make_as_many_labels_as_they_like(shown: ScrapedMetrics) -> None:
    for number in range(MAX_RESOURCES * 3):
        devices = jobset(replicated_job(devices=((f"example.com/device-{number}", 1),)))
        shown.measures.on_waiting(GangKey("default", f"gang-{number}"), *waits(pod(0), workload=devices))
    shown.now += 1
    families = [it for it in shown.registry.collect() if it.name == "jobset_gate_idle_accelerators"]
    assert len([sample for family in families for sample in family.samples]) == MAX_RESOURCES + 1
    assert shown.value("idle_accelerator_seconds_total", resource="other") == MAX_RESOURCES * 2
    first = jobset(replicated_job(devices=(("example.com/device-0", 1),)))
    shown.measures.on_waiting(TRAIN, *waits(pod(0), workload=first))
    assert shown.value("idle_accelerators", resource="example.com/device-0") == 2, "who has a label keeps it"


HELD = {
    "nobody": ((), 0),
    "both": ((pod(0), pod(1)), 2),
    "not-started": ((pod(0), waiting_pod(1)), 1),
    "passed": ((pod(0), pod(1, stage=BarrierStage.PASSED)), 1),
    "leaving": ((pod(0), pod(1, deleting=True)), 1),
    "done": ((pod(0), pod(1, phase="Succeeded")), 1),
    "old-life": ((pod(0), pod(1, workload_uid="another life")), 1),
    "no-target": ((pod(0), pod(1, replicated="leader")), 1),
    "announced": ((pod(0), waiting_pod(2)), 2),
}


@pytest.mark.parametrize(("pods", "many"), HELD.values(), ids=HELD)
def test_only_pods_that_have_started_and_wait_hold_devices(pods: tuple[PodSeen, ...], many: int) -> None:
    workload = jobset(replicated_job(parallelism=3, completions=3, devices=((GPU, 8), (EFA, 4))))
    seen = gang(*pods, workload=workload, announced={waiting_pod(2).uid: 1.0})
    assert held_devices(seen) == ({GPU: 8 * many, EFA: 4 * many} if many else {})


def test_what_has_not_happened_yet_is_zero_not_absent(shown: ScrapedMetrics) -> None:
    """An increase from nothing is none: the first timeout of all would not be seen by an alert."""
    for kind in ("timeout", "release"):
        for cause in ("TimedOut", "IndexFailed"):
            assert shown.value("decisions_total", kind=kind, cause=cause) == 0
    assert shown.value("annotation_patches_total", outcome="error") == 0
    assert shown.value("stream_requests_total", outcome="lost") == 0


def test_gangs_are_counted_by_source() -> None:
    shown, job = ScrapedMetrics("jobset", "job"), GangKey("default", "train", "job")

    def values(name: str, **labels: str) -> list[float]:
        return [shown.value(name, source=it, **labels) for it in ("jobset", "job")]

    assert values("decisions_total", kind="release", cause="AllPodsStarted") == [0, 0], "before the first"
    for key in (TRAIN, OTHER, job):
        shown.measures.on_waiting(key, *waits(pod(0), waiting_pod(1)))
    assert values("waiting_gangs") == values("missing_pods", reason="Unscheduled") == [2, 1]
    shown.measures.forget_gang(TRAIN)
    shown.measures.forget_gang(job)
    assert values("waiting_pods") == [1, 0]
    shown.measures.on_stream_request("job", "told")
    assert values("stream_requests_total", outcome="told") == [0, 1]


def test_requests_for_gangs_of_a_source_that_is_not_managed_have_no_source(shown: ScrapedMetrics) -> None:
    """Anybody may send any path: no label is made of it."""
    shown.measures.on_stream_request("job", "forbidden")
    assert shown.value("stream_requests_total", source="", outcome="forbidden") == 1
    assert shown.value("stream_requests_total", source="job", outcome="forbidden") == -1
