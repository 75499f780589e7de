"""The way of scheduler-plugins: a label on the pod names a PodGroup with minMember and a time limit (G1)."""

from fractions import Fraction

from jobset_gate import names
from jobset_gate.groups.model import Claim, Design, Key, Meta, Terms, Way
from jobset_gate.groups.values import Sheet
from jobset_gate.template import Json, mapping
from jobset_gate.violation import Violation


def claim(meta: Meta) -> Claim | None:
    """What a pod says."""
    if names.PLUGINS_NAME not in meta.labels:
        return None
    sheet = Sheet(meta.labels, meta.labels_path)
    key = Key(design=Design.SCHEDULER_PLUGINS, namespace=meta.namespace, name=sheet.name(names.PLUGINS_NAME))
    return Claim(way=Way.SCHEDULER_PLUGINS, key=key, problems=tuple(sheet.problems))


def terms(pod_group: Json) -> tuple[Terms, tuple[Violation, ...]]:
    """What a PodGroup says, and what is wrong with that. Koordinator's PodGroup has the same spec."""
    sheet = Sheet(mapping(pod_group.get("spec")), "spec")
    seconds = sheet.number("scheduleTimeoutSeconds")
    said = Terms(
        minimum=sheet.number("minMember", required=True),
        wait=None if seconds is None else Fraction(seconds),
        resources=sheet.amounts("minResources"),
    )
    return said, tuple(sheet.problems)
