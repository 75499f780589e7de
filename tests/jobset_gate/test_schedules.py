"""Whatever the schedule: never an early, stale or double verdict, and always an end (A4-A7, A10; faults.md 7-12).

The controllers' own code runs on late, torn and reordered views of a small world, one API call at a time, and may be
killed between any two of them. `HYPOTHESIS_PROFILE=deep` tries many more schedules than every run of the tests does.
"""

import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS
from tests.jobset_gate.world.client import Answer
from tests.jobset_gate.world.cluster import Shape
from tests.jobset_gate.world.replica import Replica
from tests.jobset_gate.world.world import World

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"

SOME = st.integers(0, 5)
FEW = st.integers(1, 3)
SECONDS = st.sampled_from((0.5, 3.0, 10.0, 31.0, 70.0))
KINDS = st.sampled_from((JOBSETS, JOBS, PODS, CONFIGMAPS))
SHAPES = st.builds(
    Shape,
    replicas=st.integers(1, 2),
    width=st.integers(1, 3),
    loaders=st.integers(0, 2),
    timeout=st.sampled_from((30, 30, 60, None)),
    releases_on_timeout=st.booleans(),
    pods_restart=st.booleans(),
)


class Schedule(RuleBasedStateMachine):
    """Rules are what may happen next; what must not happen is the referee's business."""

    world: World

    @initialize(
        shape=SHAPES,
        replicas=st.integers(1, 2),
        suspended=st.booleans(),
        all_start=st.booleans(),
        channels=st.sampled_from(((True, True), (True, False), (False, True))),
        resume=st.booleans(),
    )
    def begin(
        self,
        shape: Shape,
        replicas: int,
        suspended: bool,
        all_start: bool,
        channels: tuple[bool, bool],
        resume: bool,
    ) -> None:
        self.world = World(shape, replicas)
        self.cluster = self.world.cluster
        self.fate = {"all_start": all_start, "channels": channels, "resume": resume}
        self.cluster.create(suspended=suspended)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        with self.world as world:
            world.end(**self.fate)  # type: ignore[arg-type]  # one dict of three types

    @invariant()
    def nothing_forbidden_has_happened(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def there_is_a_jobset(self) -> bool:
        jobset = self.cluster.jobset
        return jobset is not None and not jobset["status"].get("terminalState")

    def one(self, number: int) -> Replica:
        return self.world.replicas[number % len(self.world.replicas)]

    # --- The cluster goes on -------------------------------------------------------------------------------------------

    @rule(jobset=st.booleans(), jobs=st.booleans(), garbage=st.booleans())
    def controllers_of_the_cluster_act(self, jobset: bool, jobs: bool, garbage: bool) -> None:
        if jobset:
            self.cluster.sync_jobset()
        if garbage:
            self.cluster.collect()
        if jobs:
            self.cluster.sync_jobs()

    @rule(many=FEW, ahead=st.sampled_from((0.0, 0.0, 0.0, 90.0, -90.0)))
    def pods_start(self, many: int, ahead: float) -> None:
        for pod in self.cluster.unstarted()[:many]:
            self.cluster.start(pod, ahead)
            self.world.referee.clocks_set |= ahead != 0

    @rule(which=SOME, what=st.sampled_from(("fail", "evict", "vanish", "finish_main")))
    def something_happens_to_a_pod(self, which: int, what: str) -> None:
        pods = self.cluster.pods()
        if pods:
            getattr(self.cluster, what)(pods[which % len(pods)])

    @rule()
    def terminating_pods_end(self) -> None:
        for pod in self.cluster.pods():
            if "deletionTimestamp" in pod["metadata"]:
                self.cluster.vanish(pod)

    @rule(which=SOME)
    def a_barrier_runs_again(self, which: int) -> None:
        pods = [pod for pod in self.cluster.pods() if pod["metadata"]["uid"] in self.cluster.ran]
        if pods and pods[which % len(pods)]["status"]["phase"] == "Pending":
            self.cluster.start(pods[which % len(pods)])

    @rule(tell=st.booleans(), stale=SOME)
    def barriers_look(self, tell: bool, stale: int) -> None:
        """At what their volume holds now, or at something older that their kubelet still has."""
        older = sorted(self.cluster.published)
        for pod in self.cluster.waiting():
            texts = [*self.cluster.readable(pod), *([older[stale % len(older)]] if older else [])]
            for text in texts:
                if self.cluster.look(pod, text, tell=tell):
                    break

    @rule()
    def kubelets_report(self) -> None:
        for pod in self.cluster.pods():
            self.cluster.report(pod)

    # --- People --------------------------------------------------------------------------------------------------------

    @precondition(there_is_a_jobset)
    @rule()
    def suspend_or_resume(self) -> None:
        if self.cluster.suspended:
            self.cluster.resume()
        else:
            self.cluster.suspend()

    @precondition(there_is_a_jobset)
    @rule()
    def suspend_and_resume_at_once(self) -> None:
        if not self.cluster.suspended:
            self.cluster.suspend()
            self.cluster.resume()

    @precondition(there_is_a_jobset)
    @rule()
    def restart(self) -> None:
        self.cluster.restart()

    @precondition(there_is_a_jobset)
    @rule(which=SOME)
    def a_job_is_made_anew(self, which: int) -> None:
        jobs = self.world.api.all(JOBS)
        if jobs:
            self.cluster.replace_job(jobs[which % len(jobs)]["metadata"]["name"])

    @precondition(there_is_a_jobset)
    @rule(what=st.sampled_from(("bypass", "finish", "wider", "narrower")))
    def somebody_changes_the_jobset(self, what: str) -> None:
        if what in ("bypass", "finish"):
            getattr(self.cluster, what)()
        else:
            self.cluster.resize(self.cluster.shape.width + (1 if what == "wider" else 0))

    @rule(again=st.booleans())
    def the_jobset_is_deleted(self, again: bool) -> None:
        if self.cluster.jobset is not None:
            self.cluster.delete()
        if again:
            self.cluster.create()

    @rule(how=st.sampled_from(("delete", "garble", "empty", "disown", "unlabel")))
    def somebody_destroys_the_gate(self, how: str) -> None:
        self.world.destroy_gate(how)

    # --- The controllers -----------------------------------------------------------------------------------------------

    @rule(which=SOME, kind=KINDS, many=FEW)
    def some_news_arrives(self, which: int, kind: object, many: int) -> None:
        self.one(which).hear(kind, many)  # type: ignore[arg-type]

    @rule(which=SOME, calls=SOME)
    def a_controller_hears_everything_and_works(self, which: int, calls: int) -> None:
        for kind in (JOBSETS, JOBS, PODS, CONFIGMAPS):
            self.one(which).hear(kind)
        for _ in range(calls):
            self.one(which).answer()

    @rule()
    def everything_calms_down(self) -> None:
        self.world.deliver()

    @rule(which=SOME, number=SOME, answer=st.sampled_from(Answer))
    def a_call_goes_through_or_not(self, which: int, number: int, answer: Answer) -> None:
        self.one(which).answer(number, answer)

    @rule(which=SOME, kind=KINDS, how=st.sampled_from(("lost", "doubled", "swapped")))
    def an_event_is_disturbed(self, which: int, kind: object, how: str) -> None:
        replica = self.one(which)
        inbox = replica.inbox[kind]  # type: ignore[index]
        if not inbox:
            return
        if how == "lost":
            inbox.popleft()
            replica.torn.add(kind)  # type: ignore[arg-type]
        elif how == "doubled":
            inbox.append(inbox[0])
        else:
            inbox.rotate(1)

    @rule(which=SOME, kind=KINDS)
    def a_list_is_made_anew(self, which: int, kind: object) -> None:
        self.one(which).relist(kind)  # type: ignore[arg-type]

    @rule(which=SOME, back=st.booleans())
    def a_controller_is_killed(self, which: int, back: bool) -> None:
        self.one(which).kill()
        if back:
            self.one(which).boot()

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.world.loop.advance(seconds)

    @rule(which=SOME, seconds=st.sampled_from((-60.0, 60.0)))
    def a_clock_is_set(self, which: int, seconds: float) -> None:
        self.world.set_clock(self.one(which), seconds)


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
        ),
    )
