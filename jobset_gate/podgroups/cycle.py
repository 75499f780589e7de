"""Which of the gathered groups are opened now: in order, as far as there is room, one doubtful one per domain (G3)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from jobset_gate import names
from jobset_gate.podgroups.candidate import Admit, AdmittedGroup, Candidate, CapacityCheck, Hold, admission_order
from jobset_gate.podgroups.candidate_requests import MAX_POD_KINDS
from jobset_gate.podgroups.cycle_memos import FitMemo, MessageMemo
from jobset_gate.podgroups.domain_state import DomainState, OverlappingDomains
from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.anti_affinity import LabelledPod
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape
from jobset_gate.podgroups.fit.selection import Requirement
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.starvation import Shortage, may_be_passed, may_pass, shortage_of, takes_from

MAX_FULL_CHECKS: Final = 20
"""In one pass, at groups of which it is known that they stay closed, for nothing but better words; and at whether
others could ever have room."""

UNDISTURBED_SECONDS: Final = 5.0
"""Seconds in which a group that is tried may be placed, before one of higher priority ends that: it mostly is."""

MAX_PRIORITY: Final = 2**31 - 1


_Asking = TypeVar("_Asking", Candidate, AdmittedGroup)

ExcludedNodes = Callable[[frozenset[LabelledPod]], frozenset[str]]


def excludes_no_node(_: frozenset[LabelledPod]) -> frozenset[str]:
    """Nobody keeps anybody away."""
    return frozenset()


def run_cycle(
    candidates: Sequence[Candidate],
    opened: Sequence[AdmittedGroup],
    rooms: Sequence[NodeInfo],
    *,
    now: float,
    check: CapacityCheck = CapacityCheck.FIT,
    starvation_seconds: float,
    avoided: ExcludedNodes = excludes_no_node,
) -> list[Admit | Hold]:
    """What becomes of each, in order: priority, then age, then name.

    `rooms` are what is allocatable less what is bound. What has been opened is reckoned with as if it were still to
    be placed, since the scheduler need not have put it where it was reckoned to go.
    """
    going = SchedulingCycle(
        opened,
        NodeSnapshot(rooms),
        check=check,
        starvation_seconds=starvation_seconds,
        now=now,
        looks=len(candidates),
        avoided=avoided,
    )
    return [going.decide_candidate(it) for it in sorted(candidates, key=admission_order)]


class SchedulingCycle:
    """One pass over the groups that wait. What is free only shrinks while it lasts."""

    def __init__(
        self,
        opened: Iterable[AdmittedGroup],
        ground: NodeSnapshot,
        words: MessageMemo | None = None,
        prospects: FitMemo | None = None,
        *,
        check: CapacityCheck,
        starvation_seconds: float,
        now: float,
        looks: int = MAX_FULL_CHECKS,
        state: object = None,
        avoided: ExcludedNodes = excludes_no_node,
    ) -> None:
        """`state` is another whenever the rooms are, or what has been opened; None: not known. `avoided`: the nodes
        from which bound pods keep one of such pods away.
        """
        self._avoided = avoided
        self._ground, self._words, self._prospects = ground, words or MessageMemo(), prospects or FitMemo()
        self._prospects.renew(ground.nodes)
        self._now, self._check, self._starvation_seconds, self._looks = now, check, starvation_seconds, looks
        self._state, self._judgements, self._tries = state, looks, MAX_FULL_CHECKS
        self._yards: dict[frozenset[str], DomainState] = {}
        self._nears: dict[frozenset[str], tuple[int, OverlappingDomains]] = {}
        self._doubtful: set[object] = set()
        self._shorts: dict[object, Shortage | None] = {}
        self._preempting: dict[object, bool] = {}
        self._lowest = min(
            (it.used_by_priority[0][0] for it in ground.nodes if it.used_by_priority), default=MAX_PRIORITY
        )
        for group in opened:
            self._yards.setdefault(group.domain, DomainState()).add_admitted(self._believed(group))

    def decide_candidate(self, candidate: Candidate) -> Admit | Hold:
        """What becomes of the next in order."""
        near = self._near(candidate.domain)
        if candidate.backs_off:
            return self._keep(candidate, near)
        verdict = self._verdict(candidate, self._narrowed(candidate), near)
        starved = self._starved(candidate, near) if isinstance(verdict, Admit) else None
        if starved is not None:
            return _behind(candidate, starved[0].key, f"which has waited too long for {starved[1]} to be passed")
        yard = self._yards.setdefault(candidate.domain, DomainState())
        if isinstance(verdict, Admit):
            self._state = None  # from here on it is another
            yard.add_admitted(self._narrowed(admitted_group(verdict, self._now)))
            return verdict
        if verdict.reason == names.REASON_BEHIND_OTHER:
            yard.held = yard.held or candidate
        like = _equivalence_key(candidate)
        if not self._prospects.never(like) and not may_be_passed(candidate, self._now, self._starvation_seconds):
            yard.add_starving(like, candidate)
        return verdict

    def _verdict(self, candidate: Candidate, narrowed: Candidate, near: OverlappingDomains) -> Admit | Hold:
        if self._check is CapacityCheck.OFF:
            return Admit(candidate=candidate, proven=False)
        proven, lacks = self._room(narrowed, near)
        if proven:
            return Admit(candidate=candidate, proven=True)
        if lacks and narrowed is not candidate:
            many = len(self._avoided(candidate.labelled_pods))
            lacks += f"; from {many} node{'s' if many > 1 else ''} others keep it away by their anti-affinity"
        lacks += lacks and self._never(candidate)
        if lacks and self._check is CapacityCheck.FIT and not self._may_preempt(candidate, near):
            return Hold(candidate=candidate, reason=names.REASON_WAITING_FOR_CAPACITY, message=lacks)
        return self._probe(candidate, near, _doubt(candidate, lacks))

    def _probe(self, candidate: Candidate, near: OverlappingDomains, doubt: str) -> Admit | Hold:
        """The first in order of a domain may be opened though nothing proves that it fits, one at a time."""
        if near.earlier is not None:
            return _behind(candidate, near.earlier.key, doubt)
        if not near.probing:
            return Admit(candidate=candidate, proven=False)
        held = _behind(candidate, near.probing[0].key, f"which is being placed; {doubt}")
        late = all(it.admitted_at + UNDISTURBED_SECONDS <= self._now for it in near.probing)
        if not late or not _outranks(candidate, near):
            return held
        return msgspec.structs.replace(held, must_yield=tuple(it.key for it in near.probing))

    def _believed(self, group: AdmittedGroup) -> AdmittedGroup:
        """What was proven, or is said to be, is not where there is no room by now: then others need not leave any."""
        group = self._narrowed(group)
        shapes = [shape for it in group.requests for shape in it.shapes]
        if not group.proven or all(self._ground.capacity(it) >= it.count for it in shapes):
            return group
        return msgspec.structs.replace(group, proven=False)

    def _narrowed(self, it: _Asking) -> _Asking:
        """Without the nodes that its pods cannot come to since others keep them away."""
        avoided = self._avoided(it.labelled_pods) if it.labelled_pods else frozenset()
        if not avoided:
            return it
        kept_away = Requirement(key="metadata.name", operator="NotIn", values=avoided, field=True)
        demands = tuple(
            msgspec.structs.replace(demand, shapes=tuple(_without(shape, kept_away) for shape in demand.shapes))
            for demand in it.requests
        )
        return msgspec.structs.replace(it, requests=demands)

    def _keep(self, candidate: Candidate, near: OverlappingDomains) -> Hold:
        """The room that there is for one that backs off is not for those after it."""
        candidate = self._narrowed(candidate)
        if self._check is not CapacityCheck.OFF and not candidate.unsupported and self._certain(candidate, near):
            it = AdmittedGroup(requests=candidate.requests, domain=candidate.domain, proven=True)
            self._yards.setdefault(candidate.domain, DomainState()).add_admitted(it)
            self._state = None
        return Hold(candidate=candidate, reason=names.REASON_ROLLED_BACK, message=candidate.backs_off)

    def _starved(self, candidate: Candidate, near: OverlappingDomains) -> tuple[Candidate, str] | None:
        """Whom it would take something from that has waited too long for that, and what."""
        if self._check is CapacityCheck.OFF or may_pass(candidate, self._now, self._starvation_seconds):
            return None
        for like, it in near.starved:
            if like not in self._shorts:
                self._shorts[like] = shortage_of(it.requests, near.left)
            found = self._shorts[like]
            if found is not None and takes_from(candidate, found, self._ground):
                return it, ", ".join(sorted(found.resources))
        return None

    def _near(self, domain: frozenset[str]) -> OverlappingDomains:
        """Most groups have one domain, so there are few yards."""
        known = self._nears.get(domain)
        if known is None or known[0] != len(self._yards):
            yards = [
                yard for it, yard in self._yards.items() if it is domain or it == domain or not it.isdisjoint(domain)
            ]
            known = self._nears[domain] = len(self._yards), OverlappingDomains(yards, self._ground)
        return known[1]

    def _room(self, candidate: Candidate, near: OverlappingDomains) -> tuple[bool, str]:
        """Whether the group is known to have room, and what it lacks if it has none.

        It has to fit with those that were sure of theirs, and beside those that were not and take what they find.
        """
        like = _equivalence_key(candidate)
        if like in self._doubtful:  # then it still is: there is no more room than before
            return False, self._words.of(like) or ""
        if not candidate.unsupported and self._certain(candidate, near):
            return True, ""  # without placing anybody, which takes longer
        self._doubtful.add(like)
        if not self._matters(candidate, near):
            return False, self._told(candidate, like)
        return self._closer(candidate, like, near)

    def _certain(self, candidate: Candidate, near: OverlappingDomains) -> bool:
        if any(it.resources for it in candidate.requests):
            return False
        shapes = [shape for it in candidate.requests for shape in it.shapes]
        if len(shapes) == 1 and near.ledger.empty:
            return self._ground.capacity(shapes[0]) >= candidate.requests[0].minimum
        return near.ledger.guarantees(shapes)

    def _matters(self, candidate: Candidate, near: OverlappingDomains) -> bool:
        """Whether a closer look may open the group, or else find no more than words."""
        like = _equivalence_key(candidate)
        never = self._prospects.is_known(like) and self._prospects.never(like)
        if not never and any(it.resources for it in candidate.requests):
            return True
        minimum = sum(it.minimum for it in candidate.requests)
        if not never and near.earlier is None and _outranks(candidate, near) and self._places(candidate) >= minimum:
            return True
        if self._looks > 0 and self._words.old(like, self._now):
            self._looks -= 1
            return True
        return False

    def _may_preempt(self, candidate: Candidate, near: OverlappingDomains) -> bool:
        """Whether its turn has come to be tried, and it would have room if pods of lower priority were gone.

        The scheduler alone knows whom it would send away, and only for pods that nobody holds.
        """
        priority = candidate.preempts
        if priority is None or priority <= self._lowest or near.earlier is not None:
            return False
        like = priority, _equivalence_key(candidate)
        if like not in self._preempting and self._tries > 0:
            self._tries -= 1
            rooms = greedy.without_lower_priority(self._ground.nodes, priority)
            found = greedy.check_fit(candidate.requests, NodeSnapshot(rooms), first=near.shapes(sure=True)).fits
            self._preempting[like] = found
        return self._preempting.get(like, False)

    def _never(self, candidate: Candidate) -> str:
        """Words for a group that lacks room and always would, on these nodes."""
        like = _equivalence_key(candidate)
        if self._judgements > 0 and not self._prospects.is_known(like):
            self._judgements -= 1
            self._prospects.look(like, candidate.requests)
        never = self._prospects.never(like)
        return f"; can never fit on the nodes there are: {never}" if never else ""

    def _told(self, candidate: Candidate, like: object) -> str:
        """What it lacks, without a closer look."""
        known = self._words.of(like)
        if known is not None:
            return known
        minimum = sum(it.minimum for it in candidate.requests)
        places = self._places(candidate)
        return f"room for at most {places} of {minimum} pods" if places < minimum else ""

    def _places(self, candidate: Candidate) -> int:
        """For how many of its pods there may be room, at most."""
        return sum(self._ground.capacity(shape) for it in candidate.requests for shape in it.shapes)

    def _closer(self, candidate: Candidate, like: object, near: OverlappingDomains) -> tuple[bool, str]:
        """Places the group, as it might be, after those that are sure of their places."""
        if self._words.still(like, self._state):
            return False, self._words.of(like) or ""
        first = near.shapes(sure=True)
        if len(first) > MAX_POD_KINDS:
            return False, f"{len(first)} different kinds of pods are being placed before it"
        answer = greedy.check_fit(candidate.requests, self._ground, first=first, beside=near.shapes(sure=False))
        if answer.fits and answer.guaranteed and not candidate.unsupported:
            self._doubtful.discard(like)
            return True, ""
        self._words.learn(like, answer.shortage, self._now, self._state)
        return False, answer.shortage


def admitted_group(verdict: Admit, now: float) -> AdmittedGroup:
    """What is going to be opened counts as open."""
    it = verdict.candidate
    return AdmittedGroup(
        requests=it.requests,
        domain=it.domain,
        proven=verdict.proven,
        labelled_pods=it.labelled_pods,
        priority=it.priority,
        admitted_at=now,
    )


def _without(shape: PodShape, nodes: Requirement) -> PodShape:
    selection = msgspec.structs.replace(shape.selection, every=(*shape.selection.every, nodes))
    return msgspec.structs.replace(shape, selection=selection)


def _outranks(candidate: Candidate, near: OverlappingDomains) -> bool:
    """Whether its priority is above those that are being tried."""
    return all(it.priority < candidate.priority for it in near.probing)


def _equivalence_key(candidate: Candidate) -> object:
    """The same for groups that need the same room: what one of them lacks, the others lack too."""
    return candidate.unsupported, tuple(
        (
            it.minimum,
            tuple(sorted(it.resources.items())),
            tuple((shape.equivalence_key, shape.count) for shape in it.shapes),
        )
        for it in candidate.requests
    )


def _behind(candidate: Candidate, other: PodGroupKey, why: str) -> Hold:
    """Whose name a tenant may not see is not said on his group."""
    seen = any(other.namespace == it.key.namespace for it in candidate.requests)
    whom = other.path if seen else "a group of another namespace"
    return Hold(candidate=candidate, reason=names.REASON_BEHIND_OTHER, message=f"behind {whom}, {why}")


def _doubt(candidate: Candidate, lacks: str) -> str:
    if lacks:
        return lacks
    if candidate.unsupported:
        return f"{', '.join(candidate.unsupported)} is not reckoned with"
    return "its room depends on where the scheduler puts the others"
