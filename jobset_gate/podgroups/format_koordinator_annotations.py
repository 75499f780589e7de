"""Koordinator's way without a PodGroup: annotations on the pod say all; beside a PodGroup they win over it (G1)."""

from jobset_gate import names
from jobset_gate.podgroups.fields import FieldReader
from jobset_gate.podgroups.model import Flavor, Format, GangMode, GroupSpec, Membership, PodGroupKey, RawMetadata

KEYS = (
    names.KOORDINATOR_NAME,
    names.KOORDINATOR_MINIMUM,
    names.KOORDINATOR_WAIT,
    names.KOORDINATOR_TOTAL,
    names.KOORDINATOR_MODE,
    names.KOORDINATOR_GANGS,
)


def annotated_membership(meta: RawMetadata) -> Membership | None:
    """What a pod says. One that names its PodGroup by the label may say the rest here, and that wins, too."""
    if not any(key in meta.annotations for key in KEYS):
        return None
    by_label = names.KOORDINATOR_NAME not in meta.annotations
    if by_label and names.KOORDINATOR_LABEL not in meta.labels:
        return None
    labels, notes = FieldReader(meta.labels, meta.labels_path), FieldReader(meta.annotations, meta.annotations_path)
    name = labels.name(names.KOORDINATOR_LABEL) if by_label else notes.name(names.KOORDINATOR_NAME)
    said = GroupSpec(
        minimum=notes.count(names.KOORDINATOR_MINIMUM),
        total=notes.count(names.KOORDINATOR_TOTAL),
        wait=notes.duration(names.KOORDINATOR_WAIT),
        mode=notes.choice(names.KOORDINATOR_MODE, GangMode),
        gangs=notes.gangs(names.KOORDINATOR_GANGS),
    )
    return Membership(
        format=Format.KOORDINATOR_POD_GROUP if by_label else Format.KOORDINATOR_ANNOTATIONS,
        key=PodGroupKey(design=Flavor.KOORDINATOR, namespace=meta.namespace, name=name),
        spec=said,
        problems=(*labels.problems, *notes.problems),
    )
