"""The user's groupSchedulingConfig: parses field or annotation, and writes canonical JSON (A2)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from jobset_gate import names
from jobset_gate.barrier.model import Config
from jobset_gate.errors import Malformed
from jobset_gate.objects import quantity
from jobset_gate.objects.bad_parts import REFUSALS, bad_parts
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path, child_path, format_value
from jobset_gate.objects.template import TemplateView, templates_of

MAX_TIMEOUT: Final = 2**31 - 1
FIELD_PATH: Final = f"spec.{names.CONFIG_FIELD}"
ANNOTATION_PATH: Final = annotation_path(names.CONFIG)

_TIMEOUT: Final = f"must be an integer from 1 to {MAX_TIMEOUT}"
_TARGETS: Final = "must be a list of names of replicatedJobs"
_TARGET: Final = "must be the name of a replicatedJob"

_Target = Annotated[str, Meta(min_length=1, pattern=r"^[^\ud800-\udfff]*\Z")]
"""Without lone surrogates, which JSON can hold, and which no encoder writes."""


class TimeoutConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Schema for a workload of one template: these keys only, and no type coercion."""

    timeoutAfterSeconds: Annotated[int, Meta(ge=1, le=MAX_TIMEOUT)] | None = None  # noqa: N815 - the API's name
    """Seconds from the first started pod to the timeout; absent or null: none."""


class GroupSchedulingConfig(TimeoutConfig, frozen=True, forbid_unknown_fields=True):
    """Schema for a workload with targets."""

    targetReplicatedJobs: list[_Target] | None = None  # noqa: N815 - the API's name
    """Names of the replicatedJobs of the gang; absent, null or empty: all."""


@dataclass(frozen=True, slots=True)
class ConfigSources:
    """Field and annotation of a JobSet, and what they parse to."""

    field: Any
    """The raw spec.groupSchedulingConfig; None if absent or null."""
    annotation: Any
    """The raw annotation; None if absent."""
    by_field: "ParsedConfig"
    by_annotation: "ParsedConfig"

    @property
    def present(self) -> bool:
        """True if the JobSet has a config, valid or not."""
        return self.field is not None or self.annotation is not None

    @property
    def path(self) -> str:
        """Path of the effective config."""
        return ANNOTATION_PATH if self.field is None else FIELD_PATH

    @property
    def parsed(self) -> "ParsedConfig":
        """The effective config: the field's, else the annotation's."""
        return self.by_annotation if self.field is None else self.by_field

    @property
    def config(self) -> Config | None:
        """None without a valid config."""
        return self.parsed.config

    @property
    def violations(self) -> tuple[FieldError, ...]:
        return self.by_field.violations + self.by_annotation.violations

    @property
    def conflict(self) -> FieldError | None:
        """Field and annotation are both set and differ (A2)."""
        field, annotation = self.by_field.config, self.by_annotation.config
        if field is None or annotation is None or is_equivalent(field, annotation):
            return None
        hint = f"differs from {FIELD_PATH} ({canonical(field)}): give one of them, or the same in both"
        return FieldError(ANNOTATION_PATH, self.annotation, hint)


@dataclass(frozen=True, slots=True)
class ParsedConfig:
    """A parsed text or value."""

    config: Config | None = None
    """None if absent or invalid."""
    usable: Config | None = None
    """The valid part, so that other rules can report their errors too. An invalid timeout is 0; None if the targets are
    invalid."""
    violations: tuple[FieldError, ...] = ()


NOT_GIVEN: Final = ParsedConfig()


def read_sources(field: Any, annotation: Any, *, has_targets: bool = True) -> ConfigSources:
    by_field = NOT_GIVEN if field is None else parse(field, FIELD_PATH, has_targets=has_targets)
    by_note = NOT_GIVEN if annotation is None else parse_annotation(annotation, has_targets=has_targets)
    return ConfigSources(field, annotation, by_field, by_note)


def targets(obj: Any, config: Config) -> list[TemplateView]:
    """The templates that the gang is made of (A2: none named means all)."""
    wanted = frozenset(config.targets)
    return [job for job in templates_of(obj) if not wanted or job.name in wanted]


def parse(value: Any, path: str, *, has_targets: bool = True) -> ParsedConfig:
    """Parses a decoded config; collects all errors."""
    if not isinstance(value, dict):
        return _invalid(path, value, f"must be an object with {_keys(has_targets=has_targets)}")
    schema = GroupSchedulingConfig if has_targets else TimeoutConfig
    try:
        read = msgspec.convert(value, schema)
    except REFUSALS:
        wrong = list(bad_parts(value, schema, path))
        return ParsedConfig(
            usable=_usable_part(value, {it.path for it in wrong}, path, has_targets=has_targets),
            violations=tuple(_violation(it, path, has_targets=has_targets) for it in wrong),
        )
    named = read.targetReplicatedJobs if isinstance(read, GroupSchedulingConfig) else None
    config = Config(timeout=read.timeoutAfterSeconds, targets=tuple(named or ()))
    return ParsedConfig(config, config)


