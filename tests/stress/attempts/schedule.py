"""Random schedules of the model: what happens to one start group and two controllers, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.stress.attempts.judge import GroupShape
from tests.stress.attempts.replica import ModelReplica
from tests.stress.attempts.world import GroupWorld, TruePod

ROUNDS = 12
"""Passes after which a group that nothing disturbs has come to its end."""
NUMBERS = 16


@dataclass(frozen=True, slots=True)
class AttemptSchedule:
    """All that a run depends on. Its repr can be pasted into a test."""

    shape: GroupShape = field(default_factory=GroupShape)
    steps: tuple[tuple[str, int], ...] = ()
    """The name of a method of `AttemptRun`, and a number from which it takes what it needs."""
    all_start: bool = True


class AttemptRun:
    """The steps."""

    def __init__(self, schedule: AttemptSchedule, replica: Callable[[GroupWorld], ModelReplica] = ModelReplica) -> None:
        self.world = GroupWorld(schedule.shape)
        self.replicas = (replica(self.world), replica(self.world))

    def owner_fills(self, number: int) -> None:
        """Mostly all pods at once."""
        wanted = self.world.wanted()
        for _ in range(min(wanted, 1) if number % 3 == 0 else wanted):
            self.world.create()

    def a_pod_misses_the_webhook(self, _: int) -> None:
        if self.world.wanted():
            self.world.create(bare=True)

    def a_pod_starts(self, number: int) -> None:
        self._on_pod(number, [pod for pod in self.world.live() if not pod.runs], self.world.start)

    def all_pods_start(self, number: int) -> None:
        for pod in self.world.live():
            self.world.start(pod)
            if number % 2:
                self.world.report(pod)

    def kubelets_report(self, number: int) -> None:
        """All of them, or one."""
        for pod in self.world.live() if number % 3 else self.world.live()[number % 4 : number % 4 + 1]:
            self.world.report(pod)

    def barriers_read(self, number: int) -> None:
        for pod in self.world.live():
            self.world.read_annotation(pod)
            if number % 2:
                self.world.report(pod)

    def a_barrier_asks(self, number: int) -> None:
        self._on_pod(number, [pod for pod in self.world.live() if pod.runs and pod.obeyed is None], self._ask)

    def a_pod_is_deleted(self, number: int) -> None:
        self._on_pod(
            number, list(self.world.pods.values()), lambda pod: self.world.delete(pod, at_once=number % 3 == 0)
        )

    def a_pod_is_replaced(self, number: int) -> None:
        self.a_pod_is_deleted(number)
        self.owner_fills(1)

    def all_pods_are_deleted(self, number: int) -> None:
        for pod in list(self.world.pods.values()):
            if number % 4 or pod.seen.phase != "Succeeded":
                self.world.delete(pod, at_once=number % 2 == 0)

    def deletions_end(self, _: int) -> None:
        for pod in [pod for pod in self.world.pods.values() if pod.seen.deleting]:
            self.world.delete(pod, at_once=True)

    def a_pod_succeeds(self, number: int) -> None:
        self._on_pod(number, self.world.live(), lambda pod: self.world.end(pod, "Succeeded"))

    def all_pods_succeed(self, _: int) -> None:
        for pod in self.world.live():
            self.world.end(pod, "Succeeded")

    def a_pod_fails(self, number: int) -> None:
        self._on_pod(number, self.world.live(), lambda pod: self.world.end(pod, "Failed"))

    def a_node_restarts(self, number: int) -> None:
        self._on_pod(number, self.world.live(), self.world.run_again)

    def the_size_changes(self, number: int) -> None:
        self.world.size = 1 + number % 3

    def the_config_map_is_deleted(self, _: int) -> None:
        self.world.lose_gate()

    def time_passes(self, number: int) -> None:
        self.world.now += (1, 5, 31, 70)[number % 4]

    def a_controller_hears_pods(self, number: int) -> None:
        self._replica(number).hear_pods((1, 2, 4, 1000)[number // 2 % 4])

    def a_controller_hears_the_config_map(self, number: int) -> None:
        self._replica(number).hear_gate()

    def a_controller_goes_on(self, number: int) -> None:
        self._replica(number).step()

    def a_controller_works(self, number: int) -> None:
        """On what it has heard, or on all there is."""
        replica = self._replica(number)
        if number // 2 % 2:
            replica.hear_pods()
            replica.hear_gate()
        replica.finish()

    def a_controller_is_killed(self, number: int) -> None:
        self._replica(number).boot()

    def end(self, *, all_start: bool) -> None:
        """All is heard and done until nothing changes; then the longest time passes, and the same again."""
        world = self.world
        # One that joined an attempt after its timeout keeps that attempt for ever: a user has to delete it.
        for pod in [pod for pod in world.pods.values() if pod.is_bare]:
            world.delete(pod, at_once=True)
        for round_ in range(2 * ROUNDS):
            if round_ < ROUNDS:
                self.owner_fills(1)
            if round_ == ROUNDS:
                world.now += 200
            straggler = None if all_start else next((pod for pod in world.live() if not pod.runs), None)
            for pod in world.live():
                if pod is not straggler:
                    world.start(pod)
            self.barriers_read(1)
            self.kubelets_report(1)
            self.deletions_end(0)
            for replica in self.replicas:
                replica.hear_pods()
                replica.hear_gate()
                replica.finish()
            world.now += 1
        world.ended(all_started=all_start)

    # --- Who ---------------------------------------------------------------------------------------------------------

    def _replica(self, number: int) -> ModelReplica:
        return self.replicas[number % 2]

    def _ask(self, pod: TruePod) -> None:
        for replica in self.replicas:
            replica.ask(pod.seen.uid)

    @staticmethod
    def _on_pod(number: int, pods: list[TruePod], do: Callable[[TruePod], None]) -> None:
        if pods:
            do(pods[number % len(pods)])


ORDINARY = (
    *3 * ("owner_fills",),
    "a_pod_starts",
    "all_pods_start",
    *2 * ("kubelets_report",),
    *2 * ("barriers_read",),
    "a_barrier_asks",
    *3 * ("a_controller_hears_pods",),
    "a_controller_hears_the_config_map",
    *3 * ("a_controller_goes_on",),
    *2 * ("a_controller_works",),
    "deletions_end",
    "time_passes",
)
TROUBLES = (
    "a_pod_is_deleted",
    "a_pod_is_replaced",
    "a_pod_misses_the_webhook",
    "all_pods_are_deleted",
    "a_pod_succeeds",
    "all_pods_succeed",
    "a_pod_fails",
    "a_node_restarts",
    "the_size_changes",
    "the_config_map_is_deleted",
    "a_controller_is_killed",
)


def attempt_steps(text: str) -> tuple[tuple[str, int], ...]:
    """Such as `owner_fills 1, time_passes 2`."""
    words = (it.split(" ") for it in text.split(", "))
    return tuple((name, int(number)) for name, number in words)


def attempts_at_random(seed: int) -> AttemptSchedule:
    """Any schedule, with a few kinds of trouble."""
    random = Random(seed)  # noqa: S311 - chance that can be repeated
    menu = ORDINARY + 2 * tuple(random.sample(TROUBLES, random.choice((1, 2, 2, 3, 4))))
    steps = [(random.choice(menu), random.randrange(NUMBERS)) for _ in range(random.choice((15, 30, 50)))]
    return AttemptSchedule(
        shape=GroupShape(
            size=random.choice((1, 2, 2, 3)),
            timeout=random.choice((30, 30, 60, None)),
            releases_on_timeout=random.random() < 0.3,
            of_job=random.random() < 0.25,
        ),
        steps=(("owner_fills", 1), *steps),
        all_start=random.random() < 0.6,
    )


def play_attempts(schedule: AttemptSchedule, replica: Callable[[GroupWorld], ModelReplica] = ModelReplica) -> None:
    """Plays it to its end. Raises AssertionError if something forbidden happens."""
    run = AttemptRun(schedule, replica)
    for name, number in schedule.steps:
        getattr(run, name)(number)
    run.end(all_start=schedule.all_start)
