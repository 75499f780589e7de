"""CREATE: rules for Jobs that are gangs themselves, and for the Jobs of a JobSet (K8)."""

from collections.abc import Iterator

from jobset_gate import names
from jobset_gate.barrier.model import Config
from jobset_gate.injection.template_rules import empty
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path
from jobset_gate.objects.template import annotations_of, templates_of
from jobset_gate.objects.unstructured import Json, as_int, as_list, format_path, nested
from jobset_gate.sources.table import JOBSET

_GATED_BY_JOBSET = "Jobs of a JobSet are gated by the JobSet: put it there"
_NEEDS_INDEXES = "a gang of a Job needs indexes: set completionMode Indexed, or use the start-group label on its pods"


def of_job(obj: Json, config: Config) -> list[FieldError]:
    """A Job: whose it is, and whether its indexes can start together."""
    return [*_of_a_jobset(obj), *(list(_shape(obj)) or empty(obj, config))]


def of_jobset(obj: Json, config: Config) -> list[FieldError]:
    """A JobSet: gated as a whole, never by its Job templates; and not without pods."""
    found = []
    for job in templates_of(obj):
        value = annotations_of(job.job).get(names.CONFIG)
        if value is not None:
            path = format_path((*job.job_path, "metadata", "annotations", names.CONFIG))
            found.append(FieldError(path, value, _GATED_BY_JOBSET, CauseType.FORBIDDEN))
    return found + empty(obj, config)


def _of_a_jobset(obj: Json) -> Iterator[FieldError]:
    for owner in as_list(nested(obj, "metadata", "ownerReferences")):
        if nested(owner, "controller") is True and nested(owner, "kind") == JOBSET.kind:
            value = annotations_of(obj).get(names.CONFIG)
            yield FieldError(annotation_path(names.CONFIG), value, _GATED_BY_JOBSET, CauseType.FORBIDDEN)


def _shape(obj: Json) -> Iterator[FieldError]:
    spec = nested(obj, "spec")
    mode = nested(spec, "completionMode")
    if mode != "Indexed":
        yield FieldError("spec.completionMode", mode, _NEEDS_INDEXES)
    parallelism, completions = as_int(nested(spec, "parallelism"), 1), as_int(nested(spec, "completions"), 0)
    if parallelism < completions:
        later = f"{completions - parallelism} of the {completions} indexes would start later"
        message = f"{later}: parallelism must equal completions (an elastic Job may change both afterwards)"
        yield FieldError("spec.parallelism", parallelism, message)
    if nested(spec, "manualSelector") is True:
        yield FieldError("spec.manualSelector", True, "its pods would not carry the Job's UID: leave it out")
