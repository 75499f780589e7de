"""The steps of schedules of a group of a LeaderWorkerSet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobset_gate.kube.resources import CONFIGMAPS, PODS, STATEFUL_SETS
from tests.stress.leaders.cluster import LEADER, LeaderCluster
from tests.stress.ring import steps as ring
from tests.stress.world.steps import Run

if TYPE_CHECKING:
    from tests.stress.world.schedule import Schedule


class LeaderRun(ring.RingRun):
    """What the steps do."""

    kinds = (PODS, STATEFUL_SETS, CONFIGMAPS)

    def __init__(self, schedule: Schedule) -> None:
        Run.__init__(self, schedule)
        assert isinstance(self.cluster, LeaderCluster)
        self.ring = self.group = self.cluster

    def the_leader_is_deleted(self, one: int, other: int) -> None:
        """In the background; now and then its workers go first, or it waits for its end."""
        leader = self.group.leader
        if other % 4 == 1:
            for pod in self.group.pods():
                (self.group.vanish if one % 2 else self.group.evict)(pod)
        elif leader is not None:
            (self.group.evict if other % 4 == 2 else self.group.vanish)(leader)
        if one % 3:
            self.group.sync_jobs()

    def the_stateful_set_is_deleted(self, one: int, other: int) -> None:
        """By a user; its pods go later."""
        if self.group.api.get(STATEFUL_SETS, LEADER) is not None:
            self.group.api.remove(STATEFUL_SETS, LEADER)

    def a_pod_misses_the_webhook(self, one: int, other: int) -> None:
        self.something_happens_to_a_pod(one, other)
        self.group.next_is_bare = True
        self.group.sync_jobs()


ORDINARY = ring.ORDINARY
TROUBLES = (
    "something_happens_to_a_pod",
    *2 * ("the_leader_is_deleted",),
    "the_stateful_set_is_deleted",
    "all_pods_are_deleted",
    "a_pod_is_replaced",
    "a_pod_misses_the_webhook",
    "the_size_changes",
    "the_config_map_is_deleted",
    "a_node_restarts",
    "terminating_pods_end",
    "a_stream_is_dead",
    "a_call_fails",
    "a_call_is_throttled",
    "the_decision_is_throttled",
    "a_watch_falls_silent",
    "an_event_is_disturbed",
    "a_list_is_created_again",
    "a_controller_is_killed",
)
