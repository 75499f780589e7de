"""Whatever the schedule: never an early, stale or double verdict, and always an end (A4-A7, A10; faults.md 7-12).

The controllers' own code runs on late, torn and reordered views of a small world, one API call at a time, and may be
killed between any two of them. `HYPOTHESIS_PROFILE=deep` tries many more schedules than every run of the tests does.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from jobset_gate.kube.resources import JOBS
from tests.jobset_gate.world.api import WATCHED
from tests.jobset_gate.world.client import Answer
from tests.jobset_gate.world.cluster import Shape, alive
from tests.jobset_gate.world.replica import Replica
from tests.jobset_gate.world.world import World

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"

SHAPES = st.builds(
    Shape,
    replicas=st.integers(1, 2),
    width=st.integers(1, 2),
    loaders=st.integers(0, 2),
    timeout=st.sampled_from((30, 30, 60, None)),
    releases_on_timeout=st.sampled_from((False, False, True)),
    pods_restart=st.booleans(),
)
FATES = st.fixed_dictionaries(
    {
        "all_start": st.booleans(),
        "channels": st.sampled_from(((True, True), (True, False), (False, True))),
        "resume": st.booleans(),
    }
)
DRAWN = st.integers(0, 11)

ORDINARY = (
    *3 * ("the_cluster_acts",),
    *3 * ("pods_start",),
    *3 * ("a_controller_hears_and_works",),
    *2 * ("a_call_goes_through",),
    "some_news_arrives",
    "everything_calms_down",
    "barriers_look",
    "kubelets_report",
    "time_passes",
)
"""What happens in every run, the likely more often."""

TROUBLES = (
    "something_happens_to_a_pod",
    "terminating_pods_end",
    "a_barrier_runs_again",
    "suspend_or_resume",
    "suspend_and_resume_at_once",
    "restart",
    "a_job_is_made_anew",
    "somebody_bypasses_the_gate",
    "the_gang_is_resized",
    "the_jobset_is_made_anew",
    "the_jobset_finishes",
    "somebody_destroys_the_gate",
    "a_call_fails",
    "an_event_is_disturbed",
    "a_list_is_made_anew",
    "a_controller_is_killed",
    "a_clock_is_set",
    "a_node_has_another_clock",
)
"""Of these each run has a few: all at once would let no gang come to anything."""


class Schedule(RuleBasedStateMachine):
    """What may happen next. What must not happen is the referee's business."""

    world: World

    @initialize(
        shape=SHAPES,
        replicas=st.integers(1, 2),
        suspended=st.sampled_from((False, False, True)),
        fate=FATES,
        troubles=st.lists(st.sampled_from(TROUBLES), max_size=5, unique=True),
    )
    def begin(
        self, shape: Shape, replicas: int, suspended: bool, fate: dict[str, Any], troubles: list[str]
    ) -> None:
        self.world = World(shape, replicas)
        self.cluster = self.world.cluster
        self.fate = fate
        self.menu = (*ORDINARY, *troubles)
        self.cluster.create(suspended=suspended)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            with self.world as world:
                world.end(**self.fate)

    @rule(what=st.runner().flatmap(lambda run: st.sampled_from(run.menu)), one=DRAWN, other=DRAWN)
    def next(self, what: str, one: int, other: int) -> None:
        getattr(self, what)(one, other)
        self.world.check()

    # --- The cluster goes on -------------------------------------------------------------------------------------------

    def the_cluster_acts(self, one: int, other: int) -> None:
        if one != 1:
            self.cluster.sync_jobset()
        if other % 3 == 0:
            self.cluster.collect()
        if one != 2:
            self.cluster.sync_jobs()

    def pods_start(self, one: int, other: int) -> None:
        for pod in self.cluster.unstarted()[: 1 + one % 4]:
            self.cluster.start(pod)

    def barriers_look(self, one: int, other: int) -> None:
        """At what their volume holds now, or at something older that their kubelet still has."""
        older = sorted(self.cluster.published)
        for pod in self.cluster.waiting():
            texts = [*self.cluster.readable(pod), *([older[other % len(older)]] if older and one > 5 else [])]
            for text in texts:
                if self.cluster.look(pod, text, tell=one % 2 == 0):
                    break

    def kubelets_report(self, one: int, other: int) -> None:
        for pod in self.cluster.pods():
            self.cluster.report(pod)

    def time_passes(self, one: int, other: int) -> None:
        self.world.loop.advance((1.0, 5.0, 31.0, 31.0, 70.0)[one % 5])

    # --- The controllers work ------------------------------------------------------------------------------------------

    def some_news_arrives(self, one: int, other: int) -> None:
        self.replica(one).hear(WATCHED[other % 4], 1 + other // 4)

    def a_controller_hears_and_works(self, one: int, other: int) -> None:
        for kind in WATCHED:
            self.replica(one).hear(kind)
        for _ in range(other):
            self.replica(one).answer()

    def a_call_goes_through(self, one: int, other: int) -> None:
        self.replica(one).answer(other)

    def everything_calms_down(self, one: int, other: int) -> None:
        self.world.deliver()

    # --- Pods, nodes, people -------------------------------------------------------------------------------------------

    def something_happens_to_a_pod(self, one: int, other: int) -> None:
        pods = self.cluster.pods()
        if pods:
            what = (self.cluster.fail, self.cluster.evict, self.cluster.vanish, self.cluster.finish_main)[one % 4]
            what(pods[other % len(pods)])

    def terminating_pods_end(self, one: int, other: int) -> None:
        for pod in self.cluster.pods():
            if "deletionTimestamp" in pod["metadata"]:
                self.cluster.vanish(pod)

    def a_barrier_runs_again(self, one: int, other: int) -> None:
        """Its container or the whole sandbox was restarted."""
        pods = [pod for pod in self.cluster.pods() if alive(pod) and pod["metadata"]["uid"] in self.cluster.ran]
        if pods:
            self.cluster.start(pods[one % len(pods)])

    def a_node_has_another_clock(self, one: int, other: int) -> None:
        self.world.referee.clocks_set = True
        for pod in self.cluster.unstarted()[:1]:
            self.cluster.start(pod, (-80.0, -20.0, 20.0, 80.0)[one % 4])

    def suspend_or_resume(self, one: int, other: int) -> None:
        if self.cluster.suspended:
            self.cluster.resume()
        elif self.cluster.going_on:
            self.cluster.suspend()

    def suspend_and_resume_at_once(self, one: int, other: int) -> None:
        if self.cluster.going_on and not self.cluster.suspended:
            self.cluster.suspend()
            self.cluster.resume()

    def restart(self, one: int, other: int) -> None:
        if self.cluster.going_on:
            self.cluster.restart()

    def a_job_is_made_anew(self, one: int, other: int) -> None:
        jobs = self.world.api.all(JOBS)
        if jobs:
            self.cluster.replace_job(jobs[one % len(jobs)]["metadata"]["name"])

    def somebody_bypasses_the_gate(self, one: int, other: int) -> None:
        if self.cluster.going_on:
            self.cluster.bypass()

    def the_gang_is_resized(self, one: int, other: int) -> None:
        if self.cluster.going_on:
            self.cluster.resize(1 + one % 3)

    def the_jobset_is_made_anew(self, one: int, other: int) -> None:
        if self.cluster.jobset is not None:
            self.cluster.delete()
        if one > 1:
            self.cluster.create()

    def the_jobset_finishes(self, one: int, other: int) -> None:
        if self.cluster.going_on and one > 8:
            self.cluster.finish()

    def somebody_destroys_the_gate(self, one: int, other: int) -> None:
        self.world.destroy_gate(("delete", "garble", "empty", "disown", "unlabel")[one % 5])

    # --- Faults --------------------------------------------------------------------------------------------------------

    def a_call_fails(self, one: int, other: int) -> None:
        self.replica(one).answer(other, Answer.REFUSED if other % 2 else Answer.LOST)

    def an_event_is_disturbed(self, one: int, other: int) -> None:
        replica, kind = self.replica(one), WATCHED[other % 4]
        inbox = replica.inbox[kind]
        if inbox and one < 4:
            inbox.popleft()
            replica.torn.add(kind)
        elif inbox and one < 8:
            inbox.append(inbox[0])
        else:
            inbox.rotate(1)

    def a_list_is_made_anew(self, one: int, other: int) -> None:
        self.replica(one).relist(WATCHED[other % 4])

    def a_controller_is_killed(self, one: int, other: int) -> None:
        self.replica(one).kill()
        if other:
            self.replica(one).boot()

    def a_clock_is_set(self, one: int, other: int) -> None:
        self.world.set_clock(self.replica(one), (-60.0, 0.0, 60.0)[other % 3])

    def replica(self, number: int) -> Replica:
        return self.world.replicas[number % len(self.world.replicas)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The controllers log each failed call; a schedule makes thousands of them fail."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


def test_no_schedule_makes_an_early_stale_or_double_verdict_and_every_one_ends() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Schedule,
        settings=settings(
            max_examples=20_000 if DEEP else 300,
            stateful_step_count=60,
            derandomize=not DEEP,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            phases=[Phase.generate, Phase.shrink],
        ),
    )
