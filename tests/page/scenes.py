"""What there is to see in a cluster of the tests."""

from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import GangKey, PendingReason, PodSeen, VerdictKind
from tests.fakes import gangs
from tests.fakes.podgroups import snapshots
from tests.fakes.podgroups.objects import pod as group_pod
from tests.fakes.podgroups.objects import pod_group
from tests.fakes.served_page import ServedPage
from tests.fakes.wire_objects import TEN_O_CLOCK

STARTED: Final = TEN_O_CLOCK + 30
NOW: Final = TEN_O_CLOCK + 60
NO_ROOM: Final = "0/40 nodes are available: 40 Insufficient nvidia.com/gpu."
TEAM: Final = "team-a"


def here(count: int) -> list[PodSeen]:
    """So many pods that have started."""
    return [gangs.pod(index, created=TEN_O_CLOCK, barrier_since=STARTED) for index in range(count)]


def put(stage: ServedPage, name: str, *pods: PodSeen, namespace: str = TEAM) -> GangKey:
    """A gang of two that waits, whose clock began half a minute ago."""
    uid = f"{namespace}-{name}"
    clock = gangs.clock(STARTED, uid=uid)
    home = names.config_map_name(name)
    gate = gangs.config_map(namespace=namespace, name=home, uid=f"{uid}-gate", workload_uid=uid, waiting_since=clock)
    return stage.put(gangs.jobset(namespace=namespace, name=name, uid=uid, created=TEN_O_CLOCK), *pods, gate=gate)


def short_of_one(stage: ServedPage, name: str, *, namespace: str = TEAM) -> GangKey:
    """One pod has started, there is no room for the other."""
    lacking = gangs.waiting_pod(1, PendingReason.UNSCHEDULED, NO_ROOM, created=TEN_O_CLOCK)
    return put(stage, name, *here(1), lacking, namespace=namespace)


def everything(stage: ServedPage) -> None:
    """One of each: waiting, released, timed out, and a pod group."""
    short_of_one(stage, "waits")
    stage.decide(put(stage, "runs", *here(2)))
    stage.decide(short_of_one(stage, "late", namespace="team-b"), VerdictKind.TIMEOUT)
    a_group(stage)


def a_group(stage: ServedPage) -> None:
    """Two pods are held for a third."""
    stage.groups.put(snapshots.group_snapshot(group_pod("p0"), group_pod("p1"), group=pod_group()))
