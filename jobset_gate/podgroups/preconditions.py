"""Preconditions of admission: the first unmet one is the reason why a group waits (G3, G6)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.model import Value, WorkloadSeen
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.objects.unstructured import as_list, as_map, nested
from jobset_gate.podgroups import admission, merge, owners, wire
from jobset_gate.podgroups.fit.constraints import PODS, Amounts, format_amount, parse_amounts
from jobset_gate.podgroups.model import Flavor, MergedGroup, PodGroupKey
from jobset_gate.podgroups.owners import OwnerCapacity
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod

MAX_PROBLEMS_NAMED: Final = 5
MAX_GANGS_NAMED: Final = 10


class GroupReason(Value, frozen=True):
    """Reason and message for the status of a group."""

    reason: str
    message: str


# --- GangGroups ------------------------------------------------------------------------------------------------------


class GangGroup(Value, frozen=True):
    """A gang's GangGroup, as that gang lists it."""

    keys: tuple[PodGroupKey, ...]
    """All gangs that are admitted together, this one among them."""
    waits_for: tuple[str, ...] = ()
    """Other gangs that do not exist yet, have not gathered, or are invalid: `namespace/name: what lacks`."""
    problem: FieldError | None = None
    """Why its list is invalid: it waits until that is corrected, and the others do not wait for it."""


GroupLookup = Callable[[PodGroupKey], MergedGroup | None]


def gang_group_of(group: MergedGroup, look_up: GroupLookup, *, across_namespaces: bool = False) -> GangGroup:
    """The GangGroup of `group`; `look_up` gives the other groups.

    A list that not all its gangs have is invalid for the gang that made it, so that no gang is bound by the list of
    another. A gang that does not exist yet may still get the same list.
    """
    listed = group.gangs
    if not listed or listed == (group.key.path,):
        return GangGroup(keys=(group.key,))
    problem = _own_problem(group, across_namespaces=across_namespaces) or _not_mutual(group, look_up)
    if problem is not None:
        return GangGroup(keys=(group.key,), problem=problem)
    keys = tuple(map(gang_key, listed))
    waits = tuple(
        f"{it.path}: {unmet}" for it in keys if it != group.key and (unmet := _unmet(look_up(it))) is not None
    )
    return GangGroup(keys=keys, waits_for=waits)


def gang_key(path: str) -> PodGroupKey:
    """The gang of an entry `namespace/name`: only Koordinator's gangs have lists."""
    namespace, _, name = path.partition("/")
    return PodGroupKey(flavor=Flavor.KOORDINATOR, namespace=namespace, name=name)


def _own_problem(group: MergedGroup, *, across_namespaces: bool) -> FieldError | None:
    """An error of the list alone."""
    if group.key.path not in group.gangs:
        return _list_error(group, f"must contain the gang itself: {group.key.path}")
    others = [it for it in group.gangs if gang_key(it).namespace != group.key.namespace]
    if others and not across_namespaces:
        listed = truncate_list(others, MAX_GANGS_NAMED)
        message = f"must stay in namespace {group.key.namespace} unless a setting allows others: {listed}"
        return _list_error(group, message, CauseType.FORBIDDEN)
    return None


def _not_mutual(group: MergedGroup, look_up: GroupLookup) -> FieldError | None:
    """An existing gang of the list has another list, or none."""
    for path in group.gangs:
        other = look_up(gang_key(path))
        # An invalid gang has no list yet that could contradict.
        if other is not None and other.valid and not other.pod_group_missing and other.gangs != group.gangs:
            listed = truncate_list(other.gangs, MAX_GANGS_NAMED) or "no GangGroup"
            return _list_error(group, f"must be the same on all of its gangs: {path} has {listed}")
    return None


def _unmet(other: MergedGroup | None) -> str | None:
    if other is None:
        return "not there yet"
    if not other.valid:
        return "invalid"
    if other.pod_group_missing:
        return "its PodGroup is missing"
    return None if other.gathered else f"{other.present}/{other.minimum} pods"


def _list_error(group: MergedGroup, message: str, cause: CauseType = CauseType.INVALID) -> FieldError:
    return FieldError(annotation_path(names.KOORDINATOR_GANGS), list(group.gangs), message, cause)


# --- The rules -------------------------------------------------------------------------------------------------------


def first_unmet(
    group: MergedGroup,
    gang_group: GangGroup,
    owner_capacities: Sequence[OwnerCapacity] = (),
    foreign_gates: Sequence[str] = (),
) -> GroupReason | None:
    """The first unmet precondition; None: the group has gathered and may be admitted.

    `owner_capacities`: of all its pods, if known; `foreign_gates`: on members that it needs for its minimum.
    """
    problems = [str(it) for it in group.problems] + [f"pod {pod}: {it}" for pod, it in group.blamed]
    missing = f"{group.present} pods name PodGroup {group.key.path}, which does not exist"
    unmet: tuple[tuple[str, str | None], ...] = (
        (names.REASON_INVALID_GROUP, truncate_list(problems, MAX_PROBLEMS_NAMED, "; ")),  # the others need valid values
        (names.REASON_POD_GROUP_MISSING, missing if group.pod_group_missing else ""),  # its minimum is unknown
        (names.REASON_INVALID_GANG_GROUP, str(gang_group.problem or "")),  # waiting does not correct it
        (names.REASON_CANNOT_GATHER, owners.capacity_shortage(group, owner_capacities)),  # nor this
        (names.REASON_GATHERING, "" if group.gathered else f"{group.present}/{group.minimum} pods exist"),
        (names.REASON_WAITING_FOR_GANG_GROUP, truncate_list(gang_group.waits_for, MAX_GANGS_NAMED, "; ")),
        # Last: a gate of others may go at any time.
        (names.REASON_OTHER_GATE, f"also held by {', '.join(sorted(set(foreign_gates)))}" if foreign_gates else ""),
    )
    return next((GroupReason(reason=reason, message=message) for reason, message in unmet if message), None)


