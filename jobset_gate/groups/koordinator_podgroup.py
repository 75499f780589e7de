"""Koordinator's way with a PodGroup: a label names it, annotations on it say what its spec has no field for (G1)."""

from jobset_gate import names
from jobset_gate.groups.model import Claim, Design, Key, Meta, Mode, Terms, Way
from jobset_gate.groups.values import Sheet
from jobset_gate.violation import Violation

NOTED = (names.KOORDINATOR_TOTAL, names.KOORDINATOR_MODE, names.KOORDINATOR_GANGS)
"""Annotations that say what a PodGroup has no field for."""


def claim(meta: Meta) -> Claim | None:
    """What a pod says."""
    if names.KOORDINATOR_LABEL not in meta.labels:
        return None
    sheet = Sheet(meta.labels, meta.labels_path)
    key = Key(design=Design.KOORDINATOR, namespace=meta.namespace, name=sheet.name(names.KOORDINATOR_LABEL))
    return Claim(way=Way.KOORDINATOR_POD_GROUP, key=key, problems=tuple(sheet.problems))


def noted(meta: Meta) -> tuple[Terms, tuple[Violation, ...]]:
    """What the annotations on a PodGroup say; its minimum and its time limit stand in its spec."""
    sheet = Sheet(meta.annotations, meta.annotations_path)
    said = Terms(
        total=sheet.count(names.KOORDINATOR_TOTAL),
        mode=sheet.choice(names.KOORDINATOR_MODE, Mode),
        gangs=sheet.gangs(names.KOORDINATOR_GANGS),
    )
    return said, tuple(sheet.problems)