def parse_annotation(text: Any, *, has_targets: bool = True) -> ParsedConfig:
    """Parses the annotation's text; collects all errors."""
    if not isinstance(text, str):
        return _invalid(ANNOTATION_PATH, text, "must be a string that holds a JSON object")
    return _parse_text(text, has_targets=has_targets)


@lru_cache(maxsize=16)
def _parse_text(text: str, *, has_targets: bool) -> ParsedConfig:
    """Every pod of a gang has the same text, and admission of one reads it four times."""
    try:
        value = json.loads(text, object_pairs_hook=_reject_duplicate_keys)
    except (ValueError, RecursionError) as problem:
        message = f"must be a JSON object with {_keys(has_targets=has_targets)}: {problem}"
        return _invalid(ANNOTATION_PATH, text, message)
    return parse(value, ANNOTATION_PATH, has_targets=has_targets)


def stored_config(field: bytes | None, annotation: str | None, *, has_targets: bool = True) -> Config:
    """The config of a stored object; `field` is its raw JSON.

    Raises Malformed for an invalid config, which an object has that was created while the webhook was off (A10).
    """
    found = read_sources(None if field is None else _decoded(field), annotation, has_targets=has_targets)
    for wrong in (*found.violations, *([found.conflict] if found.conflict else [])):
        raise Malformed(wrong.path, wrong.value, wrong.message.removeprefix("must be "))
    return found.config or Config()


def is_equivalent(one: Config, other: Config) -> bool:
    """True if two configs mean the same; the order of targets is irrelevant."""
    return one.timeout == other.timeout and sorted(one.targets) == sorted(other.targets)


def canonical(config: Config) -> str:
    """The config as compact JSON without empty keys: the annotation's value."""
    members: dict[str, Any] = {}
    if config.timeout is not None:
        members[names.TIMEOUT_FIELD] = config.timeout
    if config.targets:
        members[names.TARGETS_FIELD] = list(config.targets)
    return msgspec.json.encode(members).decode()


def _invalid(path: str, value: Any, message: str) -> ParsedConfig:
    return ParsedConfig(violations=(FieldError(path, value, message),))


def _keys(*, has_targets: bool) -> str:
    both = f"the keys {names.TIMEOUT_FIELD} and {names.TARGETS_FIELD}, both optional"
    return both if has_targets else f"the key {names.TIMEOUT_FIELD}, which is optional"


def _usable_part(value: dict[Any, Any], wrong: set[str], path: str, *, has_targets: bool) -> Config | None:
    targets = value.get(names.TARGETS_FIELD) if has_targets else None
    if has_targets and child_path(path, names.TARGETS_FIELD) in wrong:
        return None
    kept = tuple(it for it in targets or () if isinstance(it, str) and it)
    if targets and not kept:
        return None
    timeout = 0 if child_path(path, names.TIMEOUT_FIELD) in wrong else value.get(names.TIMEOUT_FIELD)
    return Config(timeout=timeout, targets=kept)


def _violation(wrong: FieldError, path: str, *, has_targets: bool) -> FieldError:
    """In the words of this config."""
    if wrong.cause_type is CauseType.NOT_SUPPORTED:
        known = f"keys are {names.TIMEOUT_FIELD} and {names.TARGETS_FIELD}"
        message = f"unknown key; the {known if has_targets else f'only key is {names.TIMEOUT_FIELD}'}"
    elif wrong.path == child_path(path, names.TIMEOUT_FIELD):
        message = _TIMEOUT + _seconds_hint(wrong.value)
    else:
        message = _TARGETS if wrong.path == child_path(path, names.TARGETS_FIELD) else _TARGET
    return replace(wrong, message=message)


def _seconds_hint(value: Any) -> str:
    """What to write for a number in quotes or a duration, such as `5m`."""
    if not isinstance(value, str):
        return ""
    seconds = quantity.parse_duration(f"{value}s" if value.isdecimal() else value) or 0
    return f": write {seconds} (seconds)" if seconds == int(seconds) and 1 <= seconds <= MAX_TIMEOUT else ""


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            msg = f"the key {format_value(key)} is given twice"
            raise ValueError(msg)
        members[key] = value
    return members


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError) as problem:
        raise Malformed(FIELD_PATH, raw, "JSON") from problem
