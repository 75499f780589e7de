"""A schedule: what happens to one gang and its controllers, step by step, and how it ends.

A step is a name and two numbers, from which the step takes what it needs (which pod, how many calls). The same
schedule always plays the same way, so a failed one can be cut down and kept as a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple

from tests.stress.members import steps as members
from tests.stress.world.objects import GangShape
from tests.stress.world.steps import MOST, Run
from tests.stress.world.world import RunEnding, World

ORDINARY = (
    *3 * ("the_cluster_acts",),
    *2 * ("pods_start",),
    *2 * ("barriers_run_before_anybody_reports_it",),
    *3 * ("barriers_ask",),
    "streams_break",
    *3 * ("a_controller_hears_and_works",),
    *2 * ("a_call_goes_through",),
    "some_news_arrives",
    "everything_calms_down",
    "barriers_look",
    "kubelets_report",
    "time_passes",
    "a_main_container_ends",
)
"""What happens in every run, the likely more often."""

NEW_GENERATIONS = ("suspend_or_resume", "suspend_and_resume_at_once", "restart", "the_jobset_is_created_again")
"""What ends a generation, or begins one."""

TROUBLES = (
    "something_happens_to_a_pod",
    "an_index_fails_for_good",
    "terminating_pods_end",
    "a_barrier_runs_again",
    "a_stream_is_dead",
    "a_job_is_created_again",
    "a_user_bypasses_the_gate",
    "the_gang_is_resized",
    "the_jobset_finishes",
    "a_user_destroys_the_gate",
    "a_call_fails",
    "a_call_is_throttled",
    "a_watch_falls_silent",
    "a_job_completes_as_it_is_suspended",
    "a_user_edits_the_clock",
    "an_event_is_disturbed",
    "a_list_is_created_again",
    "a_controller_is_killed",
    "a_clock_is_set",
    "a_node_has_another_clock",
)
"""Of these each run has a few: all at once would let no gang come to anything."""
MOTIFS: tuple[str, ...] = (
    # A job that ends well in the moment of the suspension, and the others after the resume.
    (
        "the_cluster_acts 0 0, pods_start 3, pods_start 3, everything_calms_down 1, everything_calms_down 1, "
        "a_job_completes_as_it_is_suspended, everything_calms_down 1, suspend_or_resume, everything_calms_down 1"
    ),
    # The decision's own write is throttled, and the gang is another one when it may be tried again.
    (
        "everything_calms_down 1, pods_start 3, pods_start 3, a_controller_hears_and_works ? 0, "
        "the_decision_is_throttled, something_happens_to_a_pod, a_controller_hears_and_works ? 0, time_passes 2"
    ),
    # The same, and time is up for a gang whose the last pod starts meanwhile.
    (
        "everything_calms_down 1, pods_start 0, everything_calms_down 1, time_passes 4, a_controller_hears_and_works, "
        "the_decision_is_throttled, pods_start 3, pods_start 3, a_controller_hears_and_works ? 0, time_passes 2"
    ),
    # It is deleted, and created again under its name, while what was decided is being said.
    (
        "everything_calms_down 1, pods_start 3, a_controller_hears_and_works, time_passes, "
        "a_controller_hears_and_works, the_jobset_is_created_again, a_call_goes_through, a_call_goes_through"
    ),
    # An index fails for good, and its Job is another one before anybody looks.
    (
        "everything_calms_down 1, pods_start 0, everything_calms_down, an_index_fails_for_good 0, "
        "some_news_arrives ? 1, a_job_is_created_again, the_cluster_acts 0 0, a_controller_hears_and_works, "
        "a_call_goes_through"
    ),
    # One kind of object is shown no more, and the others are.
    (
        "everything_calms_down 1, a_watch_falls_silent, something_happens_to_a_pod, the_jobset_is_created_again, "
        "the_cluster_acts 0 0, time_passes 2, a_controller_hears_and_works, the_cluster_acts 0 0, "
        "a_controller_hears_and_works"
    ),
    # The same, and a pod that is shown no more leaves before the last one comes.
    (
        "everything_calms_down 1, pods_start 0, everything_calms_down 1, a_watch_falls_silent ? 2, "
        "something_happens_to_a_pod 2 0, the_cluster_acts 0 0, time_passes 2, pods_start 3, barriers_ask 0 0, "
        "a_controller_hears_and_works"
    ),
)
"""What chance alone seldom brings about: a few steps in this order, with numbers where they matter ("?": any)."""
PLAYED = ("jobset", "job", "startgroup", "lws")
"""Sources with a world of their own."""


class Step(NamedTuple):
    """One thing that happens: the name of a method of `Run`, and two numbers from 0 to MOST."""

    what: str
    one: int = 0
    other: int = 0


def steps_of(text: str, number: Callable[[], int] = lambda: 0) -> tuple[Step, ...]:
    """Such as `pods_start 3, time_passes ? 2`; `number` gives those that are left out or "?"."""
    steps = []
    for words in text.split(", "):
        what, *given = words.split(" ")
        one, other = (number() if it == "?" else int(it) for it in (*given, "?", "?")[:2])
        steps.append(Step(what, one, other))
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that a run depends on. Its repr can be pasted into a test."""

    shape: GangShape = field(default_factory=GangShape)
    replicas: int = 1
    suspended: bool = False
    """It is created so, as Kueue wants it."""
    straggler: bool = False
    """One slot's pods find no node before the end."""
    fate: RunEnding = field(default_factory=RunEnding)
    steps: tuple[Step, ...] = ()


