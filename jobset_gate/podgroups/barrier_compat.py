"""A group whose pods also wait in the start barrier: both have to want the same pods, in the same time (G6).

The door judges what a JobSet says by itself; where the minimum or the limit stands in a PodGroup, the keeper does
(barrier_seen.py).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from jobset_gate import names
from jobset_gate.barrier.config import targets
from jobset_gate.barrier.model import Config
from jobset_gate.objects.field_error import FieldError, child_path
from jobset_gate.objects.jobset import ReplicatedJobView, replicated_jobs
from jobset_gate.objects.unstructured import Json, format_path
from jobset_gate.podgroups.admission import matches_conditions
from jobset_gate.podgroups.formats import conflicting_names, name_path, parse_membership
from jobset_gate.podgroups.merge import DEFAULT_WAITS
from jobset_gate.podgroups.model import Flavor, Format, Membership, PodGroupKey, RawMetadata
from jobset_gate.settings import Barrier, Groups, Settings

_LIMIT_IN_POD_GROUP = frozenset({Format.SCHEDULER_PLUGINS, Format.KOORDINATOR_POD_GROUP})


@dataclass(frozen=True, slots=True)
class _GroupedJob:
    """A replicatedJob whose pods name a group that we hold."""

    job: ReplicatedJobView
    meta: RawMetadata
    claim: Membership

    @property
    def where(self) -> str:
        return name_path(self.meta, self.claim)


def barrier_conflicts(jobset: Json, config: Config, groups: Groups) -> list[FieldError]:
    """What forbids a gated JobSet in a group: the group may open with fewer pods than the barrier waits for, or never.

    A JobSet whose gate lets it wait for other pods than those of the group is none of it.
    """
    waited, everybody = targets(jobset, config), list(_named(jobset, groups))
    expected, indexes = sum(job.expected_pods for job in waited), {job.index for job in waited}
    ours = [it for it in everybody if it.job.index in indexes]
    found = [twice for it in ours if (twice := conflicting_names(it.meta, groups.ways))]
    members: Counter[PodGroupKey] = Counter()
    for it in everybody:
        members[it.claim.key] += it.job.expected_pods
    firsts = {it.claim.key: it for it in reversed(ours)}
    keys = dict.fromkeys(it.claim.key for it in ours)
    found += [_other_pods(firsts[key], members[key], expected) for key in keys if members[key] != expected]
    found += [wrong for it in ours if (wrong := _minimum(it, expected))]
    return found


def barrier_warnings(jobset: Json, config: Config, settings: Settings) -> list[str]:
    """What is probably not meant: the barrier gives up while the group is still being placed."""
    indexes = {job.index for job in targets(jobset, config)}
    found: dict[PodGroupKey, str] = {}
    for it in _named(jobset, settings.groups):
        wait = _wait(it.claim, settings.groups)
        told = None if wait is None else timeout_warning(_limit(config, settings.barrier), wait)
        if told and it.job.index in indexes:
            found.setdefault(it.claim.key, f"{it.where}: {it.claim.key.name}: {told}")
    return list(found.values())


def minimum_conflict(path: str, wanted: int, expected: int) -> FieldError | None:
    """A minimum, said at `path`, that is not what the barrier expects."""
    if wanted == expected:
        return None
    return FieldError(
        path, wanted, f"must equal what the start barrier waits for: {wanted} pods here, {expected} there"
    )


def timeout_warning(limit: int | None, wait: Fraction) -> str | None:
    """What to warn of: the barrier gives up while the group is still being placed. `limit` None: it never does."""
    if limit is None or limit > wait:
        return None
    return f"the start barrier's timeout of {limit}s must be above the group's wait limit of {float(wait):g}s"


def _named(jobset: Json, groups: Groups) -> Iterator[_GroupedJob]:
    for job in replicated_jobs(jobset):
        meta = RawMetadata.of_object(job.pod_template, "", format_path((*job.pod_path, "metadata")))
        claimed = parse_membership(meta, groups.ways) if matches_conditions(job.pod_template, groups) else None
        if claimed is not None and claimed.key.name:
            yield _GroupedJob(job, meta, claimed)


def _other_pods(named: _GroupedJob, members: int, expected: int) -> FieldError:
    message = f"must have the pods that the start barrier waits for: {members} pods name it, {expected} are waited for"
    return FieldError(named.where, named.claim.key.name, message)


def _minimum(named: _GroupedJob, expected: int) -> FieldError | None:
    """Of what stands on the template; a PodGroup's is the keeper's to look at."""
    wanted, meta = named.claim.spec.minimum, named.meta
    if wanted is None:
        return None
    if named.claim.key.design is Flavor.ALIBABA:
        return minimum_conflict(child_path(meta.labels_path, names.ALIBABA_MINIMUM), wanted, expected)
    return minimum_conflict(child_path(meta.annotations_path, names.KOORDINATOR_MINIMUM), wanted, expected)


def _wait(claimed: Membership, groups: Groups) -> Fraction | None:
    """The group's wait limit; None: only its PodGroup can say."""
    if claimed.spec.wait is not None:
        return claimed.spec.wait
    if claimed.format in _LIMIT_IN_POD_GROUP:
        return None
    return DEFAULT_WAITS.get(claimed.key.design, Fraction(groups.wait_seconds))


def _limit(config: Config, barrier: Barrier) -> int | None:
    return barrier.max_wait_seconds if config.timeout is None else config.timeout
