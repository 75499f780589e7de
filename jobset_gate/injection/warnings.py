"""Warnings in the admission response: what is allowed but probably not intended (A3)."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import targets
from jobset_gate.barrier.model import Config
from jobset_gate.injection.template_rules import can_fail
from jobset_gate.injection.validate import DEFAULT
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path, nearest
from jobset_gate.objects.template import TemplateView, annotations_of, is_pod
from jobset_gate.objects.unstructured import Json, as_list, format_path, nested
from jobset_gate.podgroups import admission
from jobset_gate.settings import Settings
from jobset_gate.sources.objects import config_of, source_of

USUAL_BACKOFF: Final = 6
"""What Kubernetes takes for a backoffLimit that is not given."""

MOST_ANNOTATIONS: Final = 1000
"""That are compared with ours, which takes time; a JobSet has a few dozen."""
MOST_UNKNOWN: Final = 5
"""Unknown annotations that are warned of: an API server drops warnings beyond 4,096 characters in all."""
LONGEST_KEY: Final = 100
"""Characters of a key in a warning: an API server cuts a warning at 256."""
_KNOWN: Final = {key: key.partition("/")[2] for key in names.OUR_JOBSET_ANNOTATIONS}
_KNOWN_OF_PODS: Final = {names.START_SIZE: names.START_SIZE.partition("/")[2]}
_WRITTEN_BY_US: Final = (names.POD_GROUP_SUSPENDED, names.TOKEN)


def warnings(new: Json, old: Json | None = None, *, settings: Settings = DEFAULT) -> list[str]:
    """One line each; on UPDATE only what was not so before."""
    known = set(_standing(old, settings)) if old is not None else set()
    found = [it for it in _standing(new, settings) if it not in known]
    return found if old is None else found + list(_too_late(new, old))


def unknown_annotations(obj: Json) -> list[FieldError]:
    """Annotations in our domain that a gang has not, and those of a similar domain that look like ours."""
    found = []
    known = _KNOWN | _KNOWN_OF_PODS if is_pod(obj) else _KNOWN
    for key, value in islice(annotations_of(obj).items(), MOST_ANNOTATIONS):
        domain, slash, name = key.partition("/")
        if not slash or key in known or key in _WRITTEN_BY_US:
            continue
        similar = domain.startswith(names.PROGRAM) or nearest(domain, (names.DOMAIN,)) is not None
        meant = nearest(name, known.values()) if similar else None
        if meant is not None or domain == names.DOMAIN:
            hint = f": did you mean {names.DOMAIN}/{meant}?" if meant is not None else ""
            message = f"unknown annotation, without effect on a {source_of(obj).kind}{hint}"
            found.append(FieldError(annotation_path(key), value, message, CauseType.NOT_SUPPORTED))
    return found


def _unknown(obj: Json) -> Iterator[str]:
    found = unknown_annotations(obj)
    for error in found[:MOST_UNKNOWN]:
        path = error.path if len(error.path) <= LONGEST_KEY else f"{error.path[:LONGEST_KEY]}..."
        yield f"{path}: {error.message}"
    if len(found) > MOST_UNKNOWN:
        yield f"metadata.annotations: {len(found) - MOST_UNKNOWN} more unknown annotations of {names.DOMAIN}"


def _standing(obj: Json, settings: Settings) -> Iterator[str]:
    yield from _unknown(obj)
    config = config_of(obj).config
    if config is None:
        return
    fails = can_fail(obj, config, settings.barrier)
    for job in targets(obj, config):
        yield from _deadlines(job, config)
        if fails:
            yield from _endless(job)
    yield from admission.barrier_warnings(obj, config, settings)


def _deadlines(job: TemplateView, config: Config) -> Iterator[str]:
    """The clock of a deadline runs while the gate holds the pods."""
    paths = ((*job.job_path, "spec"), (*job.pod_path, "spec"))
    for path, spec in dict(zip(paths, (job.job_spec, job.pod_spec), strict=True)).items():
        deadline = nested(spec, "activeDeadlineSeconds")
        if config.timeout is not None and isinstance(deadline, int) and deadline <= config.timeout:
            where = format_path((*path, "activeDeadlineSeconds"))
            yield f"{where}: {deadline}: ends the pods before the gate's timeout of {config.timeout}s does"


def _endless(job: TemplateView) -> Iterator[str]:
    """A timeout ends a Job by failing its pods with exit code 124 until its backoffLimit is used up (A7)."""
    limit = job.job_spec.get("backoffLimit")
    if isinstance(limit, int) and limit > USUAL_BACKOFF:
        where = format_path((*job.job_path, "spec", "backoffLimit"))
        yield f"{where}: {limit}: after a timeout the barriers are tried that often before the Job fails"
    for index, rule in enumerate(as_list(nested(job.job_spec, "podFailurePolicy", "rules"))):
        if nested(rule, "action") == "Ignore" and matches_timeout(nested(rule, "onExitCodes")):
            where = format_path((*job.job_path, "spec", "podFailurePolicy", "rules", index))
            yield f"{where}: ignores exit code {names.EXIT_TIMED_OUT}: a gang that timed out starts again for ever"


def matches_timeout(requirement: Any) -> bool:
    """Whether this requirement of a rule of a podFailurePolicy is about the exit code of a timeout."""
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
