"""Rules about the gate's config and our annotations on a JobSet (A2)."""

import re
from collections.abc import Callable
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import (
    ANNOTATION_PATH,
    FIELD_PATH,
    ConfigSources,
    ParsedConfig,
    canonical,
    is_equivalent,
)
from jobset_gate.barrier.model import Config
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path, child_path, format_value
from jobset_gate.objects.unstructured import Json, annotations_of, config_of, replicated_jobs

MOST_NAMES_SHOWN: Final = 10
_IMAGE: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,4096}")
_SWITCH: Final = ("true", "false")
_OUTCOMES: Final = (names.ON_TIMEOUT_FAIL, names.ON_TIMEOUT_RELEASE)


def annotations(jobset: Json) -> list[FieldError]:
    """Our annotations beside the config: each with the values it may have."""
    found = []
    for key, wrong in _VALUES.items():
        value = annotations_of(jobset).get(key)
        if value is None:
            continue
        message = wrong(value) if isinstance(value, str) else "must be a string: put it in quotes"
        if message:
            found.append(FieldError(annotation_path(key), value, message, CauseType.NOT_SUPPORTED))
    return found


def targets(jobset: Json, config: Config, path: str) -> list[FieldError]:
    """Targets that no replicatedJob bears the name of, and targets named twice."""
    known = {job.name for job in replicated_jobs(jobset)}
    there_are = _listed(sorted(known))
    first: dict[str, int] = {}
    found = []
    for index, name in enumerate(config.targets):
        here = child_path(child_path(path, names.TARGETS_FIELD), index)
        if name in first:
            message = f"is named twice, first at [{first[name]}]"
            found.append(FieldError(here, name, message, CauseType.DUPLICATE))
        elif name not in known:
            message = f"no replicatedJob has this name; there are: {there_are}"
            found.append(FieldError(here, name, message, CauseType.NOT_FOUND))
        first.setdefault(name, index)
    return found


def changes(new: Json, old: Json) -> list[FieldError]:
    """What an UPDATE may not change: config, prefetch-images, barrier-image. Absent is not changed: it comes back."""
    was, now = config_of(old), config_of(new)
    if not was.present:
        return _late(now)
    found = [*_changed(FIELD_PATH, now.field, was.field, now.by_field, was)]
    found += _changed(ANNOTATION_PATH, now.annotation, was.annotation, now.by_annotation, was)
    for key in (names.PREFETCH_IMAGES, names.BARRIER_IMAGE):
        value, before = annotations_of(new).get(key), annotations_of(old).get(key)
        if value is not None and value != before and not (before is None and value == "false"):
            told = "was not set then" if before is None else f"was {format_value(before)}"
            message = f"is fixed when the JobSet is created; {told}"
            found.append(FieldError(annotation_path(key), value, message, CauseType.FORBIDDEN))
    return found


def _late(now: ConfigSources) -> list[FieldError]:
    message = "may only be set when the JobSet is created"
    both = ((FIELD_PATH, now.field), (ANNOTATION_PATH, now.annotation))
    return [FieldError(path, value, message, CauseType.FORBIDDEN) for path, value in both if value is not None]


def _changed(path: str, value: Any, before: Any, parsed: ParsedConfig, was: ConfigSources) -> list[FieldError]:
    if value is None or value == before or parsed.violations:
        return []
    if was.config is not None and parsed.config is not None and is_equivalent(parsed.config, was.config):
        return []
    told = (
        canonical(was.config)
        if was.config is not None
        else format_value(was.annotation if was.field is None else was.field)
    )
    return [FieldError(path, value, f"is immutable; was {told}")]


def _one_of(*allowed: str) -> Callable[[str], str | None]:
    choices = " or ".join(f'"{it}"' for it in allowed)
    return lambda value: None if value in allowed else f"must be {choices}"


def _image(value: str) -> str | None:
    return None if _IMAGE.fullmatch(value) else "must be an image reference: not empty, without spaces"


_VALUES: Final[dict[str, Callable[[str], str | None]]] = {
    names.BYPASS: _one_of(*_SWITCH),
    names.ON_TIMEOUT: _one_of(*_OUTCOMES),
    names.PREFETCH_IMAGES: _one_of(*_SWITCH),
    names.BARRIER_IMAGE: _image,
}


def _listed(known: list[str]) -> str:
    shown_names = ", ".join(known[:MOST_NAMES_SHOWN]) or "none"
    more = len(known) - MOST_NAMES_SHOWN
    return shown_names if more <= 0 else f"{shown_names} and {more} more"
