"""What is free on each node: allocatable less the requests of bound pods, updated pod by pod and node by node (G3)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TypeVar

from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.constraints import PER_POD_LABELS, Amounts, AntiAffinityTerm, LabelledPod, NodeFacts
from jobset_gate.podgroups.fit.guaranteed import NodeInfo
from jobset_gate.podgroups.snapshot import BoundPod, MemberPod, NodeAllocatable

_Of = TypeVar("_Of", str, int)
_Term = tuple[str, AntiAffinityTerm]
"""A term, with the namespace of the pods that have it."""


class NodeCache:
    """Nodes and the pods bound to them. A terminating pod counts until it is gone, a finished one does not.

    Two informers report pods: that of labelled members and that of all other bound pods. A pod whose label changes
    moves from one to the other in any order, and may be reported by both for a while; it counts once.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeAllocatable] = {}
        self._pods: dict[str, BoundPod] = {}
        """By UID."""
        self._members: set[str] = set()
        """UIDs of the pods that the informer of members reports."""
        self._others: set[str] = set()
        """The same of the other informer."""
        self._used: dict[str, dict[int, dict[str, int]]] = {}
        """By node and priority; the node itself may not be known yet."""
        self._permanent: dict[str, dict[str, int]] = {}
        """Used by pods that belong to their node: no other pod ever gets their place."""
        self._anti_affinity = AntiAffinityIndex()
        self._infos: dict[str, NodeInfo] = {}
        self._stale: set[str] = set()
        self._listed: tuple[NodeInfo, ...] | None = None
        self.nodes_version = 0
        """Counts changes of what nodes are and offer, whatever is bound to them."""

    # --- Changes: each returns whether the room on any node has changed -----------------------------------------------

    def set_node(self, name: str, new: NodeAllocatable | None) -> bool:
        if self._nodes.get(name) == new:
            return False
        if new is None:
            del self._nodes[name]
        else:
            self._nodes[name] = new
        self.nodes_version += 1
        self._invalidate(name)
        return True

    def set_member(self, old: MemberPod | None, new: MemberPod | None) -> bool:
        """A labelled pod was `old` and is `new`; None: it is not there."""
        before, after = (it if it is not None and it.node and not it.ended else None for it in (old, new))
        return self._set(self._members, self._others, before, None if after is None else _bound_pod(after))

    def set_bound(self, old: BoundPod | None, new: BoundPod | None) -> bool:
        """The same of a pod that the informer of bound pods reports."""
        return self._set(self._others, self._members, old, new)

    # --- Queries -----------------------------------------------------------------------------------------------------

    def has_pod(self, uid: str) -> bool:
        """Whether the requests of this pod are counted."""
        return uid in self._pods

    def excluded_nodes(self, marks: Iterable[LabelledPod]) -> frozenset[str]:
        """Nodes that the anti-affinity of bound pods closes to one of such pods."""
        return self._anti_affinity.excluded_nodes(marks, (it.node for it in self._nodes.values()))

    def node_infos(self) -> Sequence[NodeInfo]:
        """All nodes by name; the same objects as before where nothing has changed."""
        if self._listed is None:
            come_or_gone = self._stale & self._nodes.keys() ^ self._stale & self._infos.keys()
            for name in self._stale:
                self._refresh(name)
            self._stale.clear()
            if come_or_gone:
                self._infos = dict(sorted(self._infos.items()))
            self._listed = tuple(self._infos.values())
        return self._listed

    # --- Details -----------------------------------------------------------------------------------------------------

    def _set(self, here: set[str], there: set[str], old: MemberPod | BoundPod | None, new: BoundPod | None) -> bool:
        changed = False
        if old is not None and (new is None or new.uid != old.uid):
            here.discard(old.uid)
            changed = old.uid not in there and self._remove(old.uid)
        if new is not None:
            here.add(new.uid)
            changed = self._add(new) or changed
        return changed

    def _add(self, pod: BoundPod) -> bool:
        before = self._pods.get(pod.uid)
        if before is not None:
            if (before.node, before.requests) == (pod.node, pod.requests):
                return False
            self._remove(pod.uid)
        self._pods[pod.uid] = pod
        self._count(pod, 1)
        return True

    def _remove(self, uid: str) -> bool:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._count(pod, -1)
        return pod is not None

    def _count(self, pod: BoundPod, sign: int) -> None:
        self._anti_affinity.add_terms(pod.namespace, pod.anti_affinity, pod.node, sign)
        if pod.stays_on_node:
            self.nodes_version += 1
            _add(self._permanent, pod.node, pod.requests, sign)
        used = self._used.setdefault(pod.node, {})
        _add(used, pod.priority, pod.requests, sign)
        if not used:
            del self._used[pod.node]
        self._invalidate(pod.node)

    def _invalidate(self, node: str) -> None:
        self._stale.add(node)
        self._listed = None

    def _refresh(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            self._infos.pop(name, None)
            return
        taken = tuple((it, dict(many)) for it, many in sorted(self._used.get(name, {}).items()))
        free = reduce(constraints.subtract, (many for _, many in taken), node.allocatable)
        empty = constraints.subtract(node.allocatable, self._permanent.get(name, {}))
        self._infos[name] = NodeInfo(node=node.node, free=free, empty=empty, used_by_priority=taken)


class AntiAffinityIndex:
    """Required anti-affinity terms of all bound pods, with the nodes that those are on."""

    def __init__(self) -> None:
        self._nodes: dict[_Term, Counter[str]] = {}
        self._by_label: dict[tuple[str, str], set[_Term]] = {}
        """Terms that select only pods with this label."""
        self._unindexed: set[_Term] = set()

    def add_terms(self, namespace: str, terms: Iterable[AntiAffinityTerm], node: str, sign: int) -> None:
        """Adds (or with sign -1 removes) the terms of one pod on a node."""
        for each in terms:
            term = namespace, each
            nodes = self._nodes.setdefault(term, Counter())
            nodes[node] += sign
            if not nodes[node]:
                del nodes[node]
            index = self._index_of(each)
            if nodes:
                index.add(term)
            else:
                index.discard(term)
                del self._nodes[term]

    def excluded_nodes(self, marks: Iterable[LabelledPod], nodes: Iterable[NodeFacts]) -> frozenset[str]:
        """The nodes that one of such pods cannot be bound to."""
        if not self._nodes:
            return frozenset()
        terms = {it for mark in marks for it in self._candidates(mark) if it[1].selects_pod(mark, it[0])}
        if not terms:
            return frozenset()
        nodes = list(nodes)
        labels = {it.name: it.labels for it in nodes}
        values = {
            (term.topology, labels.get(node, {}).get(term.topology))
            for namespace, term in terms
            for node in self._nodes[namespace, term]
        }
        keys = {key for key, _ in values}
        return frozenset(
            it.name for it in nodes if any(key in it.labels and (key, it.labels[key]) in values for key in keys)
        )

    def _candidates(self, mark: LabelledPod) -> Iterable[_Term]:
        yield from self._unindexed
        for label in mark[1]:
            yield from self._by_label.get(label, ())

    def _index_of(self, term: AntiAffinityTerm) -> set[_Term]:
        for it in term.every:
            if it.operator == "In" and len(it.values) == 1 and it.key not in PER_POD_LABELS:
                return self._by_label.setdefault((it.key, next(iter(it.values))), set())
        return self._unindexed


def _add(totals: dict[_Of, dict[str, int]], of: _Of, amounts: Amounts, sign: int) -> None:
    """Adds to a total; zeros are left out."""
    total = totals.setdefault(of, {})
    for name, many in amounts.items():
        left = total.get(name, 0) + sign * many
        if left:
            total[name] = left
        else:
            total.pop(name, None)
    if not total:
        del totals[of]


def _bound_pod(it: MemberPod) -> BoundPod:
    return BoundPod(
        uid=it.uid,
        namespace=it.namespace,
        name=it.name,
        node=it.node,
        requests=it.shape.requests,
        priority=it.priority,
        anti_affinity=it.anti_affinity,
    )
