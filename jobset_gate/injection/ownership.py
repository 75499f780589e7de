"""Which containers, volumes, labels and annotations of a pod or its template belong to jobset-gate."""

from collections.abc import Callable
from typing import Any, Final

from jobset_gate import names
from jobset_gate.injection import container, prefetch
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.template import TemplateView, templates_of
from jobset_gate.objects.unstructured import Json, Path, nested

FIRST_EPOCH: Final = "0"
DECISION_ANNOTATIONS: Final = (names.VERDICT, names.NUDGE)
"""Annotations that the controller writes on pods. In a template they would release pods that do not exist yet."""

IndexedEntries = list[tuple[int, Json]]
"""Entries of a list with their positions."""


def is_reserved_container(entry: Any) -> bool:
    """Whether a container has a reserved name."""
    name = nested(entry, "name")
    return name == names.BARRIER_CONTAINER or prefetch.is_reserved(name)


def is_reserved_volume(entry: Any) -> bool:
    """Whether a volume has a reserved name."""
    return nested(entry, "name") in (names.VOLUME, names.STATE_VOLUME, names.PREFETCH_VOLUME)


MANAGED_LISTS: Final[dict[str, tuple[Callable[[Any], bool], Callable[[Any], bool]]]] = {
    "initContainers": (is_reserved_container, lambda it: container.is_barrier(it) or prefetch.is_container(it)),
    "volumes": (is_reserved_volume, lambda it: container.is_volume(it) or prefetch.is_volume(it)),
}
"""The lists of a pod spec with injected entries: which names are reserved, and which entries any version of
jobset-gate has injected."""


def gated_jobs(obj: Json) -> dict[str, TemplateView]:
    """The templates that carry a barrier, by name."""
    return {job.name: job for job in templates_of(obj) if container.has_barrier(job)}


def gated_labels(job: TemplateView) -> dict[Path, Any]:
    """The values of the label by which the controller selects, on Jobs and on pods, by their paths."""
    holders = zip((job.job_path, job.pod_path), job.labels, strict=True)
    return {(*path, "metadata", "labels", names.GATED): labels.get(names.GATED) for path, labels in holders}


def set_annotation(edit: PatchBuilder, job: TemplateView, key: str, value: str | None) -> None:
    """Of the pods; None: is not there."""
    path = (*job.pod_path, "metadata", "annotations", key)
    if value is not None and job.pod_annotations.get(key) != value:
        edit.set(path, value)
    if value is None and key in job.pod_annotations:
        edit.remove(path)


def own_entries(job: TemplateView, key: str) -> IndexedEntries:
    """The injected entries of one of these lists."""
    _, ours = MANAGED_LISTS[key]
    return [(index, entry) for index, entry in enumerate(job.spec_list(key)) if ours(entry)]


def reserved_entries(job: TemplateView, key: str) -> IndexedEntries:
    """The entries with a reserved name in one of these lists, ours and those of the user."""
    reserved, _ = MANAGED_LISTS[key]
    return [it for it in enumerate(job.spec_list(key)) if reserved(it[1])]


def foreign_entries(job: TemplateView, key: str) -> IndexedEntries:
    """The user's entries with a reserved name in one of these lists."""
    _, ours = MANAGED_LISTS[key]
    strange = prefetch.is_foreign_volume(job)
    return [it for it in reserved_entries(job, key) if not ours(it[1]) or strange(it[1])]
