"""Unknown fields and wrong types of a JobSet, by the table of its fields that `make reference` writes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.objects.field_error import CauseType, FieldError, did_you_mean, format_value
from jobset_gate.objects.unstructured import Path, format_path

SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "number": (int, float),
    "quantity": (str, int, float),
    "port": (str, int),
}
_NAMED: Final = {"quantity": "an amount, such as 500m, 5 or 2Gi", "port": "a number or a string"}
_JOB: Final = "spec.replicatedJobs[].template"
_PLACES: Final = {
    "JobSetSpec": "spec",
    "ReplicatedJob": "spec.replicatedJobs[]",
    "JobSpec": f"{_JOB}.spec",
    "PodSpec": f"{_JOB}.spec.template.spec",
    "Container": f"{_JOB}.spec.template.spec.containers[]",
}
"""Where the types stand whose fields are easily put a level too high or too deep."""


class Misfit(msgspec.Struct, frozen=True):
    error: FieldError
    certain: bool = True
    """False for a field that a newer Kubernetes or JobSet may have."""


def misfits(jobset: Any) -> Iterator[Misfit]:
    """All of a JobSet. `spec.groupSchedulingConfig`, wherever it stands, is left to its own rules."""
    return _value(jobset, "JobSet", ())


def job_misfits(spec: Any, path: Path) -> Iterator[Misfit]:
    """All of a Job's spec that stands at `path`; hints name that place, too."""
    for it in _value(spec, "JobSpec", path):
        message = it.error.message.replace(f"{_JOB}.spec", format_path(path))
        yield Misfit(replace(it.error, message=message), it.certain)


def _value(value: Any, kind: str, path: Path) -> Iterator[Misfit]:
    if value is None or kind == "any":
        return
    if kind.startswith("[]"):
        if not isinstance(value, list):
            yield _wrong(path, value, "a list: put - before each entry")
            return
        for index, entry in enumerate(value):
            yield from _value(entry, kind[2:], (*path, index))
    elif kind in SCALARS or "|" in kind:
        yield from _scalar(value, kind, path)
    elif not isinstance(value, dict):
        yield _wrong(path, value, f"an object{': take the - away' if isinstance(value, list) else ''}")
    elif kind.startswith("{}"):
        for key, member in value.items():
            yield from _value(member, kind[2:], (*path, key))
    else:
        yield from _members(value, kind, path)


def _members(value: dict[str, Any], kind: str, path: Path) -> Iterator[Misfit]:
    fields, required = _fields(kind)
    for key, member in value.items():
        if (its := fields.get(key)) is None:
            if key != names.CONFIG_FIELD:
                yield _unknown(key, member, kind, (*path, key))
        elif its != "string" or not isinstance(member, str):
            yield from _value(member, its, (*path, key))
    for key in required:
        if value.get(key) is None:
            yield Misfit(FieldError(format_path((*path, key)), None, "must be given", CauseType.REQUIRED))


def _unknown(key: str, value: Any, kind: str, path: Path) -> Misfit:
    hint = did_you_mean(key, _fields(kind)[0])
    if not hint and key in (names.TIMEOUT_FIELD, names.TARGETS_FIELD):
        hint = f": it belongs into spec.{names.CONFIG_FIELD}"
    if not hint and (place := next((it for other, it in _PLACES.items() if key in _fields(other)[0]), "")):
        hint = f": {place} has one"
    return Misfit(
        FieldError(format_path(path), value, f"unknown field{hint}", CauseType.NOT_SUPPORTED), certain=bool(hint)
    )


def _scalar(value: Any, kind: str, path: Path) -> Iterator[Misfit]:
    if "|" in kind:
        choices = kind.split("|")
        if value not in choices:
            hint = did_you_mean(value, choices) if isinstance(value, str) else ""
            message = f"must be {' or '.join(map(format_value, choices))}{hint}"
            yield Misfit(FieldError(format_path(path), value, message, CauseType.NOT_SUPPORTED))
        return
    types = SCALARS[kind]
    if isinstance(value, types) and (not isinstance(value, bool) or bool in types):
        return
    wanted = _NAMED.get(kind) or f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    if kind == "string" and isinstance(value, bool | int | float):
        wanted += ": put it in quotes"
    elif isinstance(value, str) and value.lstrip("-").isdecimal():
        wanted += ": take the quotes away"
    yield _wrong(path, value, wanted)


def _wrong(path: Path, value: Any, wanted: str) -> Misfit:
    return Misfit(FieldError(format_path(path), value, f"must be {wanted}", CauseType.TYPE_INVALID))


@cache
def _fields(kind: str) -> tuple[Mapping[str, str], list[str]]:
    """The types of the fields of a type, and which must be given."""
    pairs = [field.split(":") for field in _table()[kind].split()]
    return {name.rstrip("!"): its for name, its in pairs}, [name[:-1] for name, _ in pairs if name.endswith("!")]


@cache
def _table() -> Mapping[str, str]:
    lines = (files(__package__) / "jobset_fields.txt").read_text().splitlines()
    return {name: fields for name, _, fields in (line.partition(" ") for line in lines)}
