"""The JobSets and Jobs among the documents, also inside List objects, and what the webhook would make of each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import targets
from jobset_gate.cli.manifests.reader import ManifestDocument
from jobset_gate.cli.manifests.workloads import JOB_TEMPLATE, workload_of
from jobset_gate.injection import inject, template_rules, validate
from jobset_gate.injection import warnings as warn
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.json_patch import PatchTooLarge
from jobset_gate.objects.template import group_size
from jobset_gate.objects.unstructured import Json, as_int, format_path, nested
from jobset_gate.settings import Settings
from jobset_gate.sources.objects import config_of, source_of
from jobset_gate.sources.table import LWS

STAND_IN: Final = "x" * inject.SUFFIX_LENGTH
"""For the five random characters of a generated name, so that the same manifest gives the same bytes."""
STAND_IN_TOKEN: Final = "x" * 22
"""For the random token of the gate stream, for the same reason. In a cluster the webhook puts another in its place."""


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """One object of a document: the document itself, or an item of a List."""

    document: ManifestDocument
    path: str
    """Where it stands in the document: "" or "items[3]"."""
    value: Any

    @property
    def workload(self) -> Json | None:
        """What the webhook would judge."""
        return workload_of(self.value)

    @property
    def title(self) -> str:
        """`JobSet team/train (document 2)`."""
        kind, meta = nested(self.value, "kind"), nested(self.value, "metadata")
        name = nested(meta, "name") or nested(meta, "generateName") or "without a name"
        namespace = nested(meta, "namespace")
        part = f"part {self.document.part}" if self.document.part else ""
        where = ", ".join(it for it in (f"document {self.document.number}", part, self.path) if it)
        return f"{kind or 'object'} {f'{namespace}/' if namespace else ''}{name} ({where})"

    def place(self, path: str = "") -> tuple[int, int]:
        """Line and column of a field of it."""
        return self.document.place(f"{self.path}.{path}".strip(".") if path else self.path)

    def at(self, path: str = "") -> str:
        """`jobset.yaml:12:3: JobSet train (document 1)`, with line and column of a field."""
        line, column = self.place(path)
        return f"{self.document.source}:{line}:{column}: {self.title}"


@dataclass(frozen=True, slots=True)
class WebhookOutcome:
    """What the webhook would say to the creation of a JobSet or Job."""

    stored: Json
    """The object as it would be stored; as it came if there are violations."""
    field_errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def items(document: ManifestDocument) -> Iterator[ManifestObject]:
    value = document.value
    listed = nested(value, "items")
    if str(nested(value, "kind")).endswith("List") and isinstance(listed, list):
        for index, each in enumerate(listed):
            yield ManifestObject(document, f"items[{index}]", each)
        return
    yield ManifestObject(document, "", value)


def judge_item(item: ManifestObject, settings: Settings) -> WebhookOutcome | None:
    """The webhook's answer to the workload in it, with paths in the object itself; None without one."""
    workload = item.workload
    if workload is None:
        return None
    outcome = judge(workload, settings)
    if workload is item.value:
        return outcome
    root = f"{format_path(JOB_TEMPLATE)}."
    errors = (replace(it, path=root + it.path) for it in outcome.field_errors)
    return WebhookOutcome(item.value, tuple(errors), tuple(root + it for it in outcome.warnings))


def judge(jobset: Json, settings: Settings) -> WebhookOutcome:
    """The webhook's answer, offline."""
    found = _shape(jobset) + validate.field_errors(jobset, settings=settings)
    if found:
        return WebhookOutcome(jobset, tuple(dict.fromkeys(found)))
    try:
        stored = inject.injected(jobset, None, settings=settings, suffix=STAND_IN, token=STAND_IN_TOKEN).document
    except PatchTooLarge:
        return WebhookOutcome(jobset, (validate.patch_too_large(jobset),))
    warnings = warn.warnings(stored, settings=settings)
    name = nested(stored, "metadata", "name")
    if name != nested(jobset, "metadata", "name"):
        completed = f"{names.PROGRAM} completes it in the cluster with five random characters, here as {name}"
        warnings.append(f"metadata.generateName: {completed}")
    return WebhookOutcome(stored, warnings=tuple(warnings))


def summary(jobset: Json) -> str:
    """What the gate of a JobSet or Job without violations comes to."""
    config = config_of(jobset).config
    if config is None:
        return "no gate asked for"
    found = targets(jobset, config)
    limit = "for ever" if config.timeout is None else f"at most {config.timeout}s"
    pods, named = sum(job.expected_pods for job in found), ", ".join(job.name for job in found if job.name)
    whose = f" of {named}" if named else ""
    if source_of(jobset) is LWS:
        pods, groups = group_size(jobset), as_int(nested(jobset, "spec", "replicas"), 1)
        whose = f" of each of {groups} group{'' if groups == 1 else 's'}"
    return f"{pods} pod{'' if pods == 1 else 's'}{whose} wait for each other, {limit}"


def _shape(jobset: Json) -> list[FieldError]:
    """What an API server denies before it calls a webhook."""
    misshapen, meta = template_rules.metadata(jobset), jobset.get("metadata")
    if misshapen:
        return misshapen
    if not isinstance(nested(meta, "name") or nested(meta, "generateName"), str):
        return [FieldError("metadata.name", nested(meta, "name"), "must be given, or metadata.generateName")]
    return []
