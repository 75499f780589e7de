"""The metrics of gangs: right, never negative, and free of names (A9, faults.md 12)."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from controllers.keys import Key
from controllers.measures import Measures
from jobset_gate.decide import decide
from jobset_gate.model import Decide, GangSeen, JobSetSeen, Kind, PodSeen, Stage, Wait, Why
from tests.jobset_gate.gangs import T0, clock, gang, gate, jobset, pod, replicated_job, verdict, waiting_pod

TRAIN = Key("default", "train")
OTHER = Key("default", "other")
TWO = jobset()
THREE = jobset(replicated_job(parallelism=3, completions=3))


class Shown:
    """Measures, and what a scrape would show."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.measures = Measures(self.registry)

    def value(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(f"jobset_gate_{name}", labels)
        return -1.0 if found is None else found

    def seconds(self, name: str) -> tuple[float, float]:
        """(how often, sum)."""
        return self.value(f"{name}_seconds_count"), self.value(f"{name}_seconds_sum")

    def waiting(self) -> tuple[float, float]:
        return self.value("waiting_gangs"), self.value("waiting_pods")


@pytest.fixture
def shown() -> Shown:
    return Shown()


def waits(*pods: PodSeen, jobset: JobSetSeen = TWO) -> Wait:
    decision = decide(gang(*pods, jobset=jobset), T0)
    assert isinstance(decision, Wait)
    return decision


def release(seen: GangSeen, at: float) -> Decide:
    decision = decide(seen, at)
    assert isinstance(decision, Decide)
    assert decision.verdict.kind is Kind.RELEASE
    return decision


def main(index: int, at: float | None) -> PodSeen:
    return pod(index, stage=Stage.PASSED, phase="Running", main_since=at)


def test_waiting_gangs_and_pods_are_counted_by_reason(shown: Shown) -> None:
    shown.measures.waits(TRAIN, waits(pod(0), waiting_pod(1, Why.IMAGE_PULL), jobset=THREE))
    shown.measures.waits(OTHER, waits(waiting_pod(0, Why.IMAGE_PULL), waiting_pod(1)))
    assert shown.waiting() == (2, 1)
    assert shown.value("missing_pods", reason="ImagePull") == 2
    assert shown.value("missing_pods", reason="Unscheduled") == 1
    assert shown.value("missing_pods", reason="NotCreated") == 1
    assert shown.value("missing_pods", reason="CrashLoop") == 0


def test_a_later_pass_replaces_what_an_earlier_one_found(shown: Shown) -> None:
    for _ in range(3):
        shown.measures.waits(TRAIN, waits(pod(0), waiting_pod(1, Why.IMAGE_PULL)))
    shown.measures.waits(TRAIN, waits(pod(0), waiting_pod(1, Why.CRASH_LOOP)))
    assert shown.waiting() == (1, 1)
    assert shown.value("missing_pods", reason="ImagePull") == 0
    assert shown.value("missing_pods", reason="CrashLoop") == 1


@pytest.mark.parametrize("end", ["stands", "forget", "nothing_held"])
def test_a_gang_that_no_longer_waits_is_not_counted_any_more(shown: Shown, end: str) -> None:
    shown.measures.waits(TRAIN, waits(pod(0), waiting_pod(1)))
    if end == "stands":
        shown.measures.stands(TRAIN, gang(pod(0), pod(1)), verdict())
    else:
        getattr(shown.measures, end)(TRAIN)
    assert shown.waiting() == (0, 0)
    assert shown.value("missing_pods", reason="Unscheduled") == 0


def test_a_release_is_counted_and_timed(shown: Shown) -> None:
    seen = gang(pod(0), pod(1, barrier_since=T0 + 40), gate=gate(waiting_since=clock(T0)))
    shown.measures.decided(TRAIN, seen, release(seen, T0 + 42), T0 + 42)
    assert shown.value("decisions_total", kind="release", cause="AllPodsStarted") == 1
    assert shown.seconds("time_to_release") == (1, 42)
    assert shown.seconds("last_start_to_release") == (1, 2)


def test_a_timeout_is_counted_but_is_no_release(shown: Shown) -> None:
    seen = gang(pod(0), waiting_pod(1), gate=gate(waiting_since=clock(T0)))
    decision = decide(seen, T0 + 300)
    assert isinstance(decision, Decide)
    shown.measures.decided(TRAIN, seen, decision, T0 + 300)
    assert shown.value("decisions_total", kind="timeout", cause="TimedOut") == 1
    assert shown.seconds("time_to_release") == (0, 0)


def test_clocks_that_disagree_make_no_negative_time(shown: Shown) -> None:
    """A node's clock may be minutes ahead of ours."""
    seen = gang(pod(0, barrier_since=T0 + 200), pod(1, barrier_since=T0 + 300), gate=gate(waiting_since=clock(T0 + 90)))
    shown.measures.decided(TRAIN, seen, release(seen, T0), T0)
    ahead = gang(main(0, T0 - 50), main(1, T0 - 40))
    shown.measures.stands(TRAIN, ahead, verdict())
    assert shown.seconds("time_to_release") == (1, 0)
    assert shown.seconds("last_start_to_release") == (1, 0)
    assert shown.seconds("release_to_last_main_start") == (1, 0)
    assert shown.seconds("start_skew") == (1, 10)


def test_the_start_of_the_last_main_container_is_timed_once_all_have_started(shown: Shown) -> None:
    seen = gang(pod(0), pod(1))
    shown.measures.decided(TRAIN, seen, release(seen, T0 + 10), T0 + 10)
    shown.measures.stands(TRAIN, gang(main(0, T0 + 11), main(1, None)), verdict())
    assert shown.seconds("start_skew")[0] == 0
    for _ in range(3):
        shown.measures.stands(TRAIN, gang(main(0, T0 + 11), main(1, T0 + 14)), verdict())
    assert shown.seconds("release_to_last_main_start") == (1, 4)
    assert shown.seconds("start_skew") == (1, 3)


def test_a_release_that_another_process_took_is_not_timed(shown: Shown) -> None:
    shown.measures.stands(TRAIN, gang(main(0, T0), main(1, T0)), verdict())
    assert shown.seconds("start_skew") == (0, 0)


def test_the_starts_of_a_later_generation_are_not_held_against_an_earlier_release(shown: Shown) -> None:
    seen = gang(pod(0), pod(1))
    shown.measures.decided(TRAIN, seen, release(seen, T0), T0)
    shown.measures.stands(TRAIN, gang(main(0, T0), main(1, T0)), verdict(epoch=1))
    assert shown.seconds("start_skew") == (0, 0)


def test_a_gang_that_is_gone_leaves_nothing_behind(shown: Shown) -> None:
    seen = gang(pod(0), pod(1))
    shown.measures.decided(TRAIN, seen, release(seen, T0), T0)
    shown.measures.forget(TRAIN)
    shown.measures.stands(TRAIN, gang(main(0, T0), main(1, T0)), verdict())
    assert shown.seconds("start_skew") == (0, 0)


def test_a_bypass_before_any_start_has_no_time_to_release(shown: Shown) -> None:
    seen = gang(waiting_pod(0), waiting_pod(1), jobset=jobset(bypass=True))
    shown.measures.decided(TRAIN, seen, release(seen, T0), T0)
    assert shown.value("decisions_total", kind="release", cause="Bypassed") == 1
    assert shown.seconds("time_to_release") == (0, 0)


def test_no_metric_names_a_pod_or_a_jobset(shown: Shown) -> None:
    seen = gang(pod(0), pod(1))
    shown.measures.waits(TRAIN, waits(pod(0), waiting_pod(1)))
    shown.measures.decided(TRAIN, seen, release(seen, T0), T0)
    shown.measures.patched("ok")
    labels = {label for family in shown.registry.collect() for sample in family.samples for label in sample.labels}
    assert labels == {"reason", "kind", "cause", "outcome", "le"}
