"""Rules for the templates of a gated object: reserved names, platforms, pod counts, order of creation (A3)."""

from collections.abc import Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.config import targets
from jobset_gate.barrier.model import Config
from jobset_gate.injection import container, ownership
from jobset_gate.injection.container import can_time_out
from jobset_gate.injection.ownership import gated_jobs, gated_labels
from jobset_gate.objects.field_error import CauseType, FieldError, child_path
from jobset_gate.objects.template import IN_ORDER, TemplateView, annotations_of, templates_by_name, templates_of
from jobset_gate.objects.unstructured import Json, as_int, as_list, format_path, nested
from jobset_gate.settings import Barrier
from jobset_gate.sources.objects import has_marked_templates, source_of

WINDOWS: Final = "windows"
OS_LABEL: Final = "kubernetes.io/os"
RESERVED: Final = "is reserved for jobset-gate's start barrier: choose another name"


def metadata(obj: Json) -> list[FieldError]:
    """CREATE: members of metadata whose type the injection could not handle."""
    for path in (("metadata",), ("metadata", "annotations"), ("metadata", "name")):
        kind, expected = (str, "a string") if path[-1] == "name" else (dict, "an object")
        value = nested(obj, *path)
        if not isinstance(value, kind | None):
            return [FieldError(format_path(path), value, f"must be {expected}")]
    return []


def reserved(obj: Json, old: Json | None) -> list[FieldError]:
    """Containers and volumes of the user with reserved names, in any replicatedJob.

    Where the old object has an injected one, `changes` compares with that one instead. Nothing is injected into
    templates whose pods are gated one by one: there each such name is the user's.
    """
    marked = has_marked_templates(obj)
    kept = gated_jobs(old) if old is not None and not marked else {}
    found: list[FieldError] = []
    for job in templates_of(obj):
        mains = enumerate(job.spec_list("containers"))
        found += [_taken(job, "containers", index) for index, it in mains if ownership.is_reserved_container(it)]
        for key in ownership.MANAGED_LISTS:
            compared = {it["name"] for _, it in ownership.own_entries(kept[job.name], key)} if job.name in kept else ()
            foreign = ownership.reserved_entries(job, key) if marked else ownership.foreign_entries(job, key)
            found += [_taken(job, key, index) for index, entry in foreign if entry["name"] not in compared]
    for index, policy in enumerate(as_list(nested(obj, "spec", "volumeClaimPolicies"))):
        for number, claim in enumerate(as_list(nested(policy, "templates"))):
            if ownership.is_reserved_volume(nested(claim, "metadata")):
                path = f"spec.volumeClaimPolicies[{index}].templates[{number}].metadata.name"
                found.append(FieldError(path, claim["metadata"]["name"], RESERVED))
    return found


def unmarked(obj: Json, config: Config) -> list[FieldError]:
    """CREATE: a wrong value of our label in a target, or our label or a barrier where no pod is gated."""
    gated, wanted = source_of(obj).gated, {job.index for job in targets(obj, config)}
    found: list[FieldError] = []
    for job in templates_of(obj):
        for path, value in gated_labels(job).items():
            if value is not None and (job.index not in wanted or value != gated):
                found.append(
                    FieldError(format_path(path), value, "is set by jobset-gate where it belongs: leave it out")
                )
        for index, entry in ownership.own_entries(job, "initContainers") if job.index not in wanted else ():
            path = (*job.pod_path, "spec", "initContainers", index, "name")
            message = "this replicatedJob is no target: take what jobset-gate puts in out of it"
            found.append(FieldError(format_path(path), entry["name"], message))
    return found


def platform(obj: Json, config: Config) -> list[FieldError]:
    """Windows pods cannot run the barrier."""
    found: list[FieldError] = []
    for job in targets(obj, config):
        for path in (("os", "name"), ("nodeSelector", OS_LABEL)):
            value = nested(job.pod_spec, *path)
            if isinstance(value, str) and value.lower() == WINDOWS:
                message = "the start barrier cannot run in Windows pods"
                if source_of(obj).has_targets:
                    message += ": leave this replicatedJob out of the targets"
                found.append(FieldError(format_path((*job.pod_path, "spec", *path)), value, message))
    return found


def empty(obj: Json, config: Config) -> list[FieldError]:
    """CREATE: a named target, or a whole gang, without any expected pod (A4)."""
    jobs = targets(obj, config)
    if config.targets:
        return [error for job in jobs for error in _zeros(job, "the target would have no pods: must be at least 1")]
    if any(job.expected_pods for job in jobs):
        return []
    message = "the gang would have no pods at all: must be at least 1 somewhere"
    zeros = [error for job in jobs for error in _zeros(job, message)]
    return zeros or [FieldError("spec.replicatedJobs", nested(obj, "spec", "replicatedJobs"), message)]


def changes(new: Json, old: Json) -> list[FieldError]:
    """UPDATE: injected entries that differ from the old object's. Missing ones are restored."""
    now = templates_by_name(new)
    found: list[FieldError] = []
    for name, was in gated_jobs(old).items():
        for key in ownership.MANAGED_LISTS if name in now else ():
            kept = {entry["name"]: entry for _, entry in ownership.own_entries(was, key)}
            found += _differing(now[name], key, kept, source_of(old).kind)
    return found


