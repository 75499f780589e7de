"""Alibaba's way: two labels on the pod are all there is of the group, its name and its minimum (G1)."""

from jobset_gate import names
from jobset_gate.podgroups.fields import FieldReader
from jobset_gate.podgroups.model import Flavor, Format, GroupSpec, Membership, PodGroupKey, RawMetadata


def alibaba_membership(meta: RawMetadata) -> Membership | None:
    """What a pod says."""
    if names.ALIBABA_NAME not in meta.labels:
        return None
    sheet = FieldReader(meta.labels, meta.labels_path)
    # No object bears the name, so it may be all that a label's value may be.
    key = PodGroupKey(design=Flavor.ALIBABA, namespace=meta.namespace, name=sheet.name(names.ALIBABA_NAME, free=True))
    said = GroupSpec(minimum=sheet.count(names.ALIBABA_MINIMUM))
    if names.ALIBABA_MINIMUM not in meta.labels:
        sheet.report_missing(names.ALIBABA_MINIMUM, "must be given: it is how many pods the group needs")
    return Membership(format=Format.ALIBABA, key=key, spec=said, problems=tuple(sheet.problems))
