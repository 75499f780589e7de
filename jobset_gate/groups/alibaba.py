"""Alibaba's way: two labels on the pod are all there is of the group, its name and its minimum (G1)."""

from jobset_gate import names
from jobset_gate.groups.model import Claim, Design, Key, Meta, Terms, Way
from jobset_gate.groups.values import Sheet


def claim(meta: Meta) -> Claim | None:
    """What a pod says."""
    if names.ALIBABA_NAME not in meta.labels:
        return None
    sheet = Sheet(meta.labels, meta.labels_path)
    # No object bears the name, so it may be all that a label's value may be.
    key = Key(design=Design.ALIBABA, namespace=meta.namespace, name=sheet.name(names.ALIBABA_NAME, free=True))
    said = Terms(minimum=sheet.count(names.ALIBABA_MINIMUM))
    if names.ALIBABA_MINIMUM not in meta.labels:
        sheet.lack(names.ALIBABA_MINIMUM, "must be given: it is how many pods the group needs")
    return Claim(way=Way.ALIBABA, key=key, terms=said, problems=tuple(sheet.problems))
