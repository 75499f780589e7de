"""Random groups with nodes of their own, from a seed: all that Fit models, in any combination.

A group of pods that are alike has just as many as Fit finds room for, or one more: if it errs in anything, that shows.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape
from tests.fakes.podgroups.objects import read_node
from tests.flow.podgroups import environment

Json = dict[str, Any]
CASE: Final = "case.test/number"
"""Label of a case's nodes, which its pods select: no case's pods land on another's nodes."""
GPU: Final = "example.com/gpu"
ZONES: Final = ("a", "b", "c")
OVERHEAD: Final = {"cpu": "500m"}
"""Of the runtime class."""
MOST: Final = 9
"""Pods of one group."""
TAINTS: Final = (("busy", "yes", "NoSchedule"), ("leaving", "", "NoExecute"), ("slow", "yes", "PreferNoSchedule"))


@dataclass
class FitCase:
    """A group of so many pods on so many nodes. `pods` are specs; what is bound beforehand is `taken`."""

    number: int
    nodes: list[Json]
    pods: list[Json]
    minimum: int
    taken: list[tuple[int, str]] = field(default_factory=list)
    """(Index of the node, cpu)."""

    @property
    def name(self) -> str:
        return f"case-{self.number}"

    @property
    def alike(self) -> bool:
        """All its pods are of one kind: then its room is known exactly."""
        return all(it == self.pods[0] for it in self.pods)


def cases(seed: int, count: int, runtime_class: str) -> list[FitCase]:
    """`runtime_class`: the name of one with an overhead."""
    return [
        _case(random.Random(f"{seed}.{number}"), number, runtime_class)  # noqa: S311 - the same every time
        for number in range(count)
    ]


def _case(rng: random.Random, number: int, runtime_class: str) -> FitCase:
    nodes = [_node(rng, number) for _ in range(rng.randint(2, 3))]
    taken = [(rng.randrange(len(nodes)), rng.choice(("500m", "1", "2")))] if rng.random() < 0.3 else []
    kinds = [_spec(rng, number, runtime_class) for _ in range(1 if rng.random() < 0.85 else 2)]
    if len(kinds) > 1:
        many = rng.randint(2, 6)
        pods = [kinds[it % 2] for it in range(many)]
        return FitCase(number, nodes, pods, rng.randint(many - 1, many), taken)
    most = min(MOST, _places(nodes, taken, kinds[0]))
    many = most + 1 if most == 0 or (most < MOST and rng.random() < 0.5) else most
    return FitCase(number, nodes, kinds * many, many, taken)


def _places(nodes: Sequence[Json], taken: Sequence[tuple[int, str]], spec: Json) -> int:
    """For how many of such pods Fit finds room."""
    infos = []
    for number, shape in enumerate(nodes):
        body = node(str(number), shape)
        free = dict(constraints.parse_amounts(body["status"]["allocatable"]))
        for cpu in (cpu for where, cpu in taken if where == number):
            free = constraints.subtract(free, constraints.parse_amounts({"cpu": cpu}) | {constraints.PODS: 1000})
        infos.append(NodeInfo(node=read_node(body).node, free=free, empty=free))
    whole = spec | ({"overhead": OVERHEAD} if "runtimeClassName" in spec else {})
    return NodeSnapshot(infos).capacity(
        PodShape(selection=constraints.pod_node_selection(whole), requests=constraints.pod_requests(whole), count=1)
    )


def _node(rng: random.Random, number: int) -> Json:
    """Labels, taints, what it has, and whether pods may come at all."""
    labels = {CASE: str(number), "rank": str(rng.randint(1, 9))}
    if rng.random() < 0.8:
        labels["zone"] = rng.choice(ZONES)
    room = {
        "cpu": rng.choice(("2500m", "4", "6")),
        "memory": rng.choice(("5Gi", "16Gi")),
        "pods": str(rng.randint(2, 6)),
    }
    if rng.random() < 0.5:
        room[GPU] = str(rng.randint(1, 4))
    taints = [rng.choice(TAINTS)] if rng.random() < 0.3 else []
    return {"labels": labels, "room": room, "taints": taints, "unschedulable": rng.random() < 0.08}


def _spec(rng: random.Random, number: int, runtime_class: str) -> Json:
    spec: Json = {"containers": [_container(rng, "main", gpu=rng.random() < 0.15)], "nodeSelector": {CASE: str(number)}}
    inits = []
    if rng.random() < 0.3:
        inits.append(_container(rng, "first"))
    if rng.random() < 0.3:
        inits.append({**_container(rng, "sidecar"), "restartPolicy": "Always"})
    if rng.random() < 0.2:
        inits.append(_container(rng, "last"))
    if inits:
        spec["initContainers"] = inits
    if rng.random() < 0.2:
        spec["runtimeClassName"] = runtime_class
    if rng.random() < 0.1:
        spec["nodeSelector"]["zone"] = rng.choice(ZONES)
    if rng.random() < 0.4:
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _required(rng)}}
    if rng.random() < 0.4:
        spec["tolerations"] = [_toleration(rng)]
    return spec


def _container(rng: random.Random, name: str, *, gpu: bool = False) -> Json:
    asked = {"cpu": rng.choice(("100m", "400m", "700m", "1")), "memory": rng.choice(("64Mi", "512Mi", "1Gi"))}
    if rng.random() < 0.1:
        del asked["memory"]
    limits = {GPU: str(rng.randint(1, 2))} if gpu else {}
    return {"name": name, "image": "main", "resources": {"requests": asked | limits, "limits": limits}}


def _required(rng: random.Random) -> Json:
    """One of the terms has to hold."""
    return {"nodeSelectorTerms": [_term(rng) for _ in range(rng.randint(1, 2))]}


def _term(rng: random.Random) -> Json:
    return {"matchExpressions": [_expression(rng) for _ in range(rng.randint(1, 2))]}


def _expression(rng: random.Random) -> Json:
    return rng.choice(
        (
            {"key": "zone", "operator": "In", "values": rng.sample(ZONES, 2)},
            {"key": "zone", "operator": "NotIn", "values": rng.sample(ZONES, 1)},
            {"key": "zone", "operator": "Exists"},
            {"key": "zone", "operator": "DoesNotExist"},
            {"key": "rank", "operator": "Gt", "values": [str(rng.randint(1, 5))]},
            {"key": "rank", "operator": "Lt", "values": [str(rng.randint(5, 9))]},
            {"key": "zone", "operator": "Gt", "values": ["3"]},
        )
    )


def _toleration(rng: random.Random) -> Json:
    return rng.choice(
        (
            {"key": "busy", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
            {"key": "busy", "operator": "Equal", "value": "no"},
            {"key": "leaving", "operator": "Exists", "effect": "NoExecute"},
            {"operator": "Exists"},
        )
    )


def node(name: str, shape: Mapping[str, Any]) -> Json:
    taints = [{"key": key, "value": value, "effect": effect} for key, value, effect in shape["taints"]]
    spec = {"taints": taints, "unschedulable": shape["unschedulable"]}
    return environment.node(name, shape["room"], shape["labels"]) | {"spec": spec}
