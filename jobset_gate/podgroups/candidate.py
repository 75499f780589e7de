"""Groups that wait for admission, groups admitted and not bound yet, and the decisions on them (G3)."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from fractions import Fraction
from math import ceil
from typing import Final

from jobset_gate.barrier.model import Value
from jobset_gate.objects.devices import is_device
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.fit.constraints import Amounts, LabelledPod, NodeSelection, subtract
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, PodShape, group_equal
from jobset_gate.podgroups.generation import MemberState
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod


class CapacityCheck(StrEnum):
    """The setting capacityCheck."""

    FIT = "Fit"
    PROBE = "Probe"
    OFF = "Off"


class Candidate(Value, frozen=True):
    """A gathered group, with the others of its GangGroup, that waits for admission."""

    requests: tuple[GroupRequest, ...]
    """One for each gang; the first gives the candidate its key."""
    priority: int
    created: float
    ready_since: float
    """When it had gathered and no gate of others held it."""
    domain: frozenset[str]
    unsupported: tuple[str, ...] = ()
    """Constraints that the fit check does not model."""
    preempts: int | None = None
    """Bound pods of lower priority than this may be preempted for any of its pods; None: none may."""
    labelled_pods: frozenset[LabelledPod] = frozenset()
    """Its pods as anti-affinity terms of bound pods see them."""
    backing_off: str = ""
    """Why it is not admitted yet although its room is kept; "" unless it is in back-off."""

    @property
    def key(self) -> PodGroupKey:
        return self.requests[0].key


class AdmittedGroup(Value, frozen=True):
    """A group whose gates are removed and whose minimum is not bound yet."""

    requests: tuple[GroupRequest, ...]
    """Of what is not bound yet."""
    domain: frozenset[str]
    proven: bool
    """Its room was proven at admission."""
    best_effort: bool = False
    """Its minimum was bound; these are the other pods, for which no room is kept."""
    labelled_pods: frozenset[LabelledPod] = frozenset()
    priority: int = 0
    admitted_at: float = 0.0

    @property
    def key(self) -> PodGroupKey:
        return self.requests[0].key


class Admit(Value, frozen=True):
    candidate: Candidate
    proven: bool


class Hold(Value, frozen=True):
    """Keep the candidate waiting."""

    candidate: Candidate
    reason: str
    message: str
    shortage: str = ""
    """The part of the message that `SchedulingCycle.explain` replaces by what lacks in detail."""
    must_yield: tuple[PodGroupKey, ...] = ()
    """Probed groups of lower priority that are to be evicted for it."""


def admission_order(candidate: Candidate) -> tuple[int, float, str, str]:
    """Priority, then age; then the name, so that the order is stable."""
    return -candidate.priority, candidate.created, candidate.key.path, candidate.key.flavor


# --- From snapshots --------------------------------------------------------------------------------------------------

MAX_POD_KINDS: Final = 40
"""Equivalence classes of pods in one candidate, or reserved before it, for a greedy fit check: 1 ms each."""

MIXED: Final = f"that its pods are of more than {MAX_POD_KINDS} kinds"
EVICTED_BEFORE: Final = "what it was taken back for"


def make_candidate(seen: Sequence[GroupSnapshot], domains: "Domains", *, backing_off: str = "") -> Candidate:
    """Gathered groups that are admitted together. A group in back-off has the rank that it had before its eviction."""
    members = [generation.ready_members(it) for it in seen]
    shapes = [pod_shapes(it, domains) for it in members]
    every = [shape for each in shapes for shape in each]
    waiting = [it for each in members for it in each]
    pods = labelled_pods(waiting)
    mixed = len(group_equal(every)) > MAX_POD_KINDS or len(pods) > MAX_POD_KINDS
    return Candidate(
        requests=tuple(
            _request(it, _least_requests(each) if mixed else each) for it, each in zip(seen, shapes, strict=True)
        ),
        priority=max(it.priority for it in waiting),
        created=min(it.created for it in seen) if backing_off else _queued_at(seen),
        ready_since=max(_ready_since(it) for it in seen),
        domain=domains.domain_of(every),
        unsupported=_unsupported(seen, waiting, domains, mixed=mixed, backing_off=bool(backing_off)),
        preempts=min(it.priority for it in waiting) if all(it.preempts for it in waiting) else None,
        labelled_pods=frozenset() if mixed else pods,
        backing_off=backing_off,
    )


def pod_shapes(members: Iterable[MemberPod], domains: "Domains") -> tuple[PodShape, ...]:
    """Shapes with the number of members of each, less the resources that no node offers.

    Pods of one template share their shape object, so that shapes need not be compared.
    """
    counted: dict[int, list[MemberPod]] = {}
    for member in members:
        counted.setdefault(id(member.shape), []).append(member)
    return tuple(
        PodShape(
            selection=alike[0].shape.selection,
            requests=domains.offered_requests(alike[0].shape.requests),
            count=len(alike),
        )
        for alike in counted.values()
    )


def labelled_pods(members: Iterable[MemberPod]) -> frozenset[LabelledPod]:
    """Members as anti-affinity terms of bound pods see them."""
    return frozenset((it.namespace, it.labels) for it in members if it.labels is not None)


def _unsupported(
    seen: Sequence[GroupSnapshot], members: Sequence[MemberPod], domains: "Domains", *, mixed: bool, backing_off: bool
) -> tuple[str, ...]:
    found = {what for it in members for what in it.unsupported}
    found |= {f"{name}, which no node has," for it in members for name in domains.not_offered(it.shape.requests)}
    if any(it.labels is None for it in members):
        found.add("who keeps pods with so many labels away")
    if mixed:
        found.add(MIXED)
    if not backing_off and any(it.record is not None and it.record.rolled_back for it in seen):
        found.add(EVICTED_BEFORE)  # something that the fit check does not model
    return tuple(sorted(found))


def _request(seen: GroupSnapshot, shapes: tuple[PodShape, ...]) -> GroupRequest:
    group = seen.group
    placed = generation.member_table(seen)[MemberState.PLACED]
    return GroupRequest(
        key=group.key,
        shapes=shapes,
        minimum=max(0, (group.minimum or 0) - generation.count_bound(seen)) if shapes else 0,
        resources=_left(group.resources, placed),
    )


def _least_requests(shapes: Sequence[PodShape]) -> tuple[PodShape, ...]:
    """Many shapes as one for each node selection, with the requests that all of them have at least: where these do not
    fit, the group does not. () if there are too many node selections, too.
    """
    found: dict[NodeSelection, PodShape] = {}
    for it in shapes:
        so_far = found.get(it.selection, PodShape(selection=it.selection, requests=it.requests, count=0))
        least = {name: min(many, it.requests.get(name, 0)) for name, many in so_far.requests.items()}
        found[it.selection] = PodShape(selection=it.selection, requests=least, count=so_far.count + it.count)
    return tuple(found.values()) if len(found) <= MAX_POD_KINDS else ()


def _queued_at(seen: Sequence[GroupSnapshot]) -> float:
    """Its age for the order; an evicted group stands behind those that have waited meanwhile."""
    retried = [it.record.not_before for it in seen if it.record is not None and it.record.rolled_back]
    return max(min(it.created for it in seen), *retried, 0.0)


def _ready_since(seen: GroupSnapshot) -> float:
    """When it had its minimum of members, or its back-off ended."""
    created = sorted(it.created for it in generation.member_table(seen).present)
    minimum = seen.group.minimum or 1
    gathered = created[min(minimum, len(created)) - 1]
    return gathered if seen.record is None else max(gathered, seen.record.not_before)


def _left(resources: tuple[tuple[str, Fraction], ...], placed: Iterable[MemberPod]) -> Amounts:
    """What its PodGroup asks for, less what its own bound pods have."""
    left = {name: ceil(amount * 1000) for name, amount in resources}
    for member in placed if left else ():
        left = subtract(left, member.shape.requests)
    return {name: many for name, many in left.items() if many > 0}


# --- Domains ---------------------------------------------------------------------------------------------------------

MAX_SELECTOR_CHECKS: Final = 200_000
"""For one domain: about 50 ms of the event loop."""


class Domains:
    """Capacity domains, each worked out once: the nodes that the pods' required node selection matches (G3)."""

    def __init__(self, nodes: Sequence[NodeInfo] = ()) -> None:
        self._nodes = [it.node for it in nodes]
        self._offers = frozenset(name for it in nodes for name, many in it.empty.items() if many > 0)
        self._known: dict[frozenset[NodeSelection], frozenset[str]] = {}

    def domain_of(self, shapes: Sequence[PodShape]) -> frozenset[str]:
        """The same object for the same selections."""
        selections = frozenset(it.selection for it in shapes)
        known = self._known.get(selections)
        if known is None:
            known = self._known[selections] = self._matching_nodes(selections)
        return known

    def not_offered(self, requests: Amounts) -> Iterator[str]:
        """Extended resources that no node has. A DeviceClass may serve them (DRA), which cannot be seen here."""
        for name, many in requests.items():
            if many > 0 and is_device(name) and name not in self._offers:
                yield name

    def offered_requests(self, requests: Amounts) -> Amounts:
        """The other requests; the same object if these are all."""
        left_out = set(self.not_offered(requests))
        return {name: many for name, many in requests.items() if name not in left_out} if left_out else requests

    def _matching_nodes(self, selections: frozenset[NodeSelection]) -> frozenset[str]:
        """All nodes, if working it out takes too long: the pods then share their domain with more groups."""
        if len(self._nodes) * sum(it.requirement_count for it in selections) > MAX_SELECTOR_CHECKS:
            return frozenset(node.name for node in self._nodes)
        return frozenset(node.name for node in self._nodes if any(it.matches(node) for it in selections))
