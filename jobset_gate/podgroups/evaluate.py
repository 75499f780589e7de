"""What becomes of the groups that are not open: why each waits, or that it may be considered for opening (G3).

Used by the keeper that opens them and by the command line that tells of them.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.podgroups import cycle, generation, preconditions
from jobset_gate.podgroups.candidate import Admit, AdmittedGroup, Candidate, CapacityCheck, Hold
from jobset_gate.podgroups.candidate_requests import make_candidate
from jobset_gate.podgroups.cycle import ExcludedNodes
from jobset_gate.podgroups.fit.domains import Domains
from jobset_gate.podgroups.fit.guaranteed import NodeInfo
from jobset_gate.podgroups.gang_groups import GangGroup
from jobset_gate.podgroups.model import POD_GROUP_APIS, MergedGroup, PodGroupKey
from jobset_gate.podgroups.owner_capacity import OwnerCapacity
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState
from jobset_gate.podgroups.reserved import SnapshotLookup, reserved_for
from jobset_gate.podgroups.snapshot import GroupSnapshot

Evaluation = Candidate | GroupReason | None
GangGroupMemo = MutableMapping[tuple[PodGroupKey, ...], Evaluation]
"""By the gangs that open together, what was found of them: the same for each of them."""


class GroupEvaluator:
    """All that the judgement of a group depends on, besides the group itself."""

    def __init__(
        self,
        look: SnapshotLookup,
        groups: Mapping[PodGroupKey, MergedGroup],
        *,
        across_namespaces: bool = False,
        creators: Mapping[PodGroupKey, tuple[OwnerCapacity, ...]] | None = None,
        short_of_quota: Callable[[GroupSnapshot], str] = lambda _: "",
        barred: Callable[[GroupSnapshot], GroupReason | None] = lambda _: None,
        trouble: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`short_of_quota`: what the namespace's quota lacks for a group, "" if nothing. `barred`: what else forbids to
        open it. `trouble`: by API group, why its PodGroups cannot be used.
        """
        self._look, self._groups, self._across = look, groups, across_namespaces
        self._creators = {} if creators is None else creators
        self._short_of_quota, self._barred, self._trouble = short_of_quota, barred, trouble

    def evaluate(
        self, seen: GroupSnapshot, domains: Domains, now: float, together: GangGroupMemo | None = None
    ) -> Evaluation:
        """A candidate stands for its whole GangGroup, and is the same for each of its gangs. None: nothing to open.

        `together` keeps what is the same for them, as long as nothing changes.
        """
        record = seen.record
        if record is not None and record.stage is not AdmissionState.CLOSED:
            return None
        others = generation.foreign_gates(seen)
        told = preconditions.precondition_input(
            seen.group,
            self._groups,
            made_by=self._creators.get(seen.group.key, ()),
            other_gates=others,
            across_namespaces=self._across,
        )
        held = preconditions.first_unmet(told)
        if held is not None and held.reason in _FIRST:
            return self._explained(held, seen.group.key)
        barred = self._barred(seen)  # also of one that never gathers
        if barred is not None:
            return barred
        if held is not None and held.reason not in _PATIENT:
            return held
        back = _in_backoff(record, now)
        alone = _not_retried(record) or back or held
        if alone is not None:
            keeps = alone is back and held is None and told.gang_group.keys == (seen.group.key,) and _keeps(record)
            keeps = keeps and bool(generation.ready_members(seen))
            return make_candidate([seen], domains, backs_off=alone.message) if keeps else alone
        keys, known = told.gang_group.keys, {} if together is None else together
        if keys not in known:
            known[keys] = self._together(told.gang_group, domains, now)
        return known[keys]

    def _together(self, gang_group: GangGroup, domains: Domains, now: float) -> Evaluation:
        """All gangs of a GangGroup that are not open yet, as one."""
        seen = [it for key in sorted(gang_group.keys, key=_by_name) if (it := self._look(key)) is not None]
        closed = [it for it in seen if it.record is None or it.record.stage is AdmissionState.CLOSED]
        for each in seen:
            held = self._of_partner(each, now)
            if held is not None:
                return held
        ready = [it for it in closed if generation.ready_members(it)]
        return make_candidate(ready, domains) if ready else None

    def _explained(self, held: GroupReason, key: PodGroupKey) -> GroupReason:
        """A PodGroup may be missing because its kind cannot be used."""
        told = [self._trouble[api] for api in POD_GROUP_APIS[key.design] if api in self._trouble]
        if held.reason != names.REASON_POD_GROUP_MISSING or not told:
            return held
        return GroupReason(reason=held.reason, message=f"{held.message}; {'; '.join(told)}")

    def _of_partner(self, seen: GroupSnapshot, now: float) -> GroupReason | None:
        record, path = seen.record, seen.group.key.path
        if record is not None and record.stage is AdmissionState.ROLLING_BACK:
            return GroupReason(reason=names.REASON_WAITING_FOR_GANG_GROUP, message=f"{path}: being taken back")
        others = generation.foreign_gates(seen)
        if others:
            return GroupReason(reason=names.REASON_OTHER_GATE, message=f"{path} is also held by {', '.join(others)}")
        barred = self._barred(seen)
        if barred is not None:
            return barred
        short = self._short_of_quota(seen)
        if short:
            return GroupReason(reason=names.REASON_WAITING_FOR_CAPACITY, message=short)
        return _not_retried(record) or _in_backoff(record, now)


