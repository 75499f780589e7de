"""The way of scheduler-plugins: a label on the pod names a PodGroup with minMember and a time limit (G1)."""

from fractions import Fraction

from jobset_gate import names
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.unstructured import Json, as_map
from jobset_gate.podgroups.fields import FieldReader
from jobset_gate.podgroups.model import Flavor, Format, GroupSpec, Membership, PodGroupKey, RawMetadata


def plugins_membership(meta: RawMetadata) -> Membership | None:
    """What a pod says."""
    if names.PLUGINS_NAME not in meta.labels:
        return None
    sheet = FieldReader(meta.labels, meta.labels_path)
    key = PodGroupKey(design=Flavor.SCHEDULER_PLUGINS, namespace=meta.namespace, name=sheet.name(names.PLUGINS_NAME))
    return Membership(format=Format.SCHEDULER_PLUGINS, key=key, problems=tuple(sheet.problems))


def plugins_spec(pod_group: Json) -> tuple[GroupSpec, tuple[FieldError, ...]]:
    """What a PodGroup says, and what is wrong with that. Koordinator's PodGroup has the same spec."""
    sheet = FieldReader(as_map(pod_group.get("spec")), "spec")
    seconds = sheet.integer("scheduleTimeoutSeconds")
    said = GroupSpec(
        minimum=sheet.integer("minMember", required=True),
        wait=None if seconds is None else Fraction(seconds),
        resources=sheet.quantities("minResources"),
    )
    return said, tuple(sheet.problems)
