"""A schedule: what happens to one gang and its controllers, step by step, and how it ends.

A step is a name and two numbers, from which the step takes what it needs (which pod, how many calls). The same
schedule always plays the same way, so a failed one can be cut down and kept as a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple

from jobset_gate.kube.resources import CONFIGMAPS, JOBS
from tests.fakes.memory_api import WATCHED, Json
from tests.fakes.memory_client import Answer
from tests.stress.world.cluster import GangShape
from tests.stress.world.facts import alive
from tests.stress.world.replica import Replica
from tests.stress.world.world import RunEnding, World

MOST = 11
"""The highest of a step's numbers."""

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

NEW_GENERATIONS = (
    "suspend_or_resume",
    "suspend_and_resume_at_once",
    "restart",
    "the_jobset_is_created_again",
)
"""What ends a generation, or begins one."""

TROUBLES = (
    "something_happens_to_a_pod",
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
    run = Run(schedule)
    with run.world:
        for step in schedule.steps:
            run.take(step)
        run.world.end(schedule.fate)
    return run.world


def at_random(random: Random) -> Schedule:
    """Any schedule, with a few kinds of trouble: all at once would let no gang come to anything."""
    troubles = random.sample(TROUBLES, random.choice((0, 1, 2, 2, 3, 4, 6)))
    turns = random.sample(NEW_GENERATIONS, random.choice((0, 1, 1, 2, 3)))
    suspended = random.random() < 0.2
    menu = (*ORDINARY, *2 * troubles, *turns, *("suspend_or_resume",) * suspended)
    steps = [
        Step(random.choice(menu), random.randint(0, MOST), random.randint(0, MOST))
        for _ in range(random.choice((20, 60, 120)))
    ]
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
    return Schedule(
        shape=shape,
        replicas=random.choice((1, 1, 2)),
        suspended=suspended,
        straggler=random.random() < 0.4,
        fate=fate,
        steps=tuple(steps),
    )


def cut_down(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """A schedule that still fails and from which no single step can be left out."""
    size = max(1, len(schedule.steps) // 2)
    while True:
        first = 0
        while first < len(schedule.steps):
            shorter = replace(schedule, steps=schedule.steps[:first] + schedule.steps[first + size :])
            if fails(shorter):
                schedule = shorter
                continue
            first += size
        if size == 1:
            return schedule
        size //= 2


class Run:
    """What the steps do. What must not happen is the oracle's business."""

    def __init__(self, schedule: Schedule) -> None:
        self.world = World(schedule.shape, schedule.replicas)
        self.cluster = self.world.cluster
        self.straggler = schedule.straggler
        self.cluster.create(suspended=schedule.suspended)

    def take(self, step: Step) -> None:
        act: Callable[[int, int], None] = getattr(self, step.what)
        act(step.one, step.other)
        self.world.check()

    # --- The cluster goes on ---------------------------------------------------------------------------------------

    def the_cluster_acts(self, one: int, other: int) -> None:
        if one != 1:
            self.cluster.sync_jobset()
        if other % 3 == 0:
            self.cluster.collect()
        if one != 2:
            self.cluster.sync_jobs()

    def pods_start(self, one: int, other: int) -> None:
        for pod in self.startable()[: 1 + one % 4]:
            self.cluster.start(pod)

    def barriers_run_before_anybody_reports_it(self, one: int, other: int) -> None:
        for pod in self.startable()[: 1 + one % 4]:
            self.cluster.start(pod, tell=False)

    def barriers_ask(self, one: int, other: int) -> None:
        """At one of the controllers; most of them, or one a second time."""
        pods = self.cluster.waiting()
        for pod in pods[other % len(pods) if pods and one > 7 else 0 :]:
            self.world.streams.ask(pod, self.replica(one))

    def streams_break(self, one: int, other: int) -> None:
        """One of them, now and then all."""
        for number in range(one, one + (MOST if other > 8 else 1)):
            self.world.streams.break_off(number)

    def a_stream_is_dead(self, one: int, other: int) -> None:
        self.world.streams.swallow(one)
        if other % 3 == 0:
            self.world.streams.end_of_the_dead()

    def barriers_look(self, one: int, other: int) -> None:
        """At what their volume holds now, or at something older that their kubelet still has."""
        older = sorted(self.cluster.published)
        for pod in self.cluster.waiting():
            texts = [*self.cluster.readable(pod), *([older[other % len(older)]] if older and one > 5 else [])]
            for text in texts:
                if self.cluster.look(pod, text, tell=one % 2 == 0):
                    break

    def a_main_container_ends(self, one: int, other: int) -> None:
        pods = self.cluster.pods()
        if pods:
            self.cluster.finish_main(pods[one % len(pods)])

    def kubelets_report(self, one: int, other: int) -> None:
        for pod in self.cluster.pods():
            self.cluster.report(pod)

    def time_passes(self, one: int, other: int) -> None:
        self.world.loop.advance((1.0, 5.0, 31.0, 31.0, 70.0)[one % 5])
        for replica in self.world.replicas:
            replica.notice_silence()

    # --- The controllers work --------------------------------------------------------------------------------------

    def some_news_arrives(self, one: int, other: int) -> None:
        self.replica(one).hear(WATCHED[other % 4], 1 + other // 4)

    def a_controller_hears_and_works(self, one: int, other: int) -> None:
        for kind in WATCHED:
            self.replica(one).hear(kind)
        for _ in range(other):
            self.replica(one).answer()

    def a_call_goes_through(self, one: int, other: int) -> None:
        self.replica(one).answer(other)

    def everything_is_heard(self, one: int, other: int) -> None:
        self.world.deliver()

    def everything_calms_down(self, one: int, other: int) -> None:
        """Controllers and kubelets do what there is to do; only nodes do not come by themselves."""
        self.world.deliver()
        self.the_cluster_acts(0, 0)
        self.world.deliver()
        self.barriers_look(0, 0)
        self.kubelets_report(0, 0)
        if one % 2:
            self.terminating_pods_end(0, 0)
        self.world.deliver()

    # --- Pods, nodes, people ---------------------------------------------------------------------------------------

    def something_happens_to_a_pod(self, one: int, other: int) -> None:
        pods = self.cluster.pods()
        if pods:
            what = (self.cluster.fail, self.cluster.evict, self.cluster.vanish)[one % 3]
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
        self.world.clocks_differ()
        for pod in self.startable()[:1]:
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

    def a_job_is_created_again(self, one: int, other: int) -> None:
        jobs = self.world.api.all(JOBS)
        if jobs:
            self.cluster.replace_job(jobs[one % len(jobs)]["metadata"]["name"])

    def a_user_bypasses_the_gate(self, one: int, other: int) -> None:
        if self.cluster.going_on and one > 8:
            self.cluster.bypass()

    def a_job_completes_as_it_is_suspended(self, one: int, other: int) -> None:
        """Its pods end well, each in its main container, before anybody stops them: it is Complete and suspended."""
        if not self.cluster.going_on or self.cluster.suspended:
            return
        jobs = self.world.api.all(JOBS)
        self.cluster.suspend()
        self.cluster.sync_jobset()
        name = jobs[one % len(jobs)]["metadata"]["uid"] if jobs else ""
        for pod in self.cluster.pods():
            if pod["metadata"]["ownerReferences"][0]["uid"] == name:
                self.cluster.finish_main(pod)
        self.cluster.sync_jobs()

    def a_user_edits_the_clock(self, one: int, other: int) -> None:
        """To a time that cannot be, or to one that can."""
        self.world.edit_clock((-3000.0, -20.0, 20.0, 3000.0)[one % 4])

    def the_gang_is_resized(self, one: int, other: int) -> None:
        if self.cluster.going_on:
            self.cluster.resize(1 + one % 3)

    def the_jobset_is_created_again(self, one: int, other: int) -> None:
        if self.cluster.jobset is not None:
            self.cluster.delete()
        if one < MOST:
            self.cluster.create()

    def the_jobset_finishes(self, one: int, other: int) -> None:
        if self.cluster.going_on and one == MOST:
            self.cluster.finish()

    def a_user_destroys_the_gate(self, one: int, other: int) -> None:
        self.world.destroy_gate(
            ("delete", "garble", "empty", "disown", "unlabel", "forge an attempt", "forge an epoch")[one % 7]
        )

    # --- Faults ----------------------------------------------------------------------------------------------------

    def a_call_fails(self, one: int, other: int) -> None:
        self.replica(one).answer(other, Answer.REFUSED if other % 2 else Answer.LOST)

    def a_call_is_throttled(self, one: int, other: int) -> None:
        self.replica(one).answer(other, Answer.THROTTLED)

    def the_decision_is_throttled(self, one: int, other: int) -> None:
        """The write of a ConfigMap, whatever else waits for its answer."""
        for replica in self.world.replicas:
            for number, waiting in enumerate(replica.pending_calls):
                if waiting.call.kind == CONFIGMAPS and waiting.call.verb in ("create", "update"):
                    replica.answer(number, Answer.THROTTLED)
                    break

    def a_watch_falls_silent(self, one: int, other: int) -> None:
        self.replica(one).fall_silent(WATCHED[other % 4])

    def an_event_is_disturbed(self, one: int, other: int) -> None:
        replica, kind = self.replica(one), WATCHED[other % 4]
        inbox = replica.inbox[kind]
        if inbox and one < 4:
            inbox.popleft()
            replica.torn.add(kind)
        elif inbox and one < 8:
            inbox.append(inbox[0])
        elif inbox:
            inbox.rotate(1)

    def a_list_is_created_again(self, one: int, other: int) -> None:
        """Other things may happen until it arrives: it ends when news is awaited, or the next one begins."""
        replica, kind = self.replica(one), WATCHED[other % 4]
        if replica.listing(kind):
            replica.end_list(kind)
        else:
            replica.begin_list(kind)

    def a_controller_is_killed(self, one: int, other: int) -> None:
        self.replica(one).kill()
        if other:
            self.replica(one).boot()

    def a_clock_is_set(self, one: int, other: int) -> None:
        self.world.set_clock(self.replica(one), (-60.0, 0.0, 60.0)[other % 3])

    # --- Who ---------------------------------------------------------------------------------------------------------

    def startable(self) -> list[Json]:
        first = self.cluster.first_slot
        return [pod for pod in self.cluster.unstarted() if not (self.straggler and first(pod))]

    def replica(self, number: int) -> Replica:
        return self.world.replicas[number % len(self.world.replicas)]
