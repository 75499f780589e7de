"""Groups as JSON or YAML, for programs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jobset_gate.podgroups.status import GroupStatus

Json = dict[str, Any]


def pod_groups_json(reports: Sequence[GroupStatus]) -> Json:
    """All of them in one list."""
    return {"kind": "GroupList", "items": [pod_group_json(it) for it in reports]}


def pod_group_json(report: GroupStatus) -> Json:
    """One of them."""
    counts, record = report.counts, report.record
    return {
        "namespace": report.key.namespace,
        "name": report.key.name,
        "design": str(report.key.design),
        "ways": [str(it) for it in report.formats],
        "label": report.label,
        "podGroup": None if report.pod_group is None else f"{report.pod_group.api}/{report.pod_group.name}",
        "created": _date(report.created),
        "phase": str(report.phase),
        "reason": report.reason,
        "message": report.message,
        "minimum": counts.minimum,
        "members": counts.present,
        "bound": counts.bound,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "generation": report.snapshot.generation,
        "opened": None if record is None else _date(record.at),
        "satisfied": None if record is None or record.satisfied is None else _date(record.satisfied),
        "rolledBack": 0 if record is None else record.rolled_back,
        "gangGroup": list(report.snapshot.group.gangs),
        "ungated": list(report.ungated),
        "moved": list(report.moved),
        "statusManagedBy": list(report.managers),
    }


def _date(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None
