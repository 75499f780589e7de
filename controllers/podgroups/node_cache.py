"""What is free on each node: allocatable, less what is bound there, kept as pods and nodes come and go (G3, Fit)."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from controllers.podgroups.anti_affinity import AntiAffinityIndex
from jobset_gate.podgroups.fit import requests
from jobset_gate.podgroups.fit.anti_affinity import LabelledPod
from jobset_gate.podgroups.fit.guaranteed import NodeInfo
from jobset_gate.podgroups.fit.requests import Amounts
from jobset_gate.podgroups.snapshot import BoundPod, NodeAllocatable

_Of = TypeVar("_Of", str, int)


class NodeCache:
    """The nodes, and all pods bound to them: a terminating one counts until it is gone, one that has finished not."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeAllocatable] = {}
        self._bound: dict[str, BoundPod] = {}
        self._taken: dict[str, dict[str, int]] = {}
        """By node, also by one that is not known (yet)."""
        self._ranks: dict[str, dict[int, dict[str, int]]] = {}
        """The same, by priority."""
        self._stays: dict[str, dict[str, int]] = {}
        """By node, what is taken for good: of those that belong to it."""
        self._repulsion = AntiAffinityIndex()
        self._rooms: dict[str, NodeInfo] = {}
        self._stale: set[str] = set()
        self._listed: tuple[NodeInfo, ...] | None = None

    def set_node(self, name: str, new: NodeAllocatable | None) -> bool:
        """A node as it is now; gives whether that is news."""
        if self._nodes.get(name) == new:
            return False
        if new is None:
            del self._nodes[name]
        else:
            self._nodes[name] = new
        self._touch(name)
        return True

    def add_pod(self, pod: BoundPod) -> bool:
        """A pod has a node; gives whether that is news."""
        before = self._bound.get(pod.uid)
        if before is not None:
            if (before.node, before.requests) == (pod.node, pod.requests):
                return False
            self.remove_pod(pod.uid)
        self._bound[pod.uid] = pod
        self._book(pod, 1)
        return True

    def remove_pod(self, uid: str) -> bool:
        """A pod is gone or has finished; gives whether that is news."""
        pod = self._bound.pop(uid, None)
        if pod is None:
            return False
        self._book(pod, -1)
        return True

    def has_pod(self, uid: str) -> bool:
        """Whether this pod is among those that take up room."""
        return uid in self._bound

    def excluded_nodes(self, marks: Iterable[LabelledPod]) -> frozenset[str]:
        """The nodes from which bound pods keep one of such pods away."""
        return self._repulsion.excluded_nodes(marks, (it.node for it in self._nodes.values()))

    def node_infos(self) -> Sequence[NodeInfo]:
        """The nodes by name. The same objects as before where nothing has changed."""
        if self._listed is None:
            come_or_gone = self._stale & self._nodes.keys() ^ self._stale & self._rooms.keys()
            for name in self._stale:
                self._reckon(name)
            self._stale.clear()
            if come_or_gone:
                self._rooms = dict(sorted(self._rooms.items()))
            self._listed = tuple(self._rooms.values())
        return self._listed

    def _reckon(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            self._rooms.pop(name, None)
            return
        free = requests.subtract(node.allocatable, self._taken.get(name, {}))
        taken = tuple((rank, dict(many)) for rank, many in sorted(self._ranks.get(name, {}).items()))
        whole: Amounts = requests.subtract(node.allocatable, self._stays.get(name, {}))
        before = self._rooms.get(name)
        if before is not None and before.empty is not None and before.empty == whole:
            whole = before.empty  # the same object, so that it is seen at once that nothing has changed
        self._rooms[name] = NodeInfo(node=node.node, free=free, empty=whole, used_by_priority=taken)

    def _book(self, pod: BoundPod, sign: int) -> None:
        ranks = self._ranks.setdefault(pod.node, {})
        _add(self._taken, pod.node, pod.requests, sign)
        self._repulsion.add_terms(pod.namespace, pod.anti_affinity, pod.node, sign)
        if pod.stays_on_node:
            _add(self._stays, pod.node, pod.requests, sign)
        _add(ranks, pod.priority, pod.requests, sign)
        if not ranks:
            del self._ranks[pod.node]
        self._touch(pod.node)

    def _touch(self, node: str) -> None:
        self._stale.add(node)
        self._listed = None


def _add(all_: dict[_Of, dict[str, int]], of: _Of, requests: Amounts, sign: int) -> None:
    """So much more, or less; what comes to nothing is left out."""
    taken = all_.setdefault(of, {})
    for name, many in requests.items():
        left = taken.get(name, 0) + sign * many
        if left:
            taken[name] = left
        else:
            taken.pop(name, None)
    if not taken:
        del all_[of]
