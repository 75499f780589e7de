"""Explanations and pod groups as JSON or YAML, for programs. Fields are added here, never renamed."""

from collections.abc import Sequence

from jobset_gate.cli.manifests.yaml_text import to_json, to_yaml
from jobset_gate.explain.model import Explanation
from jobset_gate.explain.text import explanation_json, time_or_none
from jobset_gate.objects.unstructured import Json
from jobset_gate.podgroups.status import GroupStatus


def document_text(form: str, *documents: Json) -> str:
    """As `-o` asks for them: `json` or `yaml`."""
    return to_json(documents) if form == "json" else to_yaml(documents)


def explanations_json(explanations: Sequence[Explanation], *, several: bool) -> Json:
    """One as it is; a list where several were asked for, or found (a pod may be in two gangs)."""
    if len(explanations) == 1 and not several:
        return explanation_json(explanations[0])
    return {"kind": "ExplanationList", "items": [explanation_json(it) for it in explanations]}


def pod_group_json(status: GroupStatus) -> Json:
    counts, record = status.counts, status.record
    return {
        "namespace": status.key.namespace,
        "name": status.key.name,
        "design": str(status.key.flavor),
        "ways": [str(it) for it in status.formats],
        "label": status.label,
        "podGroup": None if status.pod_group is None else f"{status.pod_group.api}/{status.pod_group.name}",
        "created": time_or_none(status.created or None),
        "phase": str(status.phase),
        "reason": status.reason,
        "message": status.message,
        "minimum": counts.minimum,
        "members": counts.present,
        "bound": counts.bound,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "generation": status.snapshot.generation,
        "opened": None if record is None else time_or_none(record.at or None),
        "satisfied": None if record is None else time_or_none(record.satisfied or None),
        "rolledBack": 0 if record is None else record.rolled_back,
        "gangGroup": list(status.snapshot.group.gangs),
        "ungated": [it.name for it in status.ungated],
        "moved": [it.name for it in status.moved],
        "statusManagedBy": list(status.managers),
    }
