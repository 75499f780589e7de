"""All that is wrong with manifests: findings with file, line and column, in that order."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.manifests import mistakes, pod_groups, start_groups, workloads
from jobset_gate.cli.manifests.jobsets import ManifestObject, items, judge_item, summary
from jobset_gate.cli.manifests.reader import ManifestError, documents, source_name
from jobset_gate.objects.field_error import CauseType, FieldError
from jobset_gate.objects.unstructured import Json
from jobset_gate.settings import Settings
from jobset_gate.sources.objects import config_of, is_in_start_group

MALFORMED: Final = "Malformed"
"""Reason of a finding: a file that is not YAML or JSON that Kubernetes reads."""
WARNING: Final = "Warning"
"""Reason of a finding: it is allowed, but probably not intended."""
SKIPPED: Final = f"skipped: not a JobSet ({names.JOBSET_API_VERSION}), and not part of a pod group"
_NO_GANG: Final = (
    "no gang in this manifest, and --require-gate is set: no JobSet, Job, LeaderWorkerSet or TrainJob with a gate, "
    "no start group, no pod group"
)


class Level(StrEnum):
    OK = "ok"
    """An object without errors, and what it comes to."""
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True):
    """What was found at one place; lines and columns count from 1."""

    file: str
    line: int
    column: int
    level: Level
    object: str
    """Kind, name and document; empty for a whole file."""
    field: str
    """Its path; empty for a whole object."""
    message: str
    reason: str = ""
    """A CauseType, MALFORMED or WARNING; empty for OK."""

    @property
    def text(self) -> str:
        """The message behind the field's path."""
        return f"{self.field}: {self.message}" if self.field else self.message


class ManifestReport(msgspec.Struct, frozen=True):
    """What was found in all files."""

    findings: list[Finding]
    """By file as given, line and column."""
    corrected: list[tuple[ManifestObject, Json]]
    """Manifests of pod groups that an API server would refuse, in a form without any error."""

    @property
    def problems(self) -> list[Finding]:
        """Errors and warnings."""
        return [it for it in self.findings if it.level is not Level.OK]

    def of_level(self, level: Level) -> list[Finding]:
        return [it for it in self.findings if it.level is level]


def check(
    files: Sequence[str], settings: Settings, *, require_gate: bool = False, strict: bool = False
) -> ManifestReport:
    """The findings in `files`; with `strict` no warning, but errors.

    Raises CommandError for a file that cannot be opened, and if there is no object in any of them.
    """
    found, judged = list[Finding](), list[pod_groups.GroupFindings]()
    for file in files:
        before = len(found)
        checked = [_check_item(item, settings, found) for item in _items(file, found)]
        failed = any(it.level is Level.ERROR for it in found[before:])
        if require_gate and not failed and not any(map(_has_gang, checked)):
            found.append(Finding(source_name(file), 1, 1, Level.ERROR, "", "", _NO_GANG, CauseType.REQUIRED))
        judged += checked
    if not found:
        raise CommandError(f"no objects in {', '.join(map(source_name, files))}")
    for it in pod_groups.between(judged):
        level, reason = (Level.ERROR, CauseType.INVALID) if it.is_error else (Level.WARNING, WARNING)
        found.append(_finding(it.item, it.path, it.message, level, reason))
    if strict:
        found = [msgspec.structs.replace(it, level=Level.ERROR) if it.level is Level.WARNING else it for it in found]
    order = {source_name(file): number for number, file in enumerate(files)}
    found.sort(key=lambda it: (order[it.file], it.line, it.column))
    right = (it for it in judged if it.corrected is not None and _is_right(it, settings))
    return ManifestReport(found, [(it.item, it.corrected) for it in right if it.corrected is not None])


def _items(file: str, found: list[Finding]) -> Iterator[ManifestObject]:
    """The objects of a file up to the first that cannot be read."""
    try:
        for document in documents(file, split=True):
            yield from items(document)
    except ManifestError as problem:
        place = max(problem.line, 1), max(problem.column, 1)
        found.append(Finding(problem.source, *place, Level.ERROR, "", "", problem.message, MALFORMED))


def _check_item(item: ManifestObject, settings: Settings, found: list[Finding]) -> pod_groups.GroupFindings:
    group, errors, warnings = _judge_item(item, settings)
    if not errors:
        workload = item.workload
        results = [] if workload is None else [summary(workload)]
        is_train_job = workloads.kind_of(item.value) == workloads.TRAIN_JOB
        results += [workloads.train_job_summary(item.value)] if is_train_job else []
        results += [start_groups.summary(it.pod) for it in start_groups.pods_of(item) if is_in_start_group(it.pod)]
        results += group.summaries
        found.append(_finding(item, "", f"ok: {'; '.join(results)}" if results else SKIPPED, Level.OK))
    found += (_finding(item, it.path, _message(it), Level.ERROR, it.cause_type) for it in errors)
    found += (_finding(item, path, message, Level.WARNING, WARNING) for path, message in warnings)
    return group


def _judge_item(
    item: ManifestObject, settings: Settings
) -> tuple[pod_groups.GroupFindings, list[FieldError], list[tuple[str, str]]]:
    """Pod group, errors, and warnings as (path, message). Of a field that two rules name only the first is kept."""
    group = pod_groups.judge(item)
    outcomes = [it for it in (judge_item(item, settings),) if it is not None]
    outcomes += [it.outcome(settings) for it in start_groups.pods_of(item)]
    errors = [*(error for it in outcomes for error in it.field_errors), *group.field_errors]
    known = {it.path for it in errors}
    misfits = [it for it in mistakes.of(item.value) if it.error.path not in known]
    errors += (it.error for it in misfits if it.certain)
    known = {it.path for it in errors}
    given = (warning.partition(": ") for it in outcomes for warning in it.warnings)
    warnings = [(path, message) for path, _, message in given if path not in known]
    return group, errors, warnings + [(it.error.path, _message(it.error)) for it in misfits if not it.certain]


def _has_gang(group: pod_groups.GroupFindings) -> bool:
    workload = group.item.workload
    asks = workload is not None and config_of(workload).present
    starts, trains = start_groups.pods_of(group.item), any(workloads.train_job_configs(group.item.value))
    return bool(group.claims or group.pod_group or asks or starts or trains)


def _is_right(group: pod_groups.GroupFindings, settings: Settings) -> bool:
    """Whether nothing is wrong with the corrected manifest."""
    document = replace(group.item.document, part=0)
    return not _judge_item(replace(group.item, document=document, value=group.corrected), settings)[1]


def _finding(item: ManifestObject, path: str, message: str, level: Level, reason: str = "") -> Finding:
    return Finding(item.document.source, *item.place(path), level, item.title, path, message, reason)


def _message(error: FieldError) -> str:
    return str(error).removeprefix(f"{error.path}: ")
