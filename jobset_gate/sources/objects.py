"""Untyped objects as an API server sends them to the webhook: which row is theirs, and which gang they ask for."""

from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.config import ConfigSources, read_sources
from jobset_gate.barrier.source import Source
from jobset_gate.objects.template import annotations_of
from jobset_gate.objects.unstructured import nested
from jobset_gate.sources.table import JOBSET, TEMPLATE_SOURCES

_BY_KIND: Final = {source.kind: source for source in TEMPLATE_SOURCES.values()}


def source_of(obj: Any) -> Source:
    """The row of the object's kind; that of JobSets for one without a kind."""
    kind = nested(obj, "kind")
    return _BY_KIND.get(kind, JOBSET) if isinstance(kind, str) else JOBSET


def config_of(obj: Any) -> ConfigSources:
    """What the object says about its gate."""
    source = source_of(obj)
    field = nested(obj, "spec", names.CONFIG_FIELD) if source.has_config_field else None
    return read_sources(field, annotations_of(obj).get(names.CONFIG), has_targets=source.has_targets)
