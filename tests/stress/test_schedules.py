"""Whatever the schedule: never an early, stale or double verdict, and always an end (A4-A7, A10; faults.md 7-12).

The controllers' own code runs on late, torn and reordered views of a small world, one API call at a time, and may be
killed between any two of them. Two judge it: the referee, by what the controller believed to see, and the oracle, by
its own reading of the contract and what is true. `make stress` tries many more schedules than every run of the tests
does, `HYPOTHESIS_PROFILE=deep` the same of hypothesis.
"""

import os
from collections.abc import Iterator
from random import Random

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.stress.world.cluster import GangShape
from tests.stress.world.schedule import (
    MOST,
    NEW_GENERATIONS,
    ORDINARY,
    TROUBLES,
    Run,
    Schedule,
    Step,
    at_random,
    cut_down,
    play,
)
from tests.stress.world.world import RunEnding

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
WALKS = 40_000 if DEEP else 200
PARTS = 4
"""Each a test of its own: seconds of pure computing, which may take many times that on a busy machine."""
EXAMPLES = 5_000 if DEEP else 25
pytestmark = pytest.mark.timeout(3600 if DEEP else 120)

SHAPES = st.builds(
    GangShape,
    replicas=st.integers(1, 2),
    width=st.integers(1, 2),
    loaders=st.integers(0, 2),
    timeout=st.sampled_from((30, 60, None)),
    releases_on_timeout=st.booleans(),
    pods_restart=st.booleans(),
)
FATES = st.builds(RunEnding, all_start=st.booleans(), by_gate=st.booleans(), resume=st.booleans())
DRAWN = st.integers(0, MOST)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The controllers log each failed call; a schedule makes many of them fail."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("part", range(PARTS))
def test_no_random_schedule_makes_an_early_stale_or_double_verdict_and_every_one_ends(part: int) -> None:
    for seed in range(part, WALKS, PARTS):
        schedule = at_random(Random(seed))  # noqa: S311 - chance that can be repeated
        if fails(schedule):
            play_noted(cut_down(schedule, fails))


