"""Untyped objects as an API server sends them to the webhook: which row is theirs, and which gang they ask for."""

from collections.abc import Collection
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import ConfigSources, read_sources
from jobset_gate.barrier.source import Source
from jobset_gate.objects.template import annotations_of, is_pod
from jobset_gate.objects.unstructured import Json, as_map, nested
from jobset_gate.sources.table import JOBSET, POD_SOURCES, START_GROUP, TEMPLATE_SOURCES, WORKLOAD_SOURCES

_BY_KIND: Final = {source.kind: source for source in WORKLOAD_SOURCES.values()}
_PODS_BY_LABEL: Final = {source.gated: source for source in POD_SOURCES.values() if source.gated}
_TEMPLATE_LABELS: Final = tuple(source.gated for source in TEMPLATE_SOURCES.values())
_NO_TIMEOUT: Final = "{}"
"""The config of a pod that says nothing else than its gang."""


def source_of(obj: Any) -> Source:
    """The row of the object's kind, of a pod that of its label; that of JobSets for one without a kind."""
    kind = nested(obj, "kind")
    if kind == "Pod":
        return _marked_by(obj) or START_GROUP
    return _BY_KIND.get(kind, JOBSET) if isinstance(kind, str) else JOBSET


def config_of(obj: Any) -> ConfigSources:
    """What the object says about its gate."""
    source = source_of(obj)
    field = nested(obj, "spec", names.CONFIG_FIELD) if source.has_config_field else None
    annotation = annotations_of(obj).get(names.CONFIG)
    if is_pod(obj):
        annotation = (_NO_TIMEOUT if annotation is None else annotation) if is_gated_alone(obj) else None
    return read_sources(field, annotation, has_targets=source.has_targets)


def is_in_start_group(obj: Any) -> bool:
    """Whether the object is a pod that asks for a barrier by its label, and has got none from its template."""
    labels = _labels(obj)
    return is_pod(obj) and labels.get(names.START_GROUP) is not None and labels.get(names.GATED) not in _TEMPLATE_LABELS


def is_gated_alone(obj: Any, sources: Collection[str] = tuple(POD_SOURCES)) -> bool:
    """Whether the object is a pod of one of these sources, which gets a barrier of its own."""
    marked = _marked_by(obj) if is_pod(obj) else None
    return (marked is not None and marked.name in sources) or (START_GROUP.name in sources and is_in_start_group(obj))


def has_marked_templates(obj: Any) -> bool:
    """Whether the object is a workload whose pods are gated one by one, by what its templates say."""
    return source_of(obj).marks_templates and not is_pod(obj)


def _marked_by(pod: Any) -> Source | None:
    """The row that the label of a pod names, of those whose pods are gated one by one."""
    gated = _labels(pod).get(names.GATED)
    return _PODS_BY_LABEL.get(gated) if isinstance(gated, str) else None


def _labels(obj: Any) -> Json:
    return as_map(nested(obj, "metadata", "labels"))
