"""Evaluates a group that is not admitted: why it waits, or the candidate that it is for the scheduling cycle (G3).

Used by the controller's scheduler, and by the command line, which explains the same decisions.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.podgroups import cycle, generation, preconditions
from jobset_gate.podgroups.candidate import (
    Admit,
    AdmittedGroup,
    Candidate,
    CapacityCheck,
    Domains,
    Hold,
    make_candidate,
)
from jobset_gate.podgroups.cycle import ExcludedNodes
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot
from jobset_gate.podgroups.model import POD_GROUP_APIS, MergedGroup, PodGroupKey
from jobset_gate.podgroups.owners import OwnerCapacity
from jobset_gate.podgroups.preconditions import GangGroup, GroupLookup, GroupReason
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, GangShare
from jobset_gate.podgroups.reserved import SnapshotLookup, reserved_for
from jobset_gate.podgroups.snapshot import GroupSnapshot

Evaluation = Candidate | GroupReason | None
GangGroupMemo = MutableMapping[tuple[PodGroupKey, ...], Evaluation]
"""Evaluations of GangGroups by their gangs: the same for each gang."""

_FIRST: Final = (names.REASON_INVALID_GROUP, names.REASON_POD_GROUP_MISSING, names.REASON_INVALID_GANG_GROUP)
"""These come before all other reasons."""

_LAST: Final = (names.REASON_GATHERING, names.REASON_WAITING_FOR_GANG_GROUP, names.REASON_OTHER_GATE)
"""That the group was evicted comes before these."""


class GroupEvaluator:
    """Evaluates groups by their snapshots and by those of the other gangs of their GangGroups."""

    def __init__(
        self,
        snapshot: SnapshotLookup,
        look_up: GroupLookup,
        *,
        across_namespaces: bool = False,
        owner_capacities: Mapping[PodGroupKey, tuple[OwnerCapacity, ...]] | None = None,
        quota_shortage: Callable[[GroupSnapshot], str] = lambda _: "",
        other_precondition: Callable[[GroupSnapshot], GroupReason | None] = lambda _: None,
        crd_problems: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`quota_shortage`: what the namespace's quota lacks for a group, "" if nothing. `other_precondition`: of the
        controller. `crd_problems`: by API group, why its PodGroups cannot be used.
        """
        self._snapshot, self._look_up, self._across = snapshot, look_up, across_namespaces
        self._owner_capacities = {} if owner_capacities is None else owner_capacities
        self._quota_shortage, self._other_precondition = quota_shortage, other_precondition
        self._crd_problems = crd_problems

    def evaluate(
        self, seen: GroupSnapshot, domains: Domains, now: float, together: GangGroupMemo | None = None
    ) -> Evaluation:
        """A candidate stands for its whole GangGroup and is the same for each of its gangs. None: nothing to admit.

        `together` keeps the evaluations of GangGroups, as long as nothing changes.
        """
        record, key = seen.record, seen.group.key
        if record is not None and record.stage is not AdmissionState.CLOSED:
            return None
        gang_group = preconditions.gang_group_of(seen.group, self._look_up, across_namespaces=self._across)
        capacities, gates = self._owner_capacities.get(key, ()), generation.foreign_gates(seen)
        unmet = preconditions.first_unmet(seen.group, gang_group, capacities, gates)
        if unmet is not None and unmet.reason in _FIRST:
            return self._with_crd_problems(unmet, key)
        unmet_other = self._other_precondition(seen)  # also of a group that never gathers
        if unmet_other is not None:
            return unmet_other
        if unmet is not None and unmet.reason not in _LAST:
            return unmet
        back_off = _in_backoff(record, now)
        waits = _not_retried(record) or back_off or unmet
        if waits is not None:
            alone = gang_group.keys == (key,) and unmet is None and bool(generation.ready_members(seen))
            keeps_room = waits is back_off and alone and _may_have_made_room(record)
            return make_candidate([seen], domains, backing_off=waits.message) if keeps_room else waits
        keys, known = gang_group.keys, {} if together is None else together
        if keys not in known:
            known[keys] = self._evaluate_together(gang_group, domains, now)
        return known[keys]

    def _evaluate_together(self, gang_group: GangGroup, domains: Domains, now: float) -> Evaluation:
        """All gangs of a GangGroup that are not admitted yet, as one candidate."""
        seen = [it for key in sorted(gang_group.keys, key=_by_name) if (it := self._snapshot(key)) is not None]
        for each in seen:
            waits = self._gang_waits(each, now)
            if waits is not None:
                return waits
        closed = [it for it in seen if it.record is None or it.record.stage is AdmissionState.CLOSED]
        ready = [it for it in closed if generation.ready_members(it)]
        return make_candidate(ready, domains) if ready else None

    def _gang_waits(self, seen: GroupSnapshot, now: float) -> GroupReason | None:
        record, path = seen.record, seen.group.key.path
        if record is not None and record.stage is AdmissionState.ROLLING_BACK:
            return GroupReason(reason=names.REASON_WAITING_FOR_GANG_GROUP, message=f"{path}: being taken back")
        gates = generation.foreign_gates(seen)
        if gates:
            return GroupReason(reason=names.REASON_OTHER_GATE, message=f"{path} is also held by {', '.join(gates)}")
        unmet_other = self._other_precondition(seen)
        if unmet_other is not None:
            return unmet_other
        short = self._quota_shortage(seen)
        if short:
            return GroupReason(reason=names.REASON_WAITING_FOR_CAPACITY, message=short)
        return _not_retried(record) or _in_backoff(record, now)

    def _with_crd_problems(self, reason: GroupReason, key: PodGroupKey) -> GroupReason:
        """A PodGroup may be missing since its CRD cannot be used."""
        problems = [self._crd_problems[api] for api in POD_GROUP_APIS[key.flavor] if api in self._crd_problems]
        if reason.reason != names.REASON_POD_GROUP_MISSING or not problems:
            return reason
        return GroupReason(reason=reason.reason, message=f"{reason.message}; {'; '.join(problems)}")


