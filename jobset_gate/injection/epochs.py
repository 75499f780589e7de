"""UPDATE: which epoch the templates have afterwards, and which resumption has to wait (A5, K4)."""

from collections.abc import Iterator
from typing import NamedTuple

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.injection.ownership import gated_jobs
from jobset_gate.objects.field_error import CauseType, FieldError
from jobset_gate.objects.template import is_suspended
from jobset_gate.objects.unstructured import Json, as_int, as_list, nested
from jobset_gate.sources.job import ENDS
from jobset_gate.sources.objects import source_of


class Epoch(NamedTuple):
    """The epoch after an update."""

    number: int
    writable: bool
    """Whether the API server allows other template annotations than the old object's."""


def after(new: Json, old: Json) -> Epoch:
    """The highest epoch over the old targets, and one more when this write begins a new one. It never falls."""
    found = (job.pod_annotations.get(names.EPOCH) for job in gated_jobs(old).values())
    highest = max((verdict_codec.parse_epoch(it if isinstance(it, str) else None) for it in found), default=0)
    if source_of(old).counts_resumptions:
        begins = _resumes(new, old)
        return Epoch(highest + begins, begins)
    return Epoch(highest + (is_suspended(new) and not is_suspended(old)), is_suspended(old) or is_suspended(new))


def too_early(new: Json, old: Json) -> FieldError | None:
    """A resumption of a gated Job that is still being suspended: its template cannot change yet (K4)."""
    if not (source_of(old).counts_resumptions and gated_jobs(old) and _resumes(new, old)):
        return None
    left = ", ".join(_left(old))
    if not left:
        return None
    message = f"the {source_of(old).kind} is still being suspended ({left}): resume it again in a moment"
    return FieldError("spec.suspend", False, message, CauseType.FORBIDDEN)


def _resumes(new: Json, old: Json) -> bool:
    """Whether this write makes the Job controller of this cluster create pods again."""
    finished = any(
        nested(it, "type") in ENDS and nested(it, "status") == "True"
        for it in as_list(nested(old, "status", "conditions"))
    )
    elsewhere = source_of(old).is_managed_elsewhere(nested(old, "spec", "managedBy"))
    return is_suspended(old) and not is_suspended(new) and not elsewhere and not finished


def _left(old: Json) -> Iterator[str]:
    active = as_int(nested(old, "status", "active"), 0)
    if active > 0:
        yield f"{active} pod{'' if active == 1 else 's'} active"
    if nested(old, "status", "startTime") is not None:
        yield "startTime set"