def _differing(job: TemplateView, key: str, kept: dict[str, Json], kind: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, its in enumerate(job.spec_list(key)):
        name = nested(its, "name")
        if not isinstance(name, str) or name not in kept:
            continue
        here = format_path((*job.pod_path, "spec", key, index))
        if name in seen:
            yield FieldError(child_path(here, "name"), name, "is there twice", CauseType.DUPLICATE)
        elif not container.equal_except_token(its, kept[name]):
            message = f"differs from what jobset-gate put in when the {kind} was created: leave it out or as it was"
            yield FieldError(here, its, message, CauseType.FORBIDDEN)
        seen.add(name)


def _zeros(job: TemplateView, message: str) -> Iterator[FieldError]:
    if as_int(job.entry.get("replicas"), 1) <= 0:
        yield FieldError(format_path((*job.path, "replicas")), job.entry["replicas"], message)
    for key in ("parallelism", "completions"):
        if as_int(job.job_spec.get(key), 1) <= 0:
            yield FieldError(format_path((*job.job_path, "spec", key)), job.job_spec[key], message)


def _taken(job: TemplateView, key: str, index: int) -> FieldError:
    name = job.spec_list(key)[index]["name"]
    return FieldError(format_path((*job.pod_path, "spec", key, index, "name")), name, RESERVED)


IN_PLACE: Final = "InPlaceRestart"
ENDLESS: Final = (
    "with it a gang that timed out would restart for ever: "
    f"set the annotation {names.ON_TIMEOUT} to {names.ON_TIMEOUT_RELEASE}"
)
MOST_LINKS_SHOWN: Final = 10


def never_starts(obj: Json, config: Config) -> list[FieldError]:
    """Targets that are created only after another is ready or complete: gated pods become neither."""
    gang = {job.name for job in targets(obj, config) if job.expected_pods}
    return [*_in_order(obj, gang), *_chains(obj, gang)]


def never_ends(obj: Json, config: Config, settings: Barrier) -> list[FieldError]:
    """InPlaceRestart with on-timeout Fail: JobSet demands an unlimited backoffLimit there, so 124 would never end.

    Only where a barrier can exit with 124 at all: with a timeout, or with the operator's maxWaitSeconds.
    """
    strategy = nested(obj, "spec", "failurePolicy", "restartStrategy")
    if strategy != IN_PLACE or not can_fail(obj, config, settings):
        return []
    return [FieldError("spec.failurePolicy.restartStrategy", strategy, f"{ENDLESS}, or choose another strategy")]


def can_fail(obj: Json, config: Config, settings: Barrier) -> bool:
    """Whether a barrier of this gang can exit with 124, and that is what the user wants."""
    fails = annotations_of(obj).get(names.ON_TIMEOUT, names.ON_TIMEOUT_FAIL) == names.ON_TIMEOUT_FAIL
    return fails and can_time_out(config, settings)


def _in_order(obj: Json, gang: set[str]) -> list[FieldError]:
    order = nested(obj, "spec", "startupPolicy", "startupPolicyOrder")
    if order != IN_ORDER or len(gang) < 2:
        return []
    held = ", ".join(name for name in templates_by_name(obj) if name in gang)
    message = (
        "a gang of several replicatedJobs can never start in order, since held pods never become ready: "
        f"{held}; name a single target or use AnyOrder"
    )
    return [FieldError("spec.startupPolicy.startupPolicyOrder", order, message)]


def _chains(obj: Json, gang: set[str]) -> Iterator[FieldError]:
    jobs = templates_by_name(obj)
    for start, chain in _ways(jobs, gang).items() if len(gang) > 1 else ():
        job = jobs[start]
        message = (
            f"the gang can never start: {' -> '.join(chain)}; {start} is made only after {chain[-1]}, "
            "whose pods wait for it"
        )
        yield FieldError(format_path((*job.path, "dependsOn")), _dependencies(job), message)


def _ways(jobs: dict[str, TemplateView], gang: set[str]) -> dict[str, list[str]]:
    """Of each target that depends on another one the shortest way to one, by dependsOn.

    A replicatedJob without replicas is ready and complete at once, so no way leads through it. One search from all
    targets backwards, which meets each replicatedJob once: a search from each target would cost their product.
    """
    dependents: dict[str, list[str]] = {}
    for name, job in jobs.items():
        for needed in _dependencies(job):
            dependents.setdefault(needed, []).append(name)
    nexts: dict[str, tuple[str, str]] = {}  # the next one on the way to a target, and that target
    met = [name for name, job in jobs.items() if name in gang and job.replicas]
    for name in met:
        end = name if name in gang else nexts[name][1]
        for dependent in dependents.get(name, ()):
            if dependent not in nexts and dependent != end:
                nexts[dependent] = (name, end)
                if dependent not in gang and jobs[dependent].replicas:
                    met.append(dependent)
    return {start: _way(nexts, start) for start in jobs if start in gang and start in nexts}


def _way(nexts: dict[str, tuple[str, str]], start: str) -> list[str]:
    """From start to end, with its middle left out where it is long."""
    way = [start]
    following, end = nexts[start]
    while following != end and len(way) < MOST_LINKS_SHOWN:
        way.append(following)
        following = nexts[following][0]
    return [*way, end] if following == end else [*way, "...", end]


def _dependencies(job: TemplateView) -> list[str]:
    found = (nested(it, "name") for it in as_list(job.entry.get("dependsOn")))
    return [name for name in found if isinstance(name, str)]
