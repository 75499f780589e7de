"""No random schedule of a start group makes an early, stale or contradicting release, and each ends (K5).

The rule alone, without a client: two controllers with views that lag and processes that end before any of their calls.
`make stress` plays a million.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jobset_gate.barrier.decide import Facts
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import GangSnapshot, PodSeen
from tests.stress.attempts.judge import GroupShape
from tests.stress.attempts.replica import ModelReplica
from tests.stress.attempts.schedule import AttemptSchedule, attempt_steps, attempts_at_random, play_attempts

SCHEDULES = 2400
PARTS = 4


@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_schedule_makes_an_early_stale_or_contradicting_release_and_each_ends(part: int) -> None:
    for seed in range(part, SCHEDULES, PARTS):
        schedule = attempts_at_random(seed)
        try:
            play_attempts(schedule)
        except AssertionError as wrong:
            wrong.add_note(f"seed {seed}: {schedule}")
            raise


REMEMBERED = {
    "a pass that was slow makes the ConfigMap again, and what is left of it is a pod that succeeded": AttemptSchedule(
        shape=GroupShape(size=3),
        all_start=False,
        steps=attempt_steps(
            "owner_fills 1, a_controller_hears_pods 15, a_controller_goes_on 15, all_pods_start 9, "
            "a_controller_is_killed 8, a_controller_works 8, the_config_map_is_deleted 7, barriers_read 10, "
            "kubelets_report 1, all_pods_succeed 9, a_controller_works 3"
        ),
    ),
    "a process remembers a verdict of a deleted ConfigMap, and another one counts from 0 again": AttemptSchedule(
        all_start=False,
        steps=attempt_steps(
            "owner_fills 1, all_pods_start 8, barriers_read 7, a_controller_works 7, the_config_map_is_deleted 5, "
            "a_controller_is_killed 12, all_pods_are_deleted 11"
        ),
    ),
}
"""Schedules that failed once."""


@pytest.mark.parametrize("name", REMEMBERED)
def test_what_once_went_wrong_with_an_attempt_stays_right(name: str) -> None:
    play_attempts(REMEMBERED[name])


class WithoutMembers(ModelReplica):
    """It records no UIDs."""

    def membership(self, seen: GangSnapshot, *, begins: bool) -> Membership:
        return Membership(attempt=super().membership(seen, begins=begins).attempt)


class WithoutLiveRead(ModelReplica):
    """It writes a higher attempt on what it has heard."""

    def reads_pods(self, facts: Facts) -> bool:
        return not facts.begins_attempt and super().reads_pods(facts)


class WithAnswersToLaterPods(ModelReplica):
    """Its verdict goes to pods that appeared while it was written."""

    def answered(self, seen: GangSnapshot) -> Sequence[PodSeen]:
        self.hear_pods()
        return tuple(self.pods.values())


BROKEN: dict[type[ModelReplica], tuple[AttemptSchedule, str]] = {
    WithoutMembers: (
        AttemptSchedule(
            shape=GroupShape(size=1),
            steps=attempt_steps("owner_fills 1, all_pods_start 3, a_controller_works 2, all_pods_are_deleted 11"),
        ),
        "stale: pod-1 obeys",
    ),
    WithoutLiveRead: (
        AttemptSchedule(
            steps=attempt_steps(
                "owner_fills 1, all_pods_start 4, kubelets_report 0, a_controller_works 2, a_pod_is_deleted 1, "
                "a_pod_fails 7, owner_fills 5, all_pods_start 5, a_controller_works 11, "
                "a_controller_hears_the_config_map 8, a_controller_goes_on 12"
            ),
        ),
        "ended: attempt 1, to which",
    ),
    WithAnswersToLaterPods: (
        AttemptSchedule(
            steps=attempt_steps(
                "owner_fills 1, all_pods_start 3, a_pod_is_deleted 2, a_pod_fails 13, a_controller_hears_pods 4, "
                "a_controller_goes_on 14"
            ),
        ),
        "stale: pod-2 obeys",
    ),
}
"""Controllers that break the rule, and a schedule in which the oracle sees it."""


@pytest.mark.parametrize("replica", BROKEN, ids=lambda it: it.__name__)
def test_a_controller_that_breaks_the_rule_of_attempts_is_found(replica: type[ModelReplica]) -> None:
    schedule, found = BROKEN[replica]
    play_attempts(schedule)
    with pytest.raises(AssertionError, match=found):
        play_attempts(schedule, replica)
