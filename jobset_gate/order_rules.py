"""Rules about gangs that could never start or never end, by what the JobSet says about order and restarts (A3)."""

from collections.abc import Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.barrier import can_time_out
from jobset_gate.model import Config
from jobset_gate.settings import Barrier
from jobset_gate.template import Json, Replicated, by_name, dig, dotted, items, notes, targets
from jobset_gate.violation import Violation

IN_ORDER: Final = "InOrder"
IN_PLACE: Final = "InPlaceRestart"


def never_starts(jobset: Json, config: Config) -> list[Violation]:
    """Targets of which one is made only after another is ready or complete: held pods become neither."""
    gang = {job.name for job in targets(jobset, config) if job.expected}
    return [*_in_order(jobset, gang), *_chains(jobset, gang)]


def never_ends(jobset: Json, config: Config, settings: Barrier) -> list[Violation]:
    """InPlaceRestart with on-timeout Fail: JobSet demands an unlimited backoffLimit there, so 124 would never end.

    Only where a barrier can exit with 124 at all: with a timeout, or with the operator's maxWaitSeconds.
    """
    strategy = dig(jobset, "spec", "failurePolicy", "restartStrategy")
    fails = notes(jobset).get(names.ON_TIMEOUT, names.ON_TIMEOUT_FAIL) == names.ON_TIMEOUT_FAIL
    if strategy != IN_PLACE or not fails or not can_time_out(config, settings):
        return []
    message = (
        "with it a gang that timed out would restart for ever: "
        f"set the annotation {names.ON_TIMEOUT} to {names.ON_TIMEOUT_RELEASE}, or choose another strategy"
    )
    return [Violation("spec.failurePolicy.restartStrategy", strategy, message)]


def _in_order(jobset: Json, gang: set[str]) -> list[Violation]:
    order = dig(jobset, "spec", "startupPolicy", "startupPolicyOrder")
    if order != IN_ORDER or len(gang) < 2:
        return []
    held = ", ".join(name for name in by_name(jobset) if name in gang)
    message = (
        "a gang of several replicatedJobs can never start in order, since held pods never become ready: "
        f"{held}; name a single target or use AnyOrder"
    )
    return [Violation("spec.startupPolicy.startupPolicyOrder", order, message)]


def _chains(jobset: Json, gang: set[str]) -> Iterator[Violation]:
    jobs = by_name(jobset)
    for name in gang & jobs.keys() if len(gang) > 1 else ():
        chain = _chain(jobs, name, gang)
        if chain:
            job = jobs[name]
            message = (
                f"the gang can never start: {' -> '.join(chain)}; {chain[0]} is made only after {chain[-1]}, "
                "whose pods wait for it"
            )
            yield Violation(dotted((*job.path, "dependsOn")), _dependencies(job), message)


def _chain(jobs: dict[str, Replicated], start: str, gang: set[str]) -> list[str]:
    """The shortest way from one target by dependsOn to another; [] if there is none.

    A replicatedJob without replicas is ready and complete at once, so no way leads through it.
    """
    came_from: dict[str, str] = {}
    reached = [start]
    for name in reached:
        for following in _dependencies(jobs[name]):
            if following in jobs and following != start and following not in came_from and jobs[following].replicas:
                came_from[following] = name
                reached.append(following)
                if following in gang:
                    return _way(came_from, start, following)
    return []


def _way(came_from: dict[str, str], start: str, end: str) -> list[str]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


def _dependencies(job: Replicated) -> list[str]:
    found = (dig(it, "name") for it in items(job.body.get("dependsOn")))
    return [name for name in found if isinstance(name, str)]
