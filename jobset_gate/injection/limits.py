"""How large a gated JobSet may be: counted before any rule looks at it, so that no rule meets more.

Mutating webhooks come before the API server's own limits for annotations and lists, so nobody else has counted.
An UPDATE may go beyond a bound as far as the old object does: a gang made before there were bounds stays editable.
"""

from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier.config import ANNOTATION_PATH, FIELD_PATH, parse_annotation
from jobset_gate.injection import ownership
from jobset_gate.objects.field_error import FieldError, child_path
from jobset_gate.objects.unstructured import (
    Json,
    ReplicatedJobView,
    annotations_of,
    as_list,
    format_path,
    nested,
    replicated_jobs,
)

MOST_REPLICATED_JOBS: Final = 500
MOST_STORED: Final = 5000
"""More replicatedJobs than an object of etcd's 1.5 MiB holds, each with its template: no UPDATE brings more."""
MOST_TARGETS: Final = 500
MOST_CONTAINERS: Final = 500
"""Of the user's in one pod template, init containers and main ones together."""
LARGEST_CONFIG: Final = 32 * 1024
"""Bytes, as JSON, in field or annotation: the field is copied to the annotation."""
LARGEST_PATCH: Final = 3 * 1024 * 1024
"""Bytes of a JSON patch: what an API server takes as a whole object."""

_OURS_BESIDE: Final = 2
"""The barrier and the container that brings the prefetching program; for each main image there is one more at most."""


class PatchTooLarge(Exception):
    """More would be put into an object than LARGEST_PATCH."""


def exceeded(new: Json, old: Json | None = None) -> list[FieldError]:
    """The bounds that a gated JobSet goes beyond; `old` is None on CREATE."""
    field, note = nested(new, "spec", names.CONFIG_FIELD), annotations_of(new).get(names.CONFIG)
    if field is None and note is None:
        return []
    found = _config(FIELD_PATH, field, nested(old, "spec", names.CONFIG_FIELD))
    found += _config(ANNOTATION_PATH, note, annotations_of(old).get(names.CONFIG))
    jobs, before = as_list(nested(new, "spec", "replicatedJobs")), as_list(nested(old, "spec", "replicatedJobs"))
    if len(jobs) > max(MOST_REPLICATED_JOBS, len(before)) or len(before) > MOST_STORED:
        message = f"too many: a gated JobSet has at most {MOST_REPLICATED_JOBS} replicatedJobs"
        return [*found, FieldError("spec.replicatedJobs", max(len(jobs), len(before)), message)]
    most = max([MOST_CONTAINERS, *map(_containers, replicated_jobs(old))])
    return found + [_too_many(job) for job in replicated_jobs(new) if _containers(job) > most]


def patch_too_large(new: Json) -> FieldError:
    """The refusal of an object that PatchTooLarge was raised for."""
    message = f"too much: what jobset-gate puts into a JobSet is at most {LARGEST_PATCH} bytes in all"
    return FieldError("spec.replicatedJobs", len(as_list(nested(new, "spec", "replicatedJobs"))), message)


def json_size(value: Any) -> int:
    """The bytes of a value as JSON. A list's entries are counted one by one: they may share what is large."""
    if isinstance(value, list):
        return sum(map(json_size, value)) + len(value) + 2
    return len(msgspec.json.encode(value))


def _config(path: str, value: Any, old: Any) -> list[FieldError]:
    given = _length(value)
    too_long = given > max(LARGEST_CONFIG, _length(old))
    if not (too_long and isinstance(value, str)):  # a text beyond the bound is not even parsed
        count = len(_targets(value))
        if count > max(MOST_TARGETS, len(_targets(old))):
            message = f"too many: must be at most {MOST_TARGETS} targets"
            return [FieldError(child_path(path, names.TARGETS_FIELD), count, message)]
    return [FieldError(path, given, f"too long: must be at most {LARGEST_CONFIG} bytes")] if too_long else []


def _length(config: Any) -> int:
    """0 for what is not even JSON's: the rules say so."""
    if isinstance(config, str):
        return len(config.encode(errors="surrogatepass"))
    try:
        return 0 if config is None else json_size(config)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return 0


def _targets(config: Any) -> list[Any]:
    if not isinstance(config, str):
        return as_list(nested(config, names.TARGETS_FIELD))
    usable = parse_annotation(config).usable
    return [] if usable is None else list(usable.targets)


def _containers(job: ReplicatedJobView) -> int:
    """The user's containers; what bears a name of ours counts from where we would not have put so many."""
    entries = [*job.spec_list("initContainers"), *job.spec_list("containers")]
    reserved = sum(map(ownership.is_reserved_container, entries))
    return max(len(entries) - reserved, reserved - _OURS_BESIDE)


def _too_many(job: ReplicatedJobView) -> FieldError:
    message = f"too many: a gated pod template has at most {MOST_CONTAINERS} containers, init containers counted too"
    return FieldError(format_path((*job.pod_path, "spec", "containers")), _containers(job), message)
