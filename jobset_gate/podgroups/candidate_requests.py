"""What gathered groups ask for, as one candidate if they open together: pods that are alike, minimum, rank (G3)."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil
from typing import Final

from jobset_gate.podgroups import generation
from jobset_gate.podgroups.candidate import Candidate
from jobset_gate.podgroups.fit import requests
from jobset_gate.podgroups.fit.anti_affinity import LabelledPod
from jobset_gate.podgroups.fit.domains import Domains
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import PodShape, group_equal
from jobset_gate.podgroups.fit.requests import Amounts
from jobset_gate.podgroups.fit.selection import NodeSelection
from jobset_gate.podgroups.generation import MemberState
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod

MAX_POD_KINDS: Final = 40
"""Of pods in what opens together, or of those that are being placed, for a closer look: each takes a millisecond."""

MIXED: Final = f"that its pods are of more than {MAX_POD_KINDS} kinds"
EVICTED_BEFORE: Final = "what it was taken back for"


def make_candidate(seen: Sequence[GroupSnapshot], domains: Domains, *, backs_off: str = "") -> Candidate:
    """Gathered groups that open together. `backs_off`: why not yet."""
    members = [generation.ready_members(it) for it in seen]
    asked = [pod_shapes(it, domains) for it in members]
    every = [shape for each in asked for shape in each]
    waiting = [it for each in members for it in each]
    its_marks = labelled_pods(waiting)
    mixed = len(group_equal(every)) > MAX_POD_KINDS or len(its_marks) > MAX_POD_KINDS
    return Candidate(
        requests=tuple(
            _demand(it, _least_requests(each) if mixed else each) for it, each in zip(seen, asked, strict=True)
        ),
        priority=max(it.priority for it in waiting),
        created=min(it.created for it in seen) if backs_off else _queued_at(seen),
        ready_since=max(_ready_since(it) for it in seen),
        domain=domains.domain_of(every),
        unsupported=_unsupported(seen, waiting, domains, mixed=mixed, backs_off=bool(backs_off)),
        preempts=min(it.priority for it in waiting) if all(it.preempts for it in waiting) else None,
        labelled_pods=frozenset() if mixed else its_marks,
        backs_off=backs_off,
    )


def pod_shapes(members: Iterable[MemberPod], domains: Domains) -> tuple[PodShape, ...]:
    """Members that are alike counted as one; mostly they share their shape, so that looking at it is not needed.

    Without what no node offers: who serves that is not known here.
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
    """What decides whether others keep them away."""
    return frozenset((it.namespace, it.labels) for it in members if it.labels is not None)


def _unsupported(
    seen: Sequence[GroupSnapshot], members: Sequence[MemberPod], domains: Domains, *, mixed: bool, backs_off: bool
) -> tuple[str, ...]:
    """What is not reckoned with, in words."""
    found = {what for it in members for what in it.unsupported}
    found |= {f"{name}, which no node has," for it in members for name in domains.not_offered(it.shape.requests)}
    if any(it.labels is None for it in members):
        found.add("who keeps pods with so many labels away")
    if mixed:
        found.add(MIXED)
    if not backs_off and any(it.record is not None and it.record.rolled_back for it in seen):
        found.add(EVICTED_BEFORE)  # there was something that nobody had reckoned with
    return tuple(sorted(found))


def _demand(seen: GroupSnapshot, asked: tuple[PodShape, ...]) -> GroupRequest:
    group = seen.group
    there = generation.member_table(seen)[MemberState.PLACED]
    return GroupRequest(
        key=group.key,
        shapes=asked,
        minimum=max(0, (group.minimum or 0) - generation.count_bound(seen)) if asked else 0,
        resources=_left(group.resources, there),
    )


def _least_requests(asked: Sequence[PodShape]) -> tuple[PodShape, ...]:
    """Pods of many kinds as if each asked only for what all of them ask for that may go to the same nodes: where that
    has no room, they have none. () where there are too many kinds of that, too.
    """
    found: dict[NodeSelection, PodShape] = {}
    for it in asked:
        so_far = found.get(it.selection, PodShape(selection=it.selection, requests=it.requests, count=0))
        least = {name: min(many, it.requests.get(name, 0)) for name, many in so_far.requests.items()}
        found[it.selection] = PodShape(selection=it.selection, requests=least, count=so_far.count + it.count)
    return tuple(found.values()) if len(found) <= MAX_POD_KINDS else ()


def _queued_at(seen: Sequence[GroupSnapshot]) -> float:
    """Its age, for the order; who was tried and taken back stands behind those that have waited meanwhile."""
    again = [it.record.not_before for it in seen if it.record is not None and it.record.rolled_back]
    return max(min(it.created for it in seen), *again, 0.0)


def _ready_since(seen: GroupSnapshot) -> float:
    """When it had its minimum of members, or could be tried again."""
    created = sorted(it.created for it in generation.member_table(seen).present)
    minimum = seen.group.minimum or 1
    gathered = created[min(minimum, len(created)) - 1]
    return gathered if seen.record is None else max(gathered, seen.record.not_before)


def _left(resources: tuple[tuple[str, Fraction], ...], there: Iterable[MemberPod]) -> Amounts:
    """What its PodGroup asks for, less what its own pods have already."""
    left = {name: ceil(amount * 1000) for name, amount in resources}
    for member in there if left else ():
        left = requests.subtract(left, member.shape.requests)
    return {name: many for name, many in left.items() if many > 0}
