"""CREATE and UPDATE of a workload whose pods are gated one by one: what its pod templates say to its pods (K3).

Metadata only, and nothing of it depends on version, image or settings: no upgrade of jobset-gate changes a template,
which would start a rolling update.
"""

from typing import Final

from jobset_gate import names
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.template import TemplateView, annotations_of, templates_of
from jobset_gate.objects.unstructured import Json, as_map, nested
from jobset_gate.sources.objects import source_of

COPIED: Final = (names.CONFIG, names.PREFETCH_IMAGES, names.BARRIER_IMAGE)
"""Annotations of the workload that its pods need when they are created; the others are read from the workload."""


def mark(edit: PatchBuilder, obj: Json) -> None:
    """The label by which its pods are sent, and its annotations with their text; without a config none of them.

    Idempotent. It follows the workload alone, so it needs no old object and restores nothing.
    """
    given = annotations_of(obj)
    gated = given.get(names.CONFIG) is not None
    labels = {names.GATED: source_of(obj).gated if gated else None}
    annotations = {key: given.get(key) if gated else None for key in COPIED}
    for template in templates_of(obj):
        if template.well_formed:
            _set(edit, template, "labels", labels)
            _set(edit, template, "annotations", annotations)


def _set(edit: PatchBuilder, template: TemplateView, holder: str, wanted: Json) -> None:
    """None: is not there. A map that nothing else is in goes with its last entry."""
    path = (*template.pod_path, "metadata", holder)
    there = as_map(nested(template.pod_template, "metadata", holder))
    surplus = [key for key, value in wanted.items() if value is None and key in there]
    if surplus and not any(wanted.values()) and len(surplus) == len(there):
        edit.remove(path)
        return
    for key in surplus:
        edit.remove((*path, key))
    for key, value in wanted.items():
        if value is not None and there.get(key) != value:
            edit.set((*path, key), value)
