"""KEP-24's way: an annotation on the pod names a PodGroup of the same namespace, whoever made the pod (G1)."""

from jobset_gate import names
from jobset_gate.groups.model import Claim, Design, Key, Meta, Terms, Way
from jobset_gate.groups.values import Sheet
from jobset_gate.template import Json, mapping
from jobset_gate.violation import Violation


def claim(meta: Meta) -> Claim | None:
    """What a pod says; an empty name is a group that can never be, so that the pod is told and not let through."""
    if names.KEP24_NAME not in meta.annotations:
        return None
    sheet = Sheet(meta.annotations, meta.annotations_path)
    key = Key(design=Design.KEP_24, namespace=meta.namespace, name=sheet.name(names.KEP24_NAME))
    return Claim(way=Way.KEP_24, key=key, problems=tuple(sheet.problems))


def terms(pod_group: Json) -> tuple[Terms, tuple[Violation, ...]]:
    """What a PodGroup says, and what is wrong with that."""
    sheet = Sheet(mapping(pod_group.get("spec")), "spec")
    said = Terms(minimum=sheet.number("minMembers", required=True), resources=sheet.amounts("totalResources"))
    return said, tuple(sheet.problems)