def play(schedule: Schedule) -> World:
    """Plays it to its end. Raises AssertionError if something forbidden happens."""
    runs = {"startgroup": members.MemberRun, "lws": members.LeaderRun}
    run = runs.get(schedule.shape.source, Run)(schedule)
    with closing(run.world):
        for step in schedule.steps:
            run.take(step)
        run.world.end(schedule.fate)
    return run.world


def at_random(random: Random, source: str = "jobset") -> Schedule:
    """Any schedule, with a few kinds of trouble: all at once would let no gang come to anything."""
    if source in members.TROUBLES:
        return _of_pods(random, source)
    troubles = random.sample(TROUBLES, random.choice((0, 1, 2, 2, 3, 4, 6)))
    turns = random.sample(NEW_GENERATIONS, random.choice((0, 1, 1, 2, 3)))
    suspended = random.random() < 0.2
    menu = (*ORDINARY, *2 * troubles, *turns, *("suspend_or_resume",) * suspended)
    steps = [*_steps(random, menu, random.choice((20, 60, 120)))]
    for motif in random.sample(MOTIFS, random.choice((0, 1, 1, 2))):
        at = random.choice((0, random.randint(0, len(steps))))
        steps[at:at] = steps_of(motif, lambda: random.randint(0, MOST))
    shape = GangShape(
        replicas=random.choice((1, 2)),
        width=random.choice((1, 2, 3)),
        loaders=random.choice((0, 0, 1, 2)),
        timeout=random.choice((30, 30, 60, None)),
        releases_on_timeout=random.random() < 0.3,
        pods_restart=random.random() < 0.5,
    )
    fate = RunEnding(
        all_start=random.random() < 0.5,
        by_gate=(by_gate := random.random() < 0.6),
        by_annotation=not by_gate or random.random() < 0.5,
        resume=random.random() < 0.7,
    )
    if source == "job":
        shape = replace(shape, source=source, replicas=1, loaders=0, clears_start=random.random() < 0.5)
    return Schedule(
        shape=shape,
        replicas=random.choice((1, 1, 2)),
        suspended=suspended,
        straggler=random.random() < 0.4,
        fate=fate,
        steps=tuple(steps),
    )


def _of_pods(random: Random, source: str) -> Schedule:
    troubles = random.sample(members.TROUBLES[source], random.choice((1, 2, 2, 3, 4, 6)))
    menu = (*members.ORDINARY, *2 * troubles)
    shape = GangShape(
        width=random.choice((1, 2, 2, 3)),
        timeout=random.choice((30, 30, 60, None)),
        releases_on_timeout=random.random() < 0.3,
        source=source,
        of_job=random.random() < 0.25,
        pods_restart=source == "lws",
    )
    return Schedule(
        shape=shape,
        replicas=random.choice((1, 2, 2)),
        straggler=random.random() < 0.3,
        fate=RunEnding(all_start=random.random() < 0.6),
        steps=_steps(random, menu, random.choice((20, 50, 80))),
    )


def _steps(random: Random, menu: Sequence[str], count: int) -> tuple[Step, ...]:
    return tuple(Step(random.choice(menu), random.randint(0, MOST), random.randint(0, MOST)) for _ in range(count))


def fault(schedule: Schedule) -> AssertionError | None:
    """What is wrong with it, if anything is."""
    try:
        play(schedule)
    except AssertionError as found:
        return found
    return None


def cut_down(schedule: Schedule) -> Schedule:
    """A schedule that still fails and from which no single step can be left out."""
    size = max(1, len(schedule.steps) // 2)
    while True:
        first = 0
        while first < len(schedule.steps):
            shorter = replace(schedule, steps=schedule.steps[:first] + schedule.steps[first + size :])
            if fault(shorter) is not None:
                schedule = shorter
                continue
            first += size
        if size == 1:
            return schedule
        size //= 2
