"""Koordinator's way without a PodGroup: annotations on the pod say all; beside a PodGroup they win over it (G1)."""

from jobset_gate import names
from jobset_gate.groups.model import Claim, Design, Key, Meta, Mode, Terms, Way
from jobset_gate.groups.values import Sheet

KEYS = (
    names.KOORDINATOR_NAME,
    names.KOORDINATOR_MINIMUM,
    names.KOORDINATOR_WAIT,
    names.KOORDINATOR_TOTAL,
    names.KOORDINATOR_MODE,
    names.KOORDINATOR_GANGS,
)


def claim(meta: Meta) -> Claim | None:
    """What a pod says. Beside the label that names a PodGroup, annotations may leave the name out and still win."""
    if not any(key in meta.annotations for key in KEYS):
        return None
    by_label = names.KOORDINATOR_NAME not in meta.annotations
    if by_label and names.KOORDINATOR_LABEL not in meta.labels:
        return None
    sheet = Sheet(meta.annotations, meta.annotations_path)
    name = sheet.name(names.KOORDINATOR_NAME)
    if by_label:
        name = Sheet(meta.labels, meta.labels_path).name(names.KOORDINATOR_LABEL)  # its own way tells what is wrong
    key = Key(design=Design.KOORDINATOR, namespace=meta.namespace, name=name)
    said = Terms(
        minimum=sheet.count(names.KOORDINATOR_MINIMUM),
        total=sheet.count(names.KOORDINATOR_TOTAL),
        wait=sheet.span(names.KOORDINATOR_WAIT),
        mode=sheet.choice(names.KOORDINATOR_MODE, Mode),
        gangs=sheet.gangs(names.KOORDINATOR_GANGS),
    )
    return Claim(way=Way.KOORDINATOR_ANNOTATIONS, key=key, terms=said, problems=tuple(sheet.problems))
