"""All field errors of an object at once: config, annotations, limits, and the template rules (A2, A3)."""

import re
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import (
    ANNOTATION_PATH,
    FIELD_PATH,
    ConfigSources,
    ParsedConfig,
    canonical,
    is_equivalent,
    parse_annotation,
)
from jobset_gate.barrier.model import Config
from jobset_gate.injection import ownership, source_rules, template_rules
from jobset_gate.objects.field_error import CauseType, FieldError, annotation_path, child_path, format_value
from jobset_gate.objects.json_patch import LARGEST_PATCH, json_size
from jobset_gate.objects.template import TemplateView, annotations_of, templates_of
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.objects.unstructured import Json, as_list, format_path, nested
from jobset_gate.podgroups import admission
from jobset_gate.settings import Settings
from jobset_gate.sources.objects import config_of, has_marked_templates, is_gated_alone, source_of

DEFAULT: Settings = Settings()

# Limits are checked before any rule, so that no rule reads more: mutating webhooks run before the API server's own
# limits for annotations and lists. An UPDATE may exceed a limit as far as the old object does: it stays editable.
MOST_REPLICATED_JOBS: Final = 500
MOST_STORED: Final = 5000
"""More replicatedJobs with a template each than an etcd object of 1.5 MiB holds; no UPDATE carries more."""
MOST_TARGETS: Final = 500
MOST_CONTAINERS: Final = 500
"""The user's init and main containers of one pod template."""
LARGEST_CONFIG: Final = 32 * 1024
"""Bytes of JSON in field or annotation: the field is copied to the annotation."""
_ALWAYS_OURS: Final = 2
"""The barrier and the prefetch copy container; each main image adds at most one container more."""

MOST_NAMES_SHOWN: Final = 10
_IMAGE: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,4096}")
_SWITCH: Final = ("true", "false")
_CHOICES: Final = {
    names.BYPASS: _SWITCH,
    names.ON_TIMEOUT: (names.ON_TIMEOUT_FAIL, names.ON_TIMEOUT_RELEASE),
    names.PREFETCH_IMAGES: _SWITCH,
}


def field_errors(new: Json, old: Json | None = None, *, settings: Settings = DEFAULT) -> list[FieldError]:
    """What forbids a CREATE (`old` None) or an UPDATE; [] without a config.

    An UPDATE is refused only for errors that the old object does not have: one that was created while the webhook was
    off must stay editable.
    """
    too_large = limit_errors(new, old)
    if too_large:
        return too_large
    if old is None:
        return template_rules.metadata(new) or _object_errors(new, config_of(new), None, settings)
    now, was = config_of(new), config_of(old)
    found: list[FieldError] = []
    if not has_marked_templates(new):  # there a change starts a rolling update, as any other
        found = _config_changes(new, old, now, was) + template_rules.changes(new, old)
    errors = _object_errors(new, now, old, settings)
    if errors:
        known = {_identity(it) for it in _object_errors(old, was, old, settings)}
        found += [it for it in errors if _identity(it) not in known]
    return found


def _object_errors(obj: Json, given: ConfigSources, old: Json | None, settings: Settings) -> list[FieldError]:
    """Errors of one version of the object; `old` is None on CREATE, which has more rules."""
    if not given.present:
        return []
    found = [*given.violations, *_annotation_errors(obj), *template_rules.reserved(obj, old)]
    if old is None and given.conflict is not None:
        found.append(given.conflict)
    config = given.parsed.usable
    if config is None:
        return found
    found += _target_errors(obj, config, given.path)
    found += template_rules.platform(obj, config)
    found += template_rules.never_starts(obj, config)
    found += template_rules.never_ends(obj, config, settings.barrier)
    found += admission.barrier_conflicts(obj, config, settings.groups)
    if has_marked_templates(obj):
        found += source_rules.of_leader_worker_set(obj, config, settings.barrier)
    if old is None:
        found += template_rules.unmarked(obj, config)
        found += source_rules.ON_CREATE[source_of(obj).name](obj, config, settings.barrier)
    return found


def _identity(error: FieldError) -> tuple[str, str, str]:
    return error.path, format_value(error.value), error.message


def limit_errors(new: Json, old: Json | None = None) -> list[FieldError]:
    """The limits that a gated object exceeds; `old` is None on CREATE."""
    field, note = nested(new, "spec", names.CONFIG_FIELD), annotations_of(new).get(names.CONFIG)
    if field is None and note is None and not is_gated_alone(new):
        return []
    found = _config_limits(FIELD_PATH, field, nested(old, "spec", names.CONFIG_FIELD))
    found += _config_limits(ANNOTATION_PATH, note, annotations_of(old).get(names.CONFIG))
    jobs, before = as_list(nested(new, "spec", "replicatedJobs")), as_list(nested(old, "spec", "replicatedJobs"))
    if len(jobs) > max(MOST_REPLICATED_JOBS, len(before)) or len(before) > MOST_STORED:
        message = f"too many: a gated JobSet has at most {MOST_REPLICATED_JOBS} replicatedJobs"
        return [*found, FieldError("spec.replicatedJobs", max(len(jobs), len(before)), message)]
    most = max([MOST_CONTAINERS, *map(_container_count, templates_of(old))])
    return found + [_too_many_containers(job) for job in templates_of(new) if _container_count(job) > most]


