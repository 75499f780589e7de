"""One scheduling cycle: which of the gathered groups are admitted now, in order and as far as they fit (G3).

Decisions depend on counts of places and on at most one greedy fit check for each group whose turn it is. What a held
group lacks in detail is worked out by `explain`, when a status or a person asks.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Self, TypeVar

import msgspec

from jobset_gate import names
from jobset_gate.podgroups.candidate import (
    MAX_POD_KINDS,
    Admit,
    AdmittedGroup,
    Candidate,
    CapacityCheck,
    Hold,
    admission_order,
)
from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.constraints import LabelledPod, Requirement
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape, Reservations, group_equal
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.starvation import Shortage, may_be_passed, may_pass, never_fits, shortage_of, takes_from

UNDISTURBED_SECONDS: Final = 5.0
"""In which a probed group may be bound before one of higher priority evicts it: mostly it is."""

MAX_PRIORITY: Final = 2**31 - 1

MAX_STARVING_KINDS: Final = 40
"""Pod shapes of the starving groups of one domain: working out what they lack takes 1 ms for each."""

_Group = TypeVar("_Group", Candidate, AdmittedGroup)

ExcludedNodes = Callable[[frozenset[LabelledPod]], frozenset[str]]
"""The nodes from which bound pods repel any of these pods by their anti-affinity."""


class OverlappingDomains:
    """Of the groups decided so far those whose domain shares nodes with one domain."""

    def __init__(self, domain: frozenset[str], cycle: "SchedulingCycle", nodes: NodeSnapshot) -> None:
        self._domain, self._cycle, self._nodes = domain, cycle, nodes
        self._seen = 0
        self._left: Sequence[NodeInfo] | None = None
        self._kept: list[PodShape] = []
        self.reservations = Reservations(nodes)
        """The pods of admitted groups."""
        self.probed: list[AdmittedGroup] = []
        """Groups admitted unproven and not bound yet."""

    def update(self) -> Self:
        """Adds the groups that were admitted since the last time."""
        for group in self._cycle.admitted[self._seen :]:
            if self._overlaps(group.domain):
                self._add_admitted(group)
        self._seen = len(self._cycle.admitted)
        return self

    @property
    def left(self) -> Sequence[NodeInfo]:
        """The nodes with what is left once the pods are placed for which room is kept."""
        if self._left is None:
            self._left = greedy.after_placing(self._nodes.nodes, self.required)
        return self._left

    @property
    def required(self) -> list[PodShape]:
        """Pods to be bound for which room is kept."""
        return group_equal(self._kept)

    @property
    def starving(self) -> list[tuple[object, Candidate]]:
        """Those that may not be passed any more, in order."""
        return [(key, it) for key, it in self._cycle.starving.items() if self._overlaps(it.domain)]

    @property
    def held(self) -> Candidate | None:
        """The first that waits for its turn to be probed."""
        return next((it for domain, it in self._cycle.held.items() if self._overlaps(domain)), None)

    def _overlaps(self, domain: frozenset[str]) -> bool:
        return domain is self._domain or domain == self._domain or not domain.isdisjoint(self._domain)

    def _add_admitted(self, group: AdmittedGroup) -> None:
        shapes = [shape for request in group.requests for shape in request.shapes]
        required = group.proven and not group.best_effort
        self.reservations.add_pods(shapes, required=required)
        if required:
            self._kept += shapes
            self._left = None
        elif not group.best_effort:
            self.probed.append(group)


class SchedulingCycle:
    """Decides candidate by candidate, in order. Free resources only shrink during a cycle.

    The free resources of `nodes` are allocatable less those of bound pods. Admitted pods count as not bound, since the
    scheduler need not choose the nodes that the fit check chose.
    """

    def __init__(
        self,
        admitted: Iterable[AdmittedGroup],
        nodes: NodeSnapshot,
        *,
        check: CapacityCheck,
        starvation_seconds: float,
        now: float,
        excluded: ExcludedNodes = lambda _: frozenset(),
    ) -> None:
        self._nodes, self._excluded = nodes, excluded
        self._now, self._check, self._starvation_seconds = now, check, starvation_seconds
        self.admitted: list[AdmittedGroup] = []
        self.held: dict[frozenset[str], Candidate] = {}
        """The first of each domain that waits for its turn to be probed."""
        self.starving: dict[object, Candidate] = {}
        """Those that may not be passed any more, by equivalence key: equal groups lack the same."""
        self._domains: dict[frozenset[str], OverlappingDomains] = {}
        self._lacking: dict[object, str] = {}
        """By equivalence key: what is known to lack; "" if nothing is, though the fit is not proven."""
        self._shortages: dict[object, Shortage | None] = {}
        self._preempting: dict[object, bool] = {}
        lowest = (it.used_by_priority[0][0] for it in nodes.nodes if it.used_by_priority)
        self._lowest_priority = min(lowest, default=MAX_PRIORITY)
        self.admitted += map(self._still_proven, admitted)

    def decide_all(self, candidates: Iterable[Candidate]) -> list[Admit | Hold]:
        """The decision on each candidate, in order, with detailed messages."""
        decisions = map(self.decide_candidate, sorted(candidates, key=admission_order))
        return [self.explain(it) if isinstance(it, Hold) else it for it in decisions]

    def decide_candidate(self, candidate: Candidate) -> Admit | Hold:
        """The decision on the next in order."""
        near = self._overlapping(candidate.domain)
        if candidate.backing_off:
            return self._keep_room(candidate, near)
        decision = self._decide(candidate, near)
        starving = self._starving(candidate, near) if isinstance(decision, Admit) else None
        if starving is not None:
            return _behind(candidate, starving[0].key, f"which has waited too long for {starving[1]} to be passed")
        if isinstance(decision, Admit):
            self.admitted.append(self._without_excluded(admitted_group(decision, self._now)))
            return decision
        if decision.reason == names.REASON_BEHIND_OTHER:
            self.held.setdefault(candidate.domain, candidate)
        passable = may_be_passed(candidate, self._now, self._starvation_seconds)
        if not passable and not never_fits(candidate, self._nodes):
            kinds = sum(len(request.shapes) for _, it in near.starving for request in it.requests)
            if kinds + sum(len(it.shapes) for it in candidate.requests) <= MAX_STARVING_KINDS:
                self.starving.setdefault(_equivalence_key(candidate), candidate)
        return decision

    def explain(self, hold: Hold) -> Hold:
        """The hold with what lacks in detail: greedy placement, some milliseconds."""
        if not hold.shortage:
            return hold
        candidate = self._without_excluded(hold.candidate)
        text = self._shortage_of(candidate, self._overlapping(candidate.domain)) or hold.shortage
        if candidate is not hold.candidate:
            many = len(self._excluded(candidate.labelled_pods))
            text += f"; from {many} node{'s' if many > 1 else ''} others keep it away by their anti-affinity"
        never = greedy.never_fits(hold.candidate.requests, self._nodes.nodes)
        text += f"; can never fit on the nodes there are: {never}" if never else ""
        return msgspec.structs.replace(hold, message=hold.message.replace(hold.shortage, text), shortage="")

    # --- Steps -------------------------------------------------------------------------------------------------------

    def _decide(self, candidate: Candidate, near: OverlappingDomains) -> Admit | Hold:
        if self._check is CapacityCheck.OFF:
            return Admit(candidate=candidate, proven=False)
        proven, lacks = self._fit(self._without_excluded(candidate), near)
        if proven:
            return Admit(candidate=candidate, proven=True)
        if lacks and self._check is CapacityCheck.FIT and not self._may_preempt(candidate, near):
            reason = names.REASON_WAITING_FOR_CAPACITY
            return Hold(candidate=candidate, reason=reason, message=lacks, shortage=lacks)
        return self._probe(candidate, near, lacks)

    def _keep_room(self, candidate: Candidate, near: OverlappingDomains) -> Hold:
        """Groups after one in back-off do not get the room that its eviction may have made (G4)."""
        narrowed = self._without_excluded(candidate)
        if self._check is not CapacityCheck.OFF and self._fit(narrowed, near)[0]:
            it = AdmittedGroup(requests=narrowed.requests, domain=narrowed.domain, proven=True)
            self.admitted.append(it)
        return Hold(candidate=candidate, reason=names.REASON_ROLLED_BACK, message=candidate.backing_off)

    def _probe(self, candidate: Candidate, near: OverlappingDomains, lacks: str) -> Admit | Hold:
        """The first in order may be admitted unproven, one at a time in a domain."""
        doubt = lacks or _doubt(candidate)
        if near.held is not None:
            return _behind(candidate, near.held.key, doubt, lacks)
        if not near.probed:
            return Admit(candidate=candidate, proven=False)
        held = _behind(candidate, near.probed[0].key, f"which is being placed; {doubt}", lacks)
        late = all(it.admitted_at + UNDISTURBED_SECONDS <= self._now for it in near.probed)
        if not late or not _outranks(candidate, near):
            return held
        return msgspec.structs.replace(held, must_yield=tuple(it.key for it in near.probed))

    def _fit(self, candidate: Candidate, near: OverlappingDomains) -> tuple[bool, str]:
        """Whether the fit is proven, and what is known to lack if it is not."""
        key = _equivalence_key(candidate)
        if key in self._lacking:
            return False, self._lacking[key]
        has_resources = any(it.resources for it in candidate.requests)
        guaranteed = not candidate.unsupported and self._is_guaranteed(candidate, near)
        if guaranteed and not has_resources:
            return True, ""
        minimum = sum(it.minimum for it in candidate.requests)
        places = sum(self._nodes.capacity(shape) for it in candidate.requests for shape in it.shapes)
        lacks = f"room for at most {places} of {minimum} pods" if places < minimum else ""
        is_next = near.held is None and _outranks(candidate, near)
        if not lacks and (has_resources or is_next):
            lacks = self._shortage_of(candidate, near)
            if guaranteed and not lacks:
                return True, ""
        self._lacking[key] = lacks
        return False, lacks

    def _is_guaranteed(self, candidate: Candidate, near: OverlappingDomains) -> bool:
        shapes = [shape for it in candidate.requests for shape in it.shapes]
        if len(shapes) == 1 and near.reservations.empty:
            return self._nodes.capacity(shapes[0]) >= candidate.requests[0].minimum
        return near.reservations.guarantees(shapes)

    def _shortage_of(self, candidate: Candidate, near: OverlappingDomains) -> str:
        """What lacks once room is kept for the pods of `near`; "": nothing."""
        first = near.required
        if len(first) > MAX_POD_KINDS:
            return f"{len(first)} different kinds of pods are being placed before it"
        return greedy.fit_shortage(candidate.requests, self._nodes.nodes, first)

    def _may_preempt(self, candidate: Candidate, near: OverlappingDomains) -> bool:
        """Whether it is its turn to be probed, and it would fit if pods of lower priority were gone.

        Only the scheduler can choose the victims, and only for pods without gates.
        """
        priority = candidate.preempts
        if priority is None or priority <= self._lowest_priority or near.held is not None:
            return False
        key = priority, _equivalence_key(candidate)
        if key not in self._preempting:
            nodes = greedy.without_lower_priority(self._nodes.nodes, priority)
            self._preempting[key] = not greedy.fit_shortage(candidate.requests, nodes, near.required)
        return self._preempting[key]

    def _starving(self, candidate: Candidate, near: OverlappingDomains) -> tuple[Candidate, str] | None:
        """A starving group from which it would take something, and what."""
        if self._check is CapacityCheck.OFF or may_pass(candidate, self._now, self._starvation_seconds):
            return None
        for key, it in near.starving:
            if key not in self._shortages:
                self._shortages[key] = shortage_of(it.requests, near.left)
            found = self._shortages[key]
            if found is not None and takes_from(candidate, found, self._nodes):
                return it, ", ".join(sorted(found.resources))
        return None

    def _overlapping(self, domain: frozenset[str]) -> OverlappingDomains:
        """Most groups share one domain, so there are few."""
        if domain not in self._domains:
            self._domains[domain] = OverlappingDomains(domain, self, self._nodes)
        return self._domains[domain].update()

    def _still_proven(self, group: AdmittedGroup) -> AdmittedGroup:
        """A proven group that has lost its places counts as unproven: no room can be kept for it."""
        group = self._without_excluded(group)
        shapes = [shape for it in group.requests for shape in it.shapes]
        if not group.proven or all(self._nodes.capacity(it) >= it.count for it in shapes):
            return group
        return msgspec.structs.replace(group, proven=False)

    def _without_excluded(self, group: _Group) -> _Group:
        """The group with a node selection that leaves out nodes from which bound pods repel its pods."""
        excluded = self._excluded(group.labelled_pods) if group.labelled_pods else frozenset()
        if not excluded:
            return group
        elsewhere = Requirement(key="metadata.name", operator="NotIn", values=excluded, field=True)
        requests = tuple(
            msgspec.structs.replace(it, shapes=tuple(_with_requirement(shape, elsewhere) for shape in it.shapes))
            for it in group.requests
        )
        return msgspec.structs.replace(group, requests=requests)


def admitted_group(decision: Admit, now: float) -> AdmittedGroup:
    """A candidate counts as admitted from the decision on."""
    it = decision.candidate
    return AdmittedGroup(
        requests=it.requests,
        domain=it.domain,
        proven=decision.proven,
        labelled_pods=it.labelled_pods,
        priority=it.priority,
        admitted_at=now,
    )


def _with_requirement(shape: PodShape, requirement: Requirement) -> PodShape:
    selection = msgspec.structs.replace(shape.selection, every=(*shape.selection.every, requirement))
    return msgspec.structs.replace(shape, selection=selection)


def _outranks(candidate: Candidate, near: OverlappingDomains) -> bool:
    return all(it.priority < candidate.priority for it in near.probed)


def _equivalence_key(candidate: Candidate) -> object:
    """The same for candidates that need the same room: what one lacks, the others lack, too."""
    return candidate.unsupported, tuple(
        (
            it.minimum,
            tuple(sorted(it.resources.items())),
            tuple((shape.equivalence_key, shape.count) for shape in it.shapes),
        )
        for it in candidate.requests
    )


def _behind(candidate: Candidate, other: PodGroupKey, why: str, shortage: str = "") -> Hold:
    """Names no group of another namespace: a tenant must not learn of it."""
    visible = any(other.namespace == it.key.namespace for it in candidate.requests)
    first = other.path if visible else "a group of another namespace"
    reason, message = names.REASON_BEHIND_OTHER, f"behind {first}, {why}"
    return Hold(candidate=candidate, reason=reason, message=message, shortage=shortage)


def _doubt(candidate: Candidate) -> str:
    if candidate.unsupported:
        return f"{', '.join(candidate.unsupported)} is not modelled"
    return "its room depends on where the scheduler puts the others"
