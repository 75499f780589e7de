"""How large a gated JobSet may be: counted before any rule looks at it, so that no rule meets more.

Mutating webhooks come before the API server's own limits for annotations and lists, so nobody else has counted.
An UPDATE may go beyond a bound as far as the old object does: a gang made before there were bounds stays editable.
"""

from typing import Any, Final

import msgspec

from jobset_gate import names, ours
from jobset_gate.config import FIELD_PATH, NOTE_PATH, parse_note
from jobset_gate.template import Json, Replicated, dig, dotted, items, notes, replicated_jobs
from jobset_gate.violation import Violation, at

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


def exceeded(new: Json, old: Json | None = None) -> list[Violation]:
    """The bounds that a gated JobSet goes beyond; `old` is None on CREATE."""
    field, note = dig(new, "spec", names.CONFIG_FIELD), notes(new).get(names.CONFIG)
    if field is None and note is None:
        return []
    found = _config(FIELD_PATH, field, dig(old, "spec", names.CONFIG_FIELD))
    found += _config(NOTE_PATH, note, notes(old).get(names.CONFIG))
    jobs, before = items(dig(new, "spec", "replicatedJobs")), items(dig(old, "spec", "replicatedJobs"))
    if len(jobs) > max(MOST_REPLICATED_JOBS, len(before)) or len(before) > MOST_STORED:
        message = f"too many: a gated JobSet has at most {MOST_REPLICATED_JOBS} replicatedJobs"
        return [*found, Violation("spec.replicatedJobs", max(len(jobs), len(before)), message)]
    most = max([MOST_CONTAINERS, *map(_containers, replicated_jobs(old))])
    return found + [_too_many(job) for job in replicated_jobs(new) if _containers(job) > most]


def patch_too_large(new: Json) -> Violation:
    """The refusal of an object that PatchTooLarge was raised for."""
    message = f"too much: what jobset-gate puts into a JobSet is at most {LARGEST_PATCH} bytes in all"
    return Violation("spec.replicatedJobs", len(items(dig(new, "spec", "replicatedJobs"))), message)


def size(value: Any) -> int:
    """The bytes of a value as JSON. A list's entries are counted one by one: they may share what is large."""
    if isinstance(value, list):
        return sum(map(size, value)) + len(value) + 2
    return len(msgspec.json.encode(value))


def _config(path: str, value: Any, old: Any) -> list[Violation]:
    given = _length(value)
    too_long = given > max(LARGEST_CONFIG, _length(old))
    if not (too_long and isinstance(value, str)):  # a text beyond the bound is not even parsed
        count = len(_targets(value))
        if count > max(MOST_TARGETS, len(_targets(old))):
            message = f"too many: must be at most {MOST_TARGETS} targets"
            return [Violation(at(path, names.TARGETS_FIELD), count, message)]
    return [Violation(path, given, f"too long: must be at most {LARGEST_CONFIG} bytes")] if too_long else []


def _length(config: Any) -> int:
    """0 for what is not even JSON's: the rules say so."""
    if isinstance(config, str):
        return len(config.encode(errors="surrogatepass"))
    try:
        return 0 if config is None else size(config)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return 0


def _targets(config: Any) -> list[Any]:
    if not isinstance(config, str):
        return items(dig(config, names.TARGETS_FIELD))
    usable = parse_note(config).usable
    return [] if usable is None else list(usable.targets)


def _containers(job: Replicated) -> int:
    """The user's containers; what bears a name of ours counts from where we would not have put so many."""
    entries = [*job.listed("initContainers"), *job.listed("containers")]
    reserved = sum(map(ours.container_reserved, entries))
    return max(len(entries) - reserved, reserved - _OURS_BESIDE)


def _too_many(job: Replicated) -> Violation:
    message = f"too many: a gated pod template has at most {MOST_CONTAINERS} containers, init containers counted too"
    return Violation(dotted((*job.pod_path, "spec", "containers")), _containers(job), message)