def patch_too_large(new: Json) -> FieldError:
    """The error for an object whose patch raised PatchTooLarge."""
    source = source_of(new)
    message = f"too much: what jobset-gate puts into a {source.kind} is at most {LARGEST_PATCH} bytes in all"
    key = "replicatedJobs" if source.has_targets else "initContainers" if source.gates_pods else "template"
    return FieldError(f"spec.{key}", len(templates_of(new)), message)


def _config_limits(path: str, value: Any, old: Any) -> list[FieldError]:
    given = _length(value)
    too_long = given > max(LARGEST_CONFIG, _length(old))
    if not (too_long and isinstance(value, str)):  # a text beyond the limit is not parsed
        count = len(_target_list(value))
        if count > max(MOST_TARGETS, len(_target_list(old))):
            message = f"too many: must be at most {MOST_TARGETS} targets"
            return [FieldError(child_path(path, names.TARGETS_FIELD), count, message)]
    return [FieldError(path, given, f"too long: must be at most {LARGEST_CONFIG} bytes")] if too_long else []


def _length(config: Any) -> int:
    """Bytes; 0 for a value that JSON cannot hold, which the rules refuse."""
    if isinstance(config, str):
        return len(config.encode(errors="surrogatepass"))
    try:
        return 0 if config is None else json_size(config)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return 0


def _target_list(config: Any) -> list[Any]:
    if not isinstance(config, str):
        return as_list(nested(config, names.TARGETS_FIELD))
    usable = parse_annotation(config).usable
    return [] if usable is None else list(usable.targets)


def _container_count(job: TemplateView) -> int:
    """The user's containers. Containers with a reserved name count where there are more than admission injects."""
    entries = [*job.spec_list("initContainers"), *job.spec_list("containers")]
    reserved = sum(map(ownership.is_reserved_container, entries))
    return max(len(entries) - reserved, reserved - _ALWAYS_OURS)


def _too_many_containers(job: TemplateView) -> FieldError:
    message = f"too many: a gated pod template has at most {MOST_CONTAINERS} containers, init containers counted too"
    return FieldError(format_path((*job.pod_path, "spec", "containers")), _container_count(job), message)


def _annotation_errors(obj: Json) -> list[FieldError]:
    """Values of the jobset-gate annotations other than the config."""
    found = []
    for key in (*_CHOICES, names.BARRIER_IMAGE):
        value, allowed = annotations_of(obj).get(key), _CHOICES.get(key)
        if value is None:
            continue
        message = "" if allowed is None or value in allowed else f"must be {' or '.join(map(format_value, allowed))}"
        if not isinstance(value, str):
            message = "must be a string: put it in quotes"
        elif allowed is None and not _IMAGE.fullmatch(value):
            message = "must be an image reference: not empty, without spaces"
        if message:
            found.append(FieldError(annotation_path(key), value, message, CauseType.NOT_SUPPORTED))
    return found


def _target_errors(obj: Json, config: Config, path: str) -> list[FieldError]:
    """Targets that name no replicatedJob, and targets given twice."""
    known = {job.name for job in templates_of(obj)}
    there_are = truncate_list(sorted(known), MOST_NAMES_SHOWN) or "none"
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


def _config_changes(new: Json, old: Json, now: ConfigSources, was: ConfigSources) -> list[FieldError]:
    """Changes of immutable members: config, prefetch-images, barrier-image. An absent one is restored instead."""
    if not was.present:
        return _config_added(now, source_of(old).kind)
    found = [*_changed(FIELD_PATH, now.field, was.field, now.by_field, was)]
    found += _changed(ANNOTATION_PATH, now.annotation, was.annotation, now.by_annotation, was)
    for key in (names.PREFETCH_IMAGES, names.BARRIER_IMAGE):
        value, before = annotations_of(new).get(key), annotations_of(old).get(key)
        if value is not None and value != before and not (before is None and value == "false"):
            was_set = "was not set then" if before is None else f"was {format_value(before)}"
            message = f"is fixed when the {source_of(old).kind} is created; {was_set}"
            found.append(FieldError(annotation_path(key), value, message, CauseType.FORBIDDEN))
    return found


def _config_added(now: ConfigSources, kind: str) -> list[FieldError]:
    message = f"may only be set when the {kind} is created"
    both = ((FIELD_PATH, now.field), (ANNOTATION_PATH, now.annotation))
    return [FieldError(path, value, message, CauseType.FORBIDDEN) for path, value in both if value is not None]


def _changed(path: str, value: Any, before: Any, parsed: ParsedConfig, was: ConfigSources) -> list[FieldError]:
    if value is None or value == before or parsed.violations:
        return []
    if was.config is not None and parsed.config is not None and is_equivalent(parsed.config, was.config):
        return []
    raw = was.annotation if was.field is None else was.field
    before_text = canonical(was.config) if was.config is not None else format_value(raw)
    return [FieldError(path, value, f"is immutable; was {before_text}")]