# --- With a start barrier --------------------------------------------------------------------------------------------

JobSetLookup = Callable[[str, str], WorkloadSeen | None]
"""A JobSet with a barrier by namespace and name; None: it has none, or is not in the cache yet."""


def barrier_hold(seen: GroupSnapshot, look: JobSetLookup) -> GroupReason | None:
    """Why a group of pods with a start barrier may not be admitted: its minimum differs from what the barrier expects.

    The webhook compares what templates say (`admission`); this is for a minimum in a PodGroup.
    """
    group = seen.group
    if group.minimum is None:
        return None
    unknown = sorted({it.jobset for it in seen.members if it.barrier and _is_unknown(it, look)})
    if unknown:  # a new leader's pod cache may be filled first
        text = f"its pods also wait in the start barrier of JobSet {', '.join(unknown)}, which has not been seen yet"
        return GroupReason(reason=names.REASON_GATHERING, message=text)
    for jobset in _jobsets(seen, look):
        expected = sum(job.expected for job in jobset.targets)
        conflict = admission.minimum_conflict(_minimum_path(group), group.minimum, expected)
        if conflict is not None:
            return GroupReason(reason=names.REASON_INVALID_GROUP, message=f"{conflict} (JobSet {jobset.name})")
    return None


def barrier_timeout_warnings(seen: GroupSnapshot, look: JobSetLookup) -> tuple[str, ...]:
    """Warnings: a barrier may time out before its group does."""
    found = ((it.name, admission.timeout_warning(it.config.timeout, seen.group.wait)) for it in _jobsets(seen, look))
    return tuple(f"JobSet {name}: {text}" for name, text in found if text is not None)


def _jobsets(seen: GroupSnapshot, look: JobSetLookup) -> Iterator[WorkloadSeen]:
    """The JobSets with a barrier that its pods belong to, by name."""
    for name in sorted({it.jobset for it in seen.members if it.jobset and it.alive}):
        jobset = look(seen.group.key.namespace, name)
        if jobset is not None:
            yield jobset


def _is_unknown(member: MemberPod, look: JobSetLookup) -> bool:
    return member.alive and member.gated and look(member.namespace, member.jobset) is None


def _minimum_path(group: MergedGroup) -> str:
    """Koordinator's minimum is on the pods unless the PodGroup has it."""
    pod_group = group.pod_group
    if group.key.flavor is Flavor.KOORDINATOR and pod_group is not None and pod_group.spec.minimum == group.minimum:
        return "spec.minMember"
    return merge.minimum_path(group.key)


_PREFIX: Final = "requests."
_COUNT_PODS: Final = "count/pods"
_OTHERS: Final = ("limits.", "count/", "services", "secrets", "configmaps", "persistentvolumeclaims", "resourcequotas")
"""What a quota may limit other than the requests of pods."""


class QuotaLimits(Value, frozen=True):
    """A ResourceQuota's limits on the requests of pods, in thousandths, by the name of the resource."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    has_scopes: bool = False


def read_quota(quota: wire.ResourceQuota) -> QuotaLimits:
    """A ResourceQuota; one without a status yet has nothing used."""
    spec, status = as_map(quota.spec), as_map(quota.status)
    return QuotaLimits(
        namespace=quota.metadata.namespace,
        name=quota.metadata.name,
        hard=_limits(status.get("hard") or spec.get("hard")),
        used=_limits(status.get("used")),
        has_scopes=bool(as_list(spec.get("scopes")) or as_list(nested(spec, "scopeSelector", "matchExpressions"))),
    )


def quota_shortage(group: GroupSnapshot, quotas: Sequence[QuotaLimits]) -> str:
    """What lacks for the group's totalResources; "": nothing."""
    key, resources = group.group.key, group.group.resources
    if key.flavor is not Flavor.KEP_24 or not resources:
        return ""
    charged = _charged(group)
    for quota in quotas:
        if quota.has_scopes or quota.namespace != key.namespace:
            continue
        for name, amount in resources:
            wanted = int(amount * 1000)
            left = quota.hard.get(name, 0) - quota.used.get(name, 0) + charged.get(name, 0)
            if name in quota.hard and wanted > left:
                needs = f"needs {format_amount(name, wanted)} {name}, {format_amount(name, max(0, left))} left"
                return f"{needs} in ResourceQuota {quota.name}"
    return ""


def _charged(group: GroupSnapshot) -> dict[str, int]:
    """For the members: a quota charges terminating pods, and finished ones not."""
    total: dict[str, int] = {}
    for member in group.members:
        if not member.ended:
            for name, amount in member.shape.requests.items():
                total[name] = total.get(name, 0) + amount
    return total


def _limits(values: Any) -> dict[str, int]:
    """By the names that pods use; of `requests.cpu` and `cpu`, which are the same, the smaller."""
    found: dict[str, int] = {}
    for key, amount in parse_amounts(values).items():
        name = PODS if key == _COUNT_PODS else key.removeprefix(_PREFIX)
        if name == PODS or not name.startswith(_OTHERS):
            found[name] = min(amount, found.get(name, amount))
    return found
