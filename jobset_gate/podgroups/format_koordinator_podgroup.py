"""Koordinator's way with a PodGroup: a label names it, annotations on it say what its spec has no field for (G1)."""

from jobset_gate import names
from jobset_gate.objects.field_error import FieldError
from jobset_gate.podgroups.fields import FieldReader
from jobset_gate.podgroups.model import Flavor, Format, GangMode, GroupSpec, Membership, PodGroupKey, RawMetadata

ANNOTATION_KEYS = (names.KOORDINATOR_TOTAL, names.KOORDINATOR_MODE, names.KOORDINATOR_GANGS)
"""Annotations that say what a PodGroup has no field for."""


def labelled_membership(meta: RawMetadata) -> Membership | None:
    """What a pod says."""
    if names.KOORDINATOR_LABEL not in meta.labels:
        return None
    sheet = FieldReader(meta.labels, meta.labels_path)
    key = PodGroupKey(design=Flavor.KOORDINATOR, namespace=meta.namespace, name=sheet.name(names.KOORDINATOR_LABEL))
    return Membership(format=Format.KOORDINATOR_POD_GROUP, key=key, problems=tuple(sheet.problems))


def annotated_spec(meta: RawMetadata) -> tuple[GroupSpec, tuple[FieldError, ...]]:
    """What the annotations on a PodGroup say; its minimum and its time limit stand in its spec."""
    sheet = FieldReader(meta.annotations, meta.annotations_path)
    said = GroupSpec(
        total=sheet.count(names.KOORDINATOR_TOTAL),
        mode=sheet.choice(names.KOORDINATOR_MODE, GangMode),
        gangs=sheet.gangs(names.KOORDINATOR_GANGS),
    )
    return said, tuple(sheet.problems)
