"""Warnings in the admission response: what is allowed but probably not intended (A3)."""

from collections.abc import Iterator
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import config_of, targets
from jobset_gate.barrier.model import Config
from jobset_gate.injection.container import can_time_out
from jobset_gate.injection.validate import DEFAULT
from jobset_gate.objects.jobset import ReplicatedJobView, annotations_of
from jobset_gate.objects.unstructured import Json, as_list, format_path, nested
from jobset_gate.podgroups import admission
from jobset_gate.settings import Settings

USUAL_BACKOFF: Final = 6
"""What Kubernetes takes for a backoffLimit that is not given."""


def warnings(new: Json, old: Json | None = None, *, settings: Settings = DEFAULT) -> list[str]:
    """One line each; on UPDATE only what was not so before."""
    known = set(_standing(old, settings)) if old is not None else set()
    found = [it for it in _standing(new, settings) if it not in known]
    return found if old is None else found + list(_too_late(new, old))


def _standing(jobset: Json, settings: Settings) -> Iterator[str]:
    config = config_of(jobset).config
    if config is None:
        return
    fails = annotations_of(jobset).get(names.ON_TIMEOUT, names.ON_TIMEOUT_FAIL) == names.ON_TIMEOUT_FAIL
    for job in targets(jobset, config):
        yield from _deadlines(job, config)
        if fails and can_time_out(config, settings.barrier):
            yield from _endless(job)
    yield from admission.barrier_warnings(jobset, config, settings)


def _deadlines(job: ReplicatedJobView, config: Config) -> Iterator[str]:
    """The clock of a deadline runs while the gate holds the pods."""
    paths = ((*job.job_path, "spec"), (*job.pod_path, "spec"))
    for path, spec in zip(paths, (job.job_spec, job.pod_spec), strict=True):
        deadline = nested(spec, "activeDeadlineSeconds")
        if config.timeout is not None and isinstance(deadline, int) and deadline <= config.timeout:
            where = format_path((*path, "activeDeadlineSeconds"))
            yield f"{where}: {deadline}: ends the pods before the gate's timeout of {config.timeout}s does"


def _endless(job: ReplicatedJobView) -> Iterator[str]:
    """A timeout ends a Job by failing its pods with exit code 124 until its backoffLimit is used up (A7)."""
    limit = job.job_spec.get("backoffLimit")
    if isinstance(limit, int) and limit > USUAL_BACKOFF:
        where = format_path((*job.job_path, "spec", "backoffLimit"))
        yield f"{where}: {limit}: after a timeout the barriers are tried that often before the Job fails"
    for index, rule in enumerate(as_list(nested(job.job_spec, "podFailurePolicy", "rules"))):
        if nested(rule, "action") == "Ignore" and _matches_timeout(nested(rule, "onExitCodes")):
            where = format_path((*job.job_path, "spec", "podFailurePolicy", "rules", index))
            yield f"{where}: ignores exit code {names.EXIT_TIMED_OUT}: a gang that timed out starts again for ever"


def _matches_timeout(requirement: Any) -> bool:
    if nested(requirement, "containerName") not in (None, "", names.BARRIER_CONTAINER):
        return False
    listed = names.EXIT_TIMED_OUT in as_list(nested(requirement, "values"))
    operator = nested(requirement, "operator")
    return (operator == "In" and listed) or (operator == "NotIn" and not listed)


def _too_late(new: Json, old: Json) -> Iterator[str]:
    value = annotations_of(new).get(names.ON_TIMEOUT)
    if value == annotations_of(old).get(names.ON_TIMEOUT) or not config_of(old).present:
        return
    for condition in as_list(nested(old, "status", "conditions")):
        decided = nested(condition, "status") == "True" or nested(condition, "reason") == names.REASON_TIMED_OUT
        if nested(condition, "type") == names.CONDITION and decided:
            yield f"{names.ON_TIMEOUT}: the verdict is already there; this counts from the next restart or resume on"
