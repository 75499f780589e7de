"""The steps of schedules of gangs whose pods are gated one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from jobset_gate.kube.resources import CONFIGMAPS, PODS, STATEFUL_SETS, Resource
from tests.stress.members.cluster import LEADER, LeaderCluster, MemberCluster
from tests.stress.world.steps import Run

if TYPE_CHECKING:
    from tests.stress.world.schedule import Schedule


class MemberRun(Run):
    """What the steps do; those of a workload and its Jobs are not played."""

    kinds: Sequence[Resource] = (PODS, CONFIGMAPS)

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        assert isinstance(self.cluster, MemberCluster)
        self.members = self.cluster

    def all_pods_are_deleted(self, one: int, other: int) -> None:
        """To be restarted as a whole."""
        for pod in self.cluster.pods():
            (self.cluster.vanish if one % 3 else self.cluster.evict)(pod)
        if other % 2:
            self.cluster.sync_jobs()

    def a_pod_is_replaced(self, one: int, other: int) -> None:
        self.something_happens_to_a_pod(one, other)
        self.cluster.sync_jobs()

    def all_main_containers_end(self, one: int, other: int) -> None:
        for pod in self.cluster.pods():
            self.cluster.finish_main(pod)

    def a_pod_misses_the_webhook(self, one: int, other: int) -> None:
        self.something_happens_to_a_pod(one, other)
        self.members.miss_webhook()

    def the_size_changes(self, one: int, other: int) -> None:
        self.members.size = 1 + one % 3

    def the_config_map_is_edited(self, one: int, other: int) -> None:
        self.world.destroy_gate(("delete", "garble", "empty", "disown", "unlabel")[one % 5])

    @override
    def an_event_is_disturbed(self, one: int, other: int) -> None:
        """Pods are listed again at once: in the second that an informer takes, gone pods may still count (A4)."""
        super().an_event_is_disturbed(one, other)
        replica = self.replica(one)
        if PODS in replica.torn:
            replica.begin_list(PODS)

    def a_node_restarts(self, one: int, other: int) -> None:
        """Init containers of its pods run again."""
        pods = [pod for pod in self.cluster.pods() if pod["status"]["phase"] == "Running"]
        if pods:
            self.cluster.start(pods[one % len(pods)])


class LeaderRun(MemberRun):
    """And those of a group of a LeaderWorkerSet."""

    kinds = (PODS, STATEFUL_SETS, CONFIGMAPS)

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        assert isinstance(self.cluster, LeaderCluster)
        self.group = self.cluster

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
_OF_PODS = (
    "all_pods_are_deleted",
    "a_pod_is_replaced",
    "a_pod_misses_the_webhook",
    "the_size_changes",
    "the_config_map_is_edited",
    "a_node_restarts",
)
_FAULTS = (
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
_LEADERS = (*2 * ("the_leader_is_deleted",), "the_stateful_set_is_deleted")
TROUBLES = {
    "startgroup": (
        "something_happens_to_a_pod",
        *_OF_PODS,
        "a_main_container_ends",
        "all_main_containers_end",
        *_FAULTS,
    ),
    "lws": ("something_happens_to_a_pod", *_LEADERS, *_OF_PODS, *_FAULTS),
}
