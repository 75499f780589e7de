"""KEP-24's way: an annotation on the pod names a PodGroup of the same namespace, whoever made the pod (G1)."""

from jobset_gate import names
from jobset_gate.objects.field_error import FieldError
from jobset_gate.objects.unstructured import Json, as_map
from jobset_gate.podgroups.fields import FieldReader
from jobset_gate.podgroups.model import Flavor, Format, GroupSpec, Membership, PodGroupKey, RawMetadata


def kep24_membership(meta: RawMetadata) -> Membership | None:
    """What a pod says; an empty name is a group that can never be, so that the pod is told and not let through."""
    if names.KEP24_NAME not in meta.annotations:
        return None
    sheet = FieldReader(meta.annotations, meta.annotations_path)
    key = PodGroupKey(design=Flavor.KEP_24, namespace=meta.namespace, name=sheet.name(names.KEP24_NAME))
    return Membership(format=Format.KEP_24, key=key, problems=tuple(sheet.problems))


def kep24_spec(pod_group: Json) -> tuple[GroupSpec, tuple[FieldError, ...]]:
    """What a PodGroup says, and what is wrong with that."""
    sheet = FieldReader(as_map(pod_group.get("spec")), "spec")
    said = GroupSpec(minimum=sheet.integer("minMembers", required=True), resources=sheet.quantities("totalResources"))
    return said, tuple(sheet.problems)