def evaluate_all(
    seen: Iterable[GroupSnapshot],
    nodes: Sequence[NodeInfo],
    evaluator: GroupEvaluator,
    *,
    bound: Callable[[str], bool],
    check: CapacityCheck,
    starvation_seconds: float,
    now: float,
    excluded: ExcludedNodes = lambda _: frozenset(),
) -> dict[PodGroupKey, Admit | Hold | GroupReason]:
    """The decision on each group that is not admitted. `bound`: whether `nodes` account for a pod, by UID."""
    domains = Domains(nodes)
    found: dict[PodGroupKey, Admit | Hold | GroupReason] = {}
    waiting: dict[PodGroupKey, Candidate] = {}
    admitted: list[AdmittedGroup] = []
    together: GangGroupMemo = {}
    for each in seen:
        answer = evaluator.evaluate(each, domains, now, together)
        if isinstance(answer, Candidate):
            waiting[answer.key] = answer
        elif answer is not None:
            found[each.group.key] = answer
        admitted += reserved_for(each, bound, domains, now)
    going = cycle.SchedulingCycle(
        admitted, NodeSnapshot(nodes), now=now, check=check, starvation_seconds=starvation_seconds, excluded=excluded
    )
    for it in going.decide_all(waiting.values()):
        found |= dict.fromkeys((request.key for request in it.candidate.requests), it)
    return found


def _not_retried(record: AdmissionRecord | None) -> GroupReason | None:
    if record is None or record.retry:
        return None
    message = f"was taken back ({record.why}) and is not opened again until all of its pods are gone"
    return GroupReason(reason=names.REASON_TIMED_OUT, message=message)


def _in_backoff(record: AdmissionRecord | None, now: float) -> GroupReason | None:
    if record is None or now >= record.not_before:
        return None
    times = "once" if record.rolled_back == 1 else f"{record.rolled_back} times"
    return GroupReason(reason=names.REASON_ROLLED_BACK, message=f"taken back {times}: {record.why}")


def _may_have_made_room(record: AdmissionRecord | None) -> bool:
    """Free room may come from the group's own first eviction; a group with proven room lacked something else."""
    return record is not None and record.rolled_back == 1 and record.how is AdmissionMode.PROBE


def _by_name(key: PodGroupKey) -> tuple[str, str]:
    return key.path, key.flavor


# --- The record of an admission --------------------------------------------------------------------------------------

MAX_WAITS: Final[Mapping[AdmissionMode, Fraction]] = MappingProxyType(
    {AdmissionMode.PROBE: Fraction(3600), AdmissionMode.FIT: Fraction(86_400)}
)
"""Longest limit in seconds, whatever the user wants: for that long an admitted group may keep others waiting."""


def new_record(seen: Sequence[GroupSnapshot], how: AdmissionMode, now: float) -> AdmissionRecord:
    """The record that admits these gangs together; later changes of pods and PodGroups do not change it."""
    shares = [_share(it) for it in seen]
    return AdmissionRecord(
        generation=generation.next_generation(seen[0]),
        stage=AdmissionState.OPEN,
        how=how,
        at=now,
        gangs=tuple((it.group.key, generation.next_generation(it)) for it in seen),
        minimum=shares[0].minimum,
        wait=_wait([it.group for it in seen], how),
        mode=shares[0].mode,
        many=shares[0].many,
        newest=shares[0].newest,
        shares=tuple(shares) if len(shares) > 1 else (),
        rolled_back=max((it.record.rolled_back for it in seen if it.record is not None), default=0),
    )


def trusted_record(record: AdmissionRecord, group: MergedGroup, gangs: Sequence[MergedGroup]) -> AdmissionRecord:
    """The record with no larger minimum and limit than its pods and PodGroups say now: users may write any numbers to
    the object that stores it. `gangs`: all existing groups of the decision.
    """
    minimum = record.minimum if group.minimum is None else min(record.minimum, group.minimum)
    wait = min(record.wait, _wait(gangs, record.how))
    if record.stage is AdmissionState.CLOSED or (minimum, wait) == (record.minimum, record.wait):
        return record
    return msgspec.structs.replace(record, minimum=minimum, wait=wait)


def _wait(groups: Sequence[MergedGroup], how: AdmissionMode) -> Fraction:
    wanted = max(it.wait for it in groups)
    return min(wanted, MAX_WAITS.get(how, wanted))


def _share(seen: GroupSnapshot) -> GangShare:
    members = generation.ready_members(seen)
    return GangShare(
        minimum=seen.group.minimum or 0,
        mode=seen.group.mode,
        many=len(members),
        newest=max((it.created for it in members), default=0.0),
    )
