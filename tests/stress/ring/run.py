"""The ring's world, the steps of its schedules, and schedules at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random

from jobset_gate.kube.resources import CONFIGMAPS, PODS
from tests.fakes.instant_loop import InstantLoop
from tests.fakes.memory_api import Api
from tests.stress.ring.cluster import RingCluster
from tests.stress.ring.oracle import RingOracle
from tests.stress.world.cluster import GangShape
from tests.stress.world.replica import Replica
from tests.stress.world.schedule import Step
from tests.stress.world.steps import MOST, Run
from tests.stress.world.streams import FakeStreams
from tests.stress.world.world import RunEnding, World

KINDS = (PODS, CONFIGMAPS)


@dataclass(frozen=True, slots=True)
class RingSchedule:
    """All that a run depends on. Its repr can be pasted into a test."""

    shape: GangShape = field(default_factory=lambda: GangShape(source="startgroup"))
    replicas: int = 1
    straggler: bool = False
    all_start: bool = True
    steps: tuple[Step, ...] = ()


class RingWorld(World):
    """As the world of a JobSet, with another cluster and another judge."""

    def __init__(self, shape: GangShape, replicas: int = 1) -> None:
        self.loop = InstantLoop()
        self.api = Api()
        self.ring = RingCluster(self.api, self.now, shape)
        self.cluster = self.ring
        self.judge = RingOracle(self.api, self.ring)
        self.streams = FakeStreams(self.cluster, self.loop)
        self.replicas = [Replica(f"replica-{n}", self.api, self.loop, self.now, shape.source) for n in range(replicas)]
        for one in self.replicas:
            one.memory.gate_written = partial(self.judge.written, one)
            one.memory.gate_removed = self.judge.removed
            one.boot()

    def check(self) -> None:
        self.judge.check()
        for foul in (*self.judge.wrongs, *(bug for replica in self.replicas for bug in replica.bugs)):
            raise foul

    def _ended(self) -> None:
        self.check()


class RingRun(Run):
    """What the steps do; those of a workload and its Jobs are not played."""

    def __init__(self, schedule: RingSchedule) -> None:
        self.world = self.ring = RingWorld(schedule.shape, schedule.replicas)
        self.cluster = self.ring.cluster
        self.straggler = schedule.straggler
        self.cluster.create()

    def all_pods_are_deleted(self, one: int, other: int) -> None:
        """To be restarted as a whole."""
        for pod in self.cluster.pods():
            (self.cluster.vanish if one % 3 else self.cluster.evict)(pod)
        if other % 2:
            self.cluster.sync_jobs()

    def a_pod_is_replaced(self, one: int, other: int) -> None:
        self.something_happens_to_a_pod(one, other)
        self.cluster.sync_jobs()

    def a_pod_misses_the_webhook(self, one: int, other: int) -> None:
        self.something_happens_to_a_pod(one, other)
        self.ring.ring.make_pod(bare=True)

    def the_size_changes(self, one: int, other: int) -> None:
        self.ring.ring.size = 1 + one % 3

    def the_config_map_is_deleted(self, one: int, other: int) -> None:
        self.ring.ring.lose_gate()

    def a_node_restarts(self, one: int, other: int) -> None:
        """Init containers of its pods run again."""
        pods = [pod for pod in self.cluster.pods() if pod["status"]["phase"] == "Running"]
        if pods:
            self.cluster.start(pods[one % len(pods)])

    def a_watch_falls_silent(self, one: int, other: int) -> None:
        self.replica(one).fall_silent(KINDS[other % 2])

    def an_event_comes_twice(self, one: int, other: int) -> None:
        inbox = self.replica(one).inbox[KINDS[other % 2]]
        if inbox:
            inbox.append(inbox[-1])

    def a_list_is_made_again(self, one: int, other: int) -> None:
        one_of, kind = self.replica(one), KINDS[other % 2]
        (one_of.end_list if one_of.listing(kind) else one_of.begin_list)(kind)


ORDINARY = (
    *3 * ("the_cluster_acts",),
    *2 * ("pods_start",),
    *2 * ("barriers_run_before_anybody_reports_it",),
    *2 * ("barriers_ask",),
    "streams_break",
    *4 * ("a_controller_hears_and_works",),
    *3 * ("a_call_goes_through",),
    *2 * ("some_news_arrives",),
    "everything_calms_down",
    "barriers_look",
    "kubelets_report",
    "time_passes",
)
TROUBLES = (
    "something_happens_to_a_pod",
    "all_pods_are_deleted",
    "a_pod_is_replaced",
    "a_pod_misses_the_webhook",
    "the_size_changes",
    "the_config_map_is_deleted",
    "a_node_restarts",
    "a_main_container_ends",
    "terminating_pods_end",
    "a_stream_is_dead",
    "a_call_fails",
    "a_call_is_throttled",
    "the_decision_is_throttled",
    "a_watch_falls_silent",
    "an_event_comes_twice",
    "a_list_is_made_again",
    "a_controller_is_killed",
)


def ring_at_random(seed: int) -> RingSchedule:
    """Any schedule, with a few kinds of trouble."""
    random = Random(seed)  # noqa: S311 - chance that can be repeated
    menu = ORDINARY + 2 * tuple(random.sample(TROUBLES, random.choice((1, 2, 2, 3, 4, 6))))
    steps = [
        Step(random.choice(menu), random.randint(0, MOST), random.randint(0, MOST))
        for _ in range(random.choice((20, 50, 80)))
    ]
    shape = GangShape(
        width=random.choice((1, 2, 2, 3)),
        timeout=random.choice((30, 30, 60, None)),
        releases_on_timeout=random.random() < 0.3,
        source="startgroup",
    )
    return RingSchedule(
        shape=shape,
        replicas=random.choice((1, 2, 2)),
        straggler=random.random() < 0.3,
        all_start=random.random() < 0.6,
        steps=tuple(steps),
    )


def play_ring(schedule: RingSchedule) -> None:
    """Plays it to its end. Raises AssertionError if something forbidden happens."""
    run = RingRun(schedule)
    with run.world:
        for step in schedule.steps:
            run.take(step)
        run.world.end(RunEnding(all_start=schedule.all_start))
        run.ring.judge.ended(all_started=schedule.all_start)
