"""Admission of a pod that names a group: what is patched into it, and why it is denied (G2, G6).

Only two names on one pod are denied. Other errors are reported on the group and its pods, since the owner of a denied
pod would retry for ever.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import targets
from jobset_gate.barrier.model import Config
from jobset_gate.objects.field_error import FieldError, child_path
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.template import TemplateView, templates_of
from jobset_gate.objects.unstructured import Json, Path, as_list, as_map, format_path, nested
from jobset_gate.podgroups.formats import conflicting_names, name_path, parse_membership
from jobset_gate.podgroups.merge import DEFAULT_WAITS
from jobset_gate.podgroups.model import Flavor, Format, Membership, PodGroupKey, RawMetadata, group_label
from jobset_gate.settings import Groups, Native, Settings

_GATES: Final[Path] = ("spec", "schedulingGates")
_CONTROLLER_ONLY: Final = (names.POD_GROUP_OPENED, names.POD_GROUP_TAKEN_BACK)
"""Annotations of the controller: a pod that comes with one is a copy of an admitted pod."""


def admit_pod(pod: Json, namespace: str, groups: Groups) -> list[Json] | FieldError:
    """What the CREATE of a pod patches into it, or why it is denied; idempotent."""
    if not matches_conditions(pod, groups):
        return []
    meta = RawMetadata.of_object(pod, namespace)
    member = parse_membership(meta, groups.ways)
    if member is None:
        return []
    return conflicting_names(meta, groups.ways) or _patch(pod, member.key, groups.native)


def matches_conditions(pod: Json, groups: Groups) -> bool:
    """The matchConditions of the webhook on a pod or a pod template, but for the group's name."""
    spec, annotations = as_map(pod.get("spec")), as_map(nested(pod, "metadata", "annotations"))
    return (
        groups.enabled
        and (spec.get("schedulerName") or names.DEFAULT_SCHEDULER) in groups.scheduler_names
        and not spec.get("nodeName")
        and names.MIRROR_POD not in annotations
        and not any(_is_daemon_set(it) for it in as_list(nested(pod, "metadata", "ownerReferences")))
        and "schedulingGroup" not in spec
    )


def _is_daemon_set(owner: Any) -> bool:
    return nested(owner, "kind") == "DaemonSet" and nested(owner, "controller") is True


def _patch(pod: Json, key: PodGroupKey, native: Native) -> list[Json]:
    patch, label = PatchBuilder(pod), group_label(key)
    if nested(pod, "metadata", "labels", names.POD_GROUP_LABEL) != label:
        patch.set(("metadata", "labels", names.POD_GROUP_LABEL), label)
    for annotation in _CONTROLLER_ONLY:
        if annotation in as_map(nested(pod, "metadata", "annotations")):
            patch.remove(("metadata", "annotations", annotation))
    gates = as_list(nested(pod, *_GATES))
    if not gates:
        patch.set(_GATES, [{"name": names.POD_GROUP_GATE}])
    elif not any(nested(gate, "name") == names.POD_GROUP_GATE for gate in gates):
        patch.insert((*_GATES, len(gates)), {"name": names.POD_GROUP_GATE})
    if native is Native.ON and key.name:
        patch.set(("spec", "schedulingGroup"), {"podGroupName": names.NATIVE_PREFIX + label})
    return patch.operations


# --- JobSets with a start barrier in a group -------------------------------------------------------------------------

_LIMIT_IN_POD_GROUP: Final = frozenset({Format.SCHEDULER_PLUGINS, Format.KOORDINATOR_POD_GROUP})


@dataclass(frozen=True, slots=True)
class _GroupedJob:
    """A replicatedJob whose pods name a group that is held."""

    job: TemplateView
    meta: RawMetadata
    member: Membership

    @property
    def path(self) -> str:
        return name_path(self.meta, self.member)


def barrier_conflicts(obj: Json, config: Config, groups: Groups) -> list[FieldError]:
    """Errors of a JobSet with a barrier in a group: the group must consist of the pods that the barrier expects.

    A minimum in a PodGroup is compared by the controller (`preconditions.barrier_hold`).
    """
    waited, grouped = targets(obj, config), list(_grouped_jobs(obj, groups))
    expected, indexes = sum(job.expected_pods for job in waited), {job.index for job in waited}
    ours = [it for it in grouped if it.job.index in indexes]
    found = [twice for it in ours if (twice := conflicting_names(it.meta, groups.ways))]
    members: Counter[PodGroupKey] = Counter()
    for it in grouped:
        members[it.member.key] += it.job.expected_pods
    firsts = {it.member.key: it for it in reversed(ours)}
    keys = dict.fromkeys(it.member.key for it in ours)
    found += [_other_pods(firsts[key], members[key], expected) for key in keys if members[key] != expected]
    found += [conflict for it in ours if (conflict := _minimum_conflict(it, expected))]
    return found


def barrier_warnings(obj: Json, config: Config, settings: Settings) -> list[str]:
    """Warnings: the barrier may time out before the group does."""
    indexes = {job.index for job in targets(obj, config)}
    limit = settings.barrier.max_wait_seconds if config.timeout is None else config.timeout
    found: dict[PodGroupKey, str] = {}
    for it in _grouped_jobs(obj, settings.groups):
        wait = _wait(it.member, settings.groups)
        warning = None if wait is None else timeout_warning(limit, wait)
        if warning and it.job.index in indexes:
            found.setdefault(it.member.key, f"{it.path}: {it.member.key.name}: {warning}")
    return list(found.values())


def minimum_conflict(path: str, wanted: int, expected: int) -> FieldError | None:
    """A minimum that differs from what the barrier expects."""
    if wanted == expected:
        return None
    message = f"must equal what the start barrier waits for: {wanted} pods here, {expected} there"
    return FieldError(path, wanted, message)


def timeout_warning(limit: int | None, wait: Fraction) -> str | None:
    """`limit`: timeout of the barrier, None: it has none; `wait`: limit of the group."""
    if limit is None or limit > wait:
        return None
    return f"the start barrier's timeout of {limit}s must be above the group's wait limit of {float(wait):g}s"


def _grouped_jobs(obj: Json, groups: Groups) -> Iterator[_GroupedJob]:
    for job in templates_of(obj):
        meta = RawMetadata.of_object(job.pod_template, "", format_path((*job.pod_path, "metadata")))
        member = parse_membership(meta, groups.ways) if matches_conditions(job.pod_template, groups) else None
        if member is not None and member.key.name:
            yield _GroupedJob(job, meta, member)


def _other_pods(job: _GroupedJob, members: int, expected: int) -> FieldError:
    message = f"must have the pods that the start barrier waits for: {members} pods name it, {expected} are waited for"
    return FieldError(job.path, job.member.key.name, message)


def _minimum_conflict(job: _GroupedJob, expected: int) -> FieldError | None:
    minimum, meta = job.member.spec.minimum, job.meta
    if minimum is None:
        return None
    alibaba = job.member.key.flavor is Flavor.ALIBABA
    path = child_path(meta.labels_path, names.ALIBABA_MINIMUM)
    return minimum_conflict(
        path if alibaba else child_path(meta.annotations_path, names.KOORDINATOR_MINIMUM), minimum, expected
    )


def _wait(member: Membership, groups: Groups) -> Fraction | None:
    """The group's limit; None: only its PodGroup says it."""
    if member.spec.wait is not None:
        return member.spec.wait
    if member.format in _LIMIT_IN_POD_GROUP:
        return None
    return DEFAULT_WAITS.get(member.key.flavor, Fraction(groups.wait_seconds))