REMEMBERED = {
    "a controller whose view of the JobSet is an attempt behind drops the clock": Schedule(
        shape=GangShape(replicas=1, width=3, loaders=1),
        replicas=2,
        steps=(
            Step("everything_calms_down"),
            Step("restart"),
            Step("the_cluster_acts"),
            Step("pods_start", 1),
            Step("pods_start", 6),
            Step("a_controller_hears_and_works", 2, 11),
            Step("some_news_arrives", 7, 3),
        ),
    ),
    "a succeeded pod of a NonIndexed Job stands in for one that has yet to start after a resume": Schedule(
        shape=GangShape(width=1, loaders=2),
        steps=(
            Step("everything_calms_down"),
            Step("pods_start", 3),
            Step("everything_calms_down"),
            Step("a_main_container_ends", 1),
            Step("the_cluster_acts"),
            Step("suspend_or_resume"),
            Step("the_cluster_acts"),
            Step("terminating_pods_end"),
            Step("suspend_or_resume"),
            Step("the_cluster_acts"),
            Step("pods_start"),
            Step("everything_calms_down"),
        ),
    ),
    "pods of a Job that is still suspended count when the JobSet is not": Schedule(
        shape=GangShape(width=2),
        steps=(
            Step("the_cluster_acts"),
            Step("pods_start"),
            Step("everything_calms_down"),
            Step("suspend_or_resume"),
            Step("the_cluster_acts", 2),
            Step("suspend_or_resume"),
            Step("pods_start"),
            Step("everything_is_heard"),
        ),
    ),
    "a controller whose view of the JobSet is an attempt behind takes back the verdict": Schedule(
        shape=GangShape(width=1),
        replicas=2,
        steps=(
            Step("everything_calms_down"),
            Step("pods_start"),
            Step("everything_calms_down"),
            Step("restart"),
            Step("the_cluster_acts", 0, 0),
            Step("pods_start"),
            Step("a_controller_hears_and_works", 0, 11),
            Step("some_news_arrives", 1, 11),
            Step("a_call_goes_through", 1),
        ),
    ),
    "a pod that ran on through a suspension starts the clock of the next generation in the past": Schedule(
        shape=GangShape(width=2),
        straggler=True,
        fate=RunEnding(all_start=False),
        steps=(
            Step("the_cluster_acts"),
            Step("pods_start"),
            Step("everything_calms_down"),
            Step("suspend_and_resume_at_once"),
            Step("time_passes", 1),
            Step("a_job_is_created_again"),
            Step("everything_calms_down"),
        ),
    ),
    "a pod is lost while it is looked whether an unrelated ConfigMap has gone": Schedule(
        shape=GangShape(width=1, timeout=60),
        replicas=2,
        fate=RunEnding(all_start=False, by_gate=False),
        steps=(
            Step("a_controller_hears_and_works", 3, 10),
            Step("a_user_destroys_the_gate", 4, 10),
            Step("everything_calms_down", 1, 8),
            Step("pods_start", 3, 8),
            Step("a_controller_hears_and_works", 3, 0),
            Step("time_passes", 2, 11),
            Step("restart", 3, 9),
        ),
    ),
    "it is suspended while its pods are read once more before its time is up": Schedule(
        shape=GangShape(width=2, pods_restart=True),
        fate=RunEnding(by_annotation=False),
        steps=(
            Step("the_cluster_acts", 8, 7),
            Step("some_news_arrives", 4, 10),
            Step("everything_calms_down", 1, 5),
            Step("pods_start", 0, 11),
            Step("everything_calms_down", 1, 5),
            Step("time_passes", 2, 6),
            Step("pods_start", 3, 3),
            Step("a_controller_hears_and_works", 0, 2),
            Step("time_passes", 9, 0),
            Step("a_call_goes_through", 8, 1),
            Step("suspend_or_resume", 11, 9),
            Step("a_controller_hears_and_works", 9, 2),
        ),
    ),
    "a gate that was made and lost between two lists is believed in": Schedule(
        shape=GangShape(width=2),
        fate=RunEnding(all_start=False),
        steps=(
            Step("a_controller_hears_and_works", 0, 1),
            Step("a_user_destroys_the_gate"),
            Step("a_list_is_created_again", 0, 3),
        ),
    ),
}
"""Schedules that failed once, or that a broken controller fails and chance seldom finds."""


@pytest.mark.parametrize("name", REMEMBERED)
def test_what_once_went_wrong_stays_right(name: str) -> None:
    play_noted(REMEMBERED[name])


class Machine(RuleBasedStateMachine):
    """The same steps, chosen by hypothesis, which is good at the unlikely."""

    run: Run

    @initialize(
        shape=SHAPES,
        replicas=st.integers(1, 2),
        suspended=st.booleans(),
        straggler=st.booleans(),
        fate=FATES,
        troubles=st.lists(st.sampled_from((*NEW_GENERATIONS, *TROUBLES)), max_size=5, unique=True),
    )
    def begin(
        self, *, shape: GangShape, replicas: int, suspended: bool, straggler: bool, fate: RunEnding, troubles: list[str]
    ) -> None:
        self.fate, self.menu = fate, (*ORDINARY, *troubles)
        self.run = Run(Schedule(shape, replicas, suspended, straggler))

    @rule(what=st.runner().flatmap(lambda machine: st.sampled_from(machine.menu)), one=DRAWN, other=DRAWN)
    def next(self, what: str, one: int, other: int) -> None:
        self.run.take(Step(what, one, other))

    def teardown(self) -> None:
        if hasattr(self, "run"):
            with self.run.world as world:
                world.end(self.fate)


def test_hypothesis_finds_no_such_schedule_either() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=60,
            derandomize=not DEEP,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )


def play_noted(schedule: Schedule) -> None:
    """Plays it, and shows it if it fails."""
    try:
        play(schedule)
    except AssertionError as foul:
        foul.add_note(repr(schedule))
        raise


def fails(schedule: Schedule) -> bool:
    try:
        play(schedule)
    except AssertionError:
        return True
    return False
