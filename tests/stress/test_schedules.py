"""Whatever the schedule: no early, stale or double verdict, and always an end (A4-A7, A10, K5-K7; faults.md 7-12).

The controllers' own code runs on late, torn and reordered views of a small world, one API call at a time, and may be
killed between any two of them. The oracle judges it, by its own reading of the contract, what the controller was shown,
and what is true. `make stress` tries many more schedules than every run of the tests does.
"""

from collections.abc import Iterator
from random import Random

import pytest
import structlog

from tests.stress.run import quiet
from tests.stress.world.objects import GangShape
from tests.stress.world.schedule import Schedule, at_random, cut_down, fault, play, steps_of
from tests.stress.world.world import RunEnding

WALKS = {"jobset": 160, "job": 160, "startgroup": 400, "lws": 400}
PARTS = 4
"""Each a test of its own: seconds of pure computing, which may take many times that on a busy machine."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    quiet()
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("source", WALKS)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_random_schedule_makes_an_early_stale_or_double_verdict_and_every_one_ends(part: int, source: str) -> None:
    for seed in range(part, WALKS[source], PARTS):
        schedule = at_random(Random(seed), source)  # noqa: S311 - chance that can be repeated
        if fault(schedule) is not None:
            play_noted(cut_down(schedule))


def start_group(
    width: int, steps: str, *, timeout: int | None = 30, straggler: bool = False, all_start: bool = False
) -> Schedule:
    """With two controllers."""
    shape, fate = GangShape(width=width, timeout=timeout, source="startgroup"), RunEnding(all_start=all_start)
    return Schedule(shape=shape, replicas=2, straggler=straggler, fate=fate, steps=steps_of(steps))


REMEMBERED = {
    "a controller that sees the earlier Job keeps a clock that a user has forged for its successor": Schedule(
        shape=GangShape(width=3, timeout=30, source="job"),
        steps=steps_of(
            "everything_calms_down 4 9, a_watch_falls_silent 2 1, the_jobset_is_created_again 6 4, "
            "a_user_destroys_the_gate 5 10, a_controller_hears_and_works 4 5"
        ),
    ),
    "a controller whose view of the JobSet is an attempt behind drops the clock": Schedule(
        shape=GangShape(replicas=1, width=3, loaders=1),
        replicas=2,
        steps=steps_of(
            "everything_calms_down, restart, the_cluster_acts, pods_start 1, pods_start 6, "
            "a_controller_hears_and_works 2 11, some_news_arrives 7 3"
        ),
    ),
    "a controller whose view of the JobSet is an attempt behind takes back the verdict": Schedule(
        shape=GangShape(width=1),
        replicas=2,
        steps=steps_of(
            "everything_calms_down, pods_start, everything_calms_down, restart, the_cluster_acts, pods_start, "
            "a_controller_hears_and_works 0 11, some_news_arrives 1 11, a_call_goes_through 1"
        ),
    ),
    "a pod that ran on through a suspension starts the clock of the next generation in the past": Schedule(
        shape=GangShape(width=2),
        straggler=True,
        fate=RunEnding(all_start=False),
        steps=steps_of(
            "the_cluster_acts, pods_start, everything_calms_down, suspend_and_resume_at_once, time_passes 1, "
            "a_job_is_created_again, everything_calms_down"
        ),
    ),
    "a pod is lost while it is looked whether an unrelated ConfigMap has gone": Schedule(
        shape=GangShape(width=1, timeout=60),
        replicas=2,
        fate=RunEnding(all_start=False, by_gate=False),
        steps=steps_of(
            "a_controller_hears_and_works 3 10, a_user_destroys_the_gate 4 10, everything_calms_down 1 8, "
            "pods_start 3 8, a_controller_hears_and_works 3, time_passes 2 11, restart 3 9"
        ),
    ),
    "a pod is lost while the ConfigMap of an earlier JobSet is deleted": Schedule(
        shape=GangShape(width=1),
        steps=steps_of(
            "a_controller_hears_and_works 0 2, the_jobset_is_created_again, the_cluster_acts 0 5, pods_start, "
            "a_controller_hears_and_works 0 3, something_happens_to_a_pod, time_passes 2, a_call_goes_through"
        ),
    ),
    "it is suspended while its pods are read once more before its time is up": Schedule(
        shape=GangShape(width=2, pods_restart=True),
        fate=RunEnding(by_annotation=False),
        steps=steps_of(
            "the_cluster_acts 8 7, some_news_arrives 4 10, everything_calms_down 1 5, pods_start 0 11, "
            "everything_calms_down 1 5, time_passes 2 6, pods_start 3 3, a_controller_hears_and_works 0 2, "
            "time_passes 9, a_call_goes_through 8 1, suspend_or_resume 11 9, a_controller_hears_and_works 9 2"
        ),
    ),
    "the end of a pod is a line that nobody can read, and half a minute later the last pod starts": Schedule(
        shape=GangShape(width=2, timeout=None),
        steps=steps_of(
            "everything_calms_down, pods_start 0, everything_calms_down, time_passes 1, everything_calms_down, "
            "something_happens_to_a_pod 2 0, an_event_is_disturbed 0 2, time_passes 2, pods_start 0, "
            "some_news_arrives 0 2"
        ),
    ),
    "a controller that sees pods of an earlier attempt writes them as members of the decided one": start_group(
        2,
        "pods_start 6 4, everything_calms_down 4 6, something_happens_to_a_pod 7 7, a_pod_misses_the_webhook 4 0, "
        "a_controller_hears_and_works 10 7, a_watch_falls_silent 3 8, time_passes 6 8, everything_calms_down 2 7",
    ),
    "a ConfigMap that is made again says the members that it had, then others with clock and verdict": start_group(
        3,
        "barriers_run_before_anybody_reports_it 10 1, a_controller_hears_and_works 9 8, barriers_ask 3 7, "
        "a_call_goes_through 5 5, a_call_goes_through 7, the_config_map_is_edited 5 9, "
        "something_happens_to_a_pod 2 6, everything_calms_down 5 7",
        straggler=True,
    ),
    "a controller writes what it decided on pods that have gone to the ConfigMap of the next": start_group(
        1,
        "pods_start, a_controller_hears_and_works 9 2, the_config_map_is_edited, all_pods_are_deleted 1",
        timeout=None,
    ),
    "a controller that sees a pod of an earlier attempt decides each attempt that another one begins": start_group(
        1,
        "barriers_run_before_anybody_reports_it 8 5, kubelets_report 2 4, everything_calms_down 3 11, "
        "a_watch_falls_silent 8 6, the_size_changes 7 1, something_happens_to_a_pod 6 2, everything_calms_down 3, "
        "something_happens_to_a_pod 7 10, time_passes 8 9, pods_start 10 11, everything_calms_down 1 8",
        timeout=None,
    ),
    "a verdict of the same number is taken for that of a ConfigMap that a user has emptied": start_group(
        3,
        "a_controller_is_killed 4 8, a_pod_misses_the_webhook 4 5, time_passes 4 10, "
        "a_controller_hears_and_works 0 10, all_pods_are_deleted 7 10, the_config_map_is_edited 11, "
        "a_controller_is_killed 6 6, the_cluster_acts 1 5, pods_start 10 9, everything_calms_down 9 6",
        straggler=True,
    ),
    "a condition of a higher attempt than that of the known members decides": start_group(
        2,
        "barriers_run_before_anybody_reports_it 0 8, everything_calms_down 1 6, all_pods_are_deleted 11 2, "
        "the_cluster_acts 1 1, pods_start 7 0, a_controller_hears_and_works 9 9, the_config_map_is_edited 7 6, "
        "a_list_is_created_again 8 7, all_pods_are_deleted 10 11, everything_calms_down 3 5",
        all_start=True,
    ),
    "what was decided comes into a ConfigMap that was read, and that another controller has made": start_group(
        1,
        "pods_start 4 10, a_controller_hears_and_works 3 7, the_config_map_is_edited 9 6, "
        "a_controller_hears_and_works 7 7, a_pod_is_replaced 1 5, pods_start 6 1, the_size_changes 10 2",
    ),
    "a started pod is replaced while the ConfigMap is read, and the decision is on the pods before that": start_group(
        2,
        "a_controller_hears_and_works 0 8, time_passes 7 10, a_pod_is_replaced 4 6, a_controller_hears_and_works 0 11, "
        "the_config_map_is_edited 4 4, barriers_run_before_anybody_reports_it 10 9, everything_calms_down 9 9, "
        "time_passes 10 3, a_pod_is_replaced 5 11, the_config_map_is_edited 0 1, everything_calms_down 3 5",
        straggler=True,
        all_start=True,
    ),
    "a gate that was made and lost between two lists is believed in": Schedule(
        shape=GangShape(width=2),
        fate=RunEnding(all_start=False),
        steps=steps_of("a_controller_hears_and_works 0 1, a_user_destroys_the_gate, a_list_is_created_again 0 3"),
    ),
}
"""Schedules that failed once, or that a broken controller fails and chance seldom finds."""


@pytest.mark.parametrize("name", REMEMBERED)
def test_what_once_went_wrong_stays_right(name: str) -> None:
    play_noted(REMEMBERED[name])


def play_noted(schedule: Schedule) -> None:
    """Plays it, and shows it if it fails."""
    try:
        play(schedule)
    except AssertionError as foul:
        foul.add_note(repr(schedule))
        raise
