"""What is placed: groups of pods that are all alike, on nodes that have room for twice as many."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bench.scale import Scale
from jobset_gate import names

Json = dict[str, Any]

POOL = "bench.test/pool"
"""Label of the nodes that the pods are for."""
GROUP = "bench.test/group"
"""Label of the pods: which group, for those who count."""
UNKNOWN = "bench.test/separate-pod-group"
"""Label of the same size as the one that names a group to jobset-gate, where that is not to see it: the pods are alike
in all ways."""
FLOOR_GATE = "bench.test/gate"
PODS_PER_NODE = 20
NODES = 1000


class Placer(StrEnum):
    """How the pods come to be placed."""

    FREE = "a"
    """No gates: the scheduler takes them as they come."""
    FLOOR = "b"
    """A gate in their template, which the barest loop removes as soon as a group is complete."""
    OURS = "c"
    """jobset-gate: webhook and controller."""


TITLES = {Placer.FREE: "(a) no gates", Placer.FLOOR: "(b) bare loop", Placer.OURS: "(c) jobset-gate"}


@dataclass(frozen=True, slots=True)
class LoadShape:
    """So many groups of so many pods."""

    groups: int
    pods: int

    @property
    def size(self) -> int:
        return self.groups * self.pods

    def __str__(self) -> str:
        return f"{self.groups:,} x {self.pods:,}"


def shapes(scale: Scale) -> list[LoadShape]:
    """Many small groups, and few large ones."""
    return [LoadShape(scale.size(1000, least=2), 10), LoadShape(10, scale.size(1000, least=2))]


def nodes(scale: Scale) -> list[Json]:
    """Enough for the pods of one run, twice."""
    return [_node(f"bench-{index}") for index in range(scale.size(NODES, least=2))]


def order(runs: int) -> list[Placer]:
    """All ways right after one another in each run, in another order each time: (b) is before (c) and after it in turn,
    and in three runs each way is first, second and last.
    """
    a, b, c = Placer
    orders = ((a, b, c), (c, a, b), (b, c, a), (c, b, a), (b, a, c), (a, c, b))
    return [way for run in range(runs) for way in orders[run % len(orders)]]


def group_name(index: int) -> str:
    return f"g{index}"


def pod(way: Placer, group: int, index: int) -> Json:
    """A pod as its owner's template would make it."""
    name = group_name(group)
    labels = {GROUP: name, names.PLUGINS_NAME if way is Placer.OURS else UNKNOWN: name}
    spec: Json = {
        "nodeSelector": {POOL: "yes"},
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}}],
    }
    if way is Placer.FLOOR:
        spec["schedulingGates"] = [{"name": FLOOR_GATE}]
    return {"metadata": {"name": f"{name}-{index}", "labels": labels}, "spec": spec}


def pod_group(group: int, shape: LoadShape) -> Json:
    """Its PodGroup, for the way that has one."""
    return {"metadata": {"name": group_name(group)}, "spec": {"minMember": shape.pods, "scheduleTimeoutSeconds": 600}}


def _node(name: str) -> Json:
    room = {"cpu": "64", "memory": "256Gi", "pods": str(PODS_PER_NODE)}
    return {
        "metadata": {"name": name, "labels": {POOL: "yes", "kubernetes.io/hostname": name}},
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }
