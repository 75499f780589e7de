"""Rules about the gate's config and our annotations on a JobSet (A2)."""

import re
from collections.abc import Callable
from typing import Any, Final

from jobset_gate import names
from jobset_gate.config import FIELD_PATH, NOTE_PATH, Given, Parsed, canonical, same
from jobset_gate.model import Config
from jobset_gate.template import Json, config_of, notes, replicated_jobs
from jobset_gate.violation import Fault, Violation, at, note, shown

MOST_NAMES_SHOWN: Final = 10
_IMAGE: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,4096}")
_SWITCH: Final = ("true", "false")
_OUTCOMES: Final = (names.ON_TIMEOUT_FAIL, names.ON_TIMEOUT_RELEASE)


def annotations(jobset: Json) -> list[Violation]:
    """Our annotations beside the config: each with the values it may have."""
    found = []
    for key, wrong in _VALUES.items():
        value = notes(jobset).get(key)
        if value is None:
            continue
        message = wrong(value) if isinstance(value, str) else "must be a string: put it in quotes"
        if message:
            found.append(Violation(note(key), value, message, Fault.NOT_SUPPORTED))
    return found


def targets(jobset: Json, config: Config, path: str) -> list[Violation]:
    """Targets that no replicatedJob bears the name of, and targets named twice."""
    known = {job.name for job in replicated_jobs(jobset)}
    there_are = _listed(sorted(known))
    first: dict[str, int] = {}
    found = []
    for index, name in enumerate(config.targets):
        here = at(at(path, names.TARGETS_FIELD), index)
        if name in first:
            message = f"is named twice, first at [{first[name]}]"
            found.append(Violation(here, name, message, Fault.DUPLICATE))
        elif name not in known:
            message = f"no replicatedJob has this name; there are: {there_are}"
            found.append(Violation(here, name, message, Fault.NOT_FOUND))
        first.setdefault(name, index)
    return found


def changes(new: Json, old: Json) -> list[Violation]:
    """What an UPDATE may not change: config, prefetch-images, barrier-image. Absent is not changed: it comes back."""
    was, now = config_of(old), config_of(new)
    if not was.present:
        return _late(now)
    found = [*_changed(FIELD_PATH, now.field, was.field, now.by_field, was)]
    found += _changed(NOTE_PATH, now.note, was.note, now.by_note, was)
    for key in (names.PREFETCH_IMAGES, names.BARRIER_IMAGE):
        value, before = notes(new).get(key), notes(old).get(key)
        if value is not None and value != before and not (before is None and value == "false"):
            told = "was not set then" if before is None else f"was {shown(before)}"
            message = f"is fixed when the JobSet is created; {told}"
            found.append(Violation(note(key), value, message, Fault.FORBIDDEN))
    return found


def _late(now: Given) -> list[Violation]:
    message = "may only be set when the JobSet is created"
    both = ((FIELD_PATH, now.field), (NOTE_PATH, now.note))
    return [Violation(path, value, message, Fault.FORBIDDEN) for path, value in both if value is not None]


def _changed(path: str, value: Any, before: Any, parsed: Parsed, was: Given) -> list[Violation]:
    if value is None or value == before or parsed.violations:
        return []
    if was.config is not None and parsed.config is not None and same(parsed.config, was.config):
        return []
    told = canonical(was.config) if was.config is not None else shown(was.note if was.field is None else was.field)
    return [Violation(path, value, f"is immutable; was {told}")]


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
