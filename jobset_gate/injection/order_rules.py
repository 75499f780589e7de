"""Rules about gangs that could never start or never end, by what the JobSet says about order and restarts (A3)."""

from collections.abc import Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import Config
from jobset_gate.injection.container import can_time_out
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.unstructured import (
    Json,
    ReplicatedJobView,
    annotations_of,
    as_list,
    format_path,
    nested,
    replicated_jobs_by_name,
    targets,
)
from jobset_gate.settings import Barrier

IN_ORDER: Final = "InOrder"
IN_PLACE: Final = "InPlaceRestart"
MOST_LINKS_SHOWN: Final = 10


def never_starts(jobset: Json, config: Config) -> list[FieldError]:
    """Targets of which one is made only after another is ready or complete: held pods become neither."""
    gang = {job.name for job in targets(jobset, config) if job.expected_pods}
    return [*_in_order(jobset, gang), *_chains(jobset, gang)]


def never_ends(jobset: Json, config: Config, settings: Barrier) -> list[FieldError]:
    """InPlaceRestart with on-timeout Fail: JobSet demands an unlimited backoffLimit there, so 124 would never end.

    Only where a barrier can exit with 124 at all: with a timeout, or with the operator's maxWaitSeconds.
    """
    strategy = nested(jobset, "spec", "failurePolicy", "restartStrategy")
    fails = annotations_of(jobset).get(names.ON_TIMEOUT, names.ON_TIMEOUT_FAIL) == names.ON_TIMEOUT_FAIL
    if strategy != IN_PLACE or not fails or not can_time_out(config, settings):
        return []
    message = (
        "with it a gang that timed out would restart for ever: "
        f"set the annotation {names.ON_TIMEOUT} to {names.ON_TIMEOUT_RELEASE}, or choose another strategy"
    )
    return [FieldError("spec.failurePolicy.restartStrategy", strategy, message)]


def _in_order(jobset: Json, gang: set[str]) -> list[FieldError]:
    order = nested(jobset, "spec", "startupPolicy", "startupPolicyOrder")
    if order != IN_ORDER or len(gang) < 2:
        return []
    held = ", ".join(name for name in replicated_jobs_by_name(jobset) if name in gang)
    message = (
        "a gang of several replicatedJobs can never start in order, since held pods never become ready: "
        f"{held}; name a single target or use AnyOrder"
    )
    return [FieldError("spec.startupPolicy.startupPolicyOrder", order, message)]


def _chains(jobset: Json, gang: set[str]) -> Iterator[FieldError]:
    jobs = replicated_jobs_by_name(jobset)
    for start, chain in _ways(jobs, gang).items() if len(gang) > 1 else ():
        job = jobs[start]
        message = (
            f"the gang can never start: {' -> '.join(chain)}; {start} is made only after {chain[-1]}, "
            "whose pods wait for it"
        )
        yield FieldError(format_path((*job.path, "dependsOn")), _dependencies(job), message)


def _ways(jobs: dict[str, ReplicatedJobView], gang: set[str]) -> dict[str, list[str]]:
    """Of each target that depends on another one the shortest way to one, by dependsOn.

    A replicatedJob without replicas is ready and complete at once, so no way leads through it. One search from all
    targets backwards, in which no replicatedJob is met more than twice (as the way to a target may lead back to where
    it starts, the second nearest is kept too): a search from each target would cost their product.
    """
    dependents: dict[str, list[str]] = {}
    for name, job in jobs.items():
        for needed in _dependencies(job):
            dependents.setdefault(needed, []).append(name)
    nexts: dict[str, dict[str, str]] = {}
    first: dict[str, tuple[str, str]] = {}
    met = [(name, name) for name, job in jobs.items() if name in gang and job.replicas]
    for name, end in met:
        for dependent in dependents.get(name, ()):
            if dependent in gang:
                if dependent != end:
                    first.setdefault(dependent, (name, end))
                continue
            known = nexts.setdefault(dependent, {})
            if len(known) < 2 and end not in known and jobs[dependent].replicas:
                known[end] = name
                met.append((dependent, end))
    return {start: _way(nexts, start, *first[start]) for start in jobs if start in first}


def _way(nexts: dict[str, dict[str, str]], start: str, following: str, end: str) -> list[str]:
    """From start to end, with its middle left out where it is long."""
    way = [start]
    while following != end and len(way) < MOST_LINKS_SHOWN:
        way.append(following)
        following = nexts[following][end]
    return [*way, end] if following == end else [*way, "...", end]


def _dependencies(job: ReplicatedJobView) -> list[str]:
    found = (nested(it, "name") for it in as_list(job.body.get("dependsOn")))
    return [name for name in found if isinstance(name, str)]
