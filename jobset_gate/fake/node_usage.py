"""The room on the simulated nodes, as the scheduler reckons with it: what is free where, for whom, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jobset_gate.fake.kubelet.behaviour import FakeNode
from jobset_gate.fake.kubelet.pods import Placement
from jobset_gate.podgroups.fit import requests
from jobset_gate.podgroups.fit.requests import Amounts
from jobset_gate.podgroups.fit.selection import NodeFacts as Target
from jobset_gate.podgroups.fit.selection import NodeSelection

_SCORED = {"cpu": 100, "memory": 200 * 1024 * 1024 * 1000}
"""In thousandths: what a pod that asks for none counts for, so that such pods are spread, too."""


class _NodeLoad:
    """One node and who is on it."""

    def __init__(self, node: FakeNode) -> None:
        self.node = node
        self.target = Target(name=node.name, labels=node.all_labels, taints=node.taints)
        self._all = requests.parse_amounts(node.room)
        self._free = dict(self._all)
        self._load = dict.fromkeys(_SCORED, 0)
        self.pods: dict[str, Placement] = {}

    def take(self, uid: str, placement: Placement) -> None:
        if uid not in self.pods:
            self.pods[uid] = placement
            self._add(placement, 1)

    def free(self, uid: str) -> bool:
        placement = self.pods.pop(uid, None)
        if placement is not None:
            self._add(placement, -1)
        return placement is not None

    def lacking(self, asked: Amounts) -> list[str]:
        """The resources of which there is too little."""
        return [name for name, many in asked.items() if self._counts(name) and many > self._free.get(name, 0)]

    def fits(self, asked: Amounts) -> bool:
        return not self.lacking(asked)

    def score(self) -> tuple[float, float]:
        """The lower, the better: how much is taken, of processors and memory alike, then of places for pods."""
        crowd = 1 - self._free[requests.PODS] / max(1, self._all[requests.PODS])
        if self.node.allocatable is None:
            return crowd, crowd
        return sum(min(1.0, self._load[name] / max(1, self._all.get(name, 0))) for name in _SCORED), crowd

    def _counts(self, name: str) -> bool:
        return name == requests.PODS or self.node.allocatable is not None

    def _add(self, placement: Placement, sign: int) -> None:
        for name, many in placement.requests.items():
            self._free[name] = self._free.get(name, 0) - sign * many
        for name, least in _SCORED.items():
            self._load[name] += sign * (placement.requests.get(name, 0) or least)


class NodeUsage:
    """All nodes. A node without an allocatable of its own has room for so many pods, whatever they ask for."""

    def __init__(self) -> None:
        self._places: dict[str, _NodeLoad] = {}
        self._at: dict[str, _NodeLoad] = {}
        self._admitting: dict[NodeSelection, list[_NodeLoad]] = {}

    def join(self, node: FakeNode) -> None:
        """A new node, or an old one that has changed; its pods stay on it."""
        place, before = _NodeLoad(node), self._places.get(node.name)
        for uid, placement in before.pods.items() if before else ():
            place.take(uid, placement)
            self._at[uid] = place
        self._places[node.name] = place
        self._admitting.clear()

    def leave(self, name: str) -> None:
        place = self._places.pop(name, None)
        for uid in place.pods if place else ():
            self._at.pop(uid, None)
        self._admitting.clear()

    def holds(self, uid: str) -> bool:
        return uid in self._at

    def take(self, uid: str, name: str, placement: Placement) -> None:
        """The pod is on that node, or about to be."""
        place = self._places.get(name)
        if place is None or self._at.get(uid) is place:
            return
        self.release(uid)
        place.take(uid, placement)
        self._at[uid] = place

    def release(self, uid: str) -> bool:
        """It is not, any more; whether it was."""
        place = self._at.pop(uid, None)
        return place is not None and place.free(uid)

    def best(self, placement: Placement) -> str | None:
        """The node with the least on it, of those that have room."""
        fitting = (place for place in self._for(placement) if place.fits(placement.requests))
        found = min(fitting, key=_NodeLoad.score, default=None)
        return None if found is None else found.node.name

    def why_none(self, placement: Placement) -> str:
        """In kube-scheduler's words."""
        if not self._places:
            return "no nodes available to schedule pods"
        counted = Counter(reason for place in self._places.values() for reason in _reasons(place, placement))
        reasons = sorted(f"{count} {reason}" for reason, count in counted.items())
        return f"0/{len(self._places)} nodes are available: {', '.join(reasons)}."

    def _for(self, placement: Placement) -> list[_NodeLoad]:
        admitting = self._admitting.get(placement.selection)
        if admitting is None:
            admitting = [it for it in self._places.values() if placement.selection.admits(it.target)]
            self._admitting[placement.selection] = admitting
        return admitting


def _reasons(place: _NodeLoad, placement: Placement) -> Iterator[str]:
    """The first filter that says no speaks; of resources every one that is short."""
    tolerant = NodeSelection(tolerations=placement.selection.tolerations)
    if not tolerant.admits(place.target):
        yield "node(s) had untolerated taint(s)"
    elif not placement.selection.matches(place.target):
        yield "node(s) didn't match Pod's node affinity/selector"
    else:
        for name in place.lacking(placement.requests):
            yield "Too many pods" if name == requests.PODS else f"Insufficient {name}"
