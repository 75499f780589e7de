"""Untyped objects as an API server sends them to the webhook: which row is theirs, and which gang they ask for."""

from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import ConfigSources, read_sources
from jobset_gate.barrier.source import Source
from jobset_gate.objects.template import annotations_of, is_pod
from jobset_gate.objects.unstructured import as_map, nested
from jobset_gate.sources.table import JOBSET, START_GROUP, TEMPLATE_SOURCES

_BY_KIND: Final = {source.kind: source for source in TEMPLATE_SOURCES.values()} | {"Pod": START_GROUP}
_TEMPLATE_LABELS: Final = tuple(source.gated for source in TEMPLATE_SOURCES.values())
_NO_TIMEOUT: Final = "{}"
"""The config of a pod that says nothing else than its start group."""


def source_of(obj: Any) -> Source:
    """The row of the object's kind; that of JobSets for one without a kind."""
    kind = nested(obj, "kind")
    return _BY_KIND.get(kind, JOBSET) if isinstance(kind, str) else JOBSET


def config_of(obj: Any) -> ConfigSources:
    """What the object says about its gate."""
    source = source_of(obj)
    field = nested(obj, "spec", names.CONFIG_FIELD) if source.has_config_field else None
    annotation = annotations_of(obj).get(names.CONFIG)
    if source.gates_pods:
        annotation = (_NO_TIMEOUT if annotation is None else annotation) if is_in_start_group(obj) else None
    return read_sources(field, annotation, has_targets=source.has_targets)


def is_in_start_group(obj: Any) -> bool:
    """Whether the object is a pod that asks for a barrier by its label, and has got none from its template."""
    labels = as_map(nested(obj, "metadata", "labels"))
    gated = labels.get(names.GATED)
    return is_pod(obj) and labels.get(names.START_GROUP) is not None and gated not in _TEMPLATE_LABELS