_FIRST: Final = (names.REASON_INVALID_GROUP, names.REASON_POD_GROUP_MISSING, names.REASON_INVALID_GANG_GROUP)
"""Nothing else is worth telling of such a group."""

_PATIENT: Final = (names.REASON_GATHERING, names.REASON_WAITING_FOR_GANG_GROUP, names.REASON_OTHER_GATE)
"""Less worth telling than that the group was taken back."""


def evaluate_all(
    seen: Iterable[GroupSnapshot],
    rooms: Sequence[NodeInfo],
    *,
    check: CapacityCheck,
    starvation_seconds: float,
    now: float,
    across_namespaces: bool = False,
    creators: Mapping[PodGroupKey, tuple[OwnerCapacity, ...]] | None = None,
    short_of_quota: Callable[[GroupSnapshot], str] = lambda _: "",
    bound: Callable[[str], bool] = lambda _: False,
    avoided: ExcludedNodes = cycle.excludes_no_node,
) -> dict[PodGroupKey, Admit | Hold | GroupReason]:
    """Of each group that is not open. `bound`: whether the room that a pod (by UID) takes is in `rooms` already.
    `avoided`: from which nodes bound pods keep such pods away.
    """
    by_key = {it.group.key: it for it in seen}
    groups = {key: it.group for key, it in by_key.items()}
    view = GroupEvaluator(
        by_key.get, groups, across_namespaces=across_namespaces, creators=creators, short_of_quota=short_of_quota
    )
    around = make_domains(rooms)
    told: dict[PodGroupKey, Admit | Hold | GroupReason] = {}
    waiting: dict[PodGroupKey, Candidate] = {}
    opened: list[AdmittedGroup] = []
    together: GangGroupMemo = {}
    for key, each in by_key.items():
        answer = view.evaluate(each, around, now, together)
        if isinstance(answer, Candidate):
            waiting[answer.key] = answer
        elif answer is not None:
            told[key] = answer
        opened += reserved_for(each, bound, around, now)
    candidates = list(waiting.values())
    rules: dict[str, Any] = {"check": check, "starvation_seconds": starvation_seconds, "avoided": avoided}
    for it in cycle.run_cycle(candidates, opened, rooms, now=now, **rules):
        told |= dict.fromkeys((demand.key for demand in it.candidate.requests), it)
    return told


def make_domains(rooms: Sequence[NodeInfo]) -> Domains:
    """Of nodes as they are now."""
    offers = (
        None
        if any(it.empty is None for it in rooms)
        else {name for it in rooms for name, many in (it.empty or {}).items() if many > 0}
    )
    return Domains([it.node for it in rooms], None if offers is None else frozenset(offers))


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


def _keeps(record: AdmissionRecord | None) -> bool:
    """Whether room that there is by now may be what was made for it: once, and not if it had room from the start."""
    return record is not None and record.rolled_back == 1 and record.how is AdmissionMode.PROBE


def _by_name(key: PodGroupKey) -> tuple[str, str]:
    return key.path, key.design
