"""The status of a PodGroup as its kind has it, and what of it is to be written (G5).

Fields that a CRD does not have are left out. What we add goes to a condition, and where there is none to an annotation.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import GroupStatus

CONDITIONS: Final = "conditions"

_SEED: Final = ("phase", "occupiedBy", "running", "succeeded", "failed", "scheduleStartTime")
STATUS_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        names.KEP24_GROUP: ("admitted", "running", "succeeded", "failed"),
        names.PLUGINS_GROUP: _SEED,
        names.SIGS_GROUP: _SEED,
    }
)
"""Of each design's own type; what its CRD has of them is what counts."""
_SCHEDULED: Final = "scheduled"
"""Not in that type, but in some CRDs of it: how many pods are bound."""


def crd_status_fields(crd: Json) -> tuple[str, ...]:
    """The fields of the status in a CRD's schema; () without a status subresource."""
    spec = as_map(crd.get("spec"))
    for each in as_list(spec.get("versions")):
        if nested(each, "name") != names.POD_GROUP_VERSION or nested(each, "subresources", "status") is None:
            continue
        return tuple(sorted(as_map(nested(each, "schema", "openAPIV3Schema", "properties", "status", "properties"))))
    return ()


def desired_status(report: GroupStatus, api: str, has: Collection[str], status: Mapping[str, Any], now: float) -> Json:
    """The status of the fields that the CRD has; conditions of others in `status` stay."""
    known = {*STATUS_FIELDS[api], _SCHEDULED}
    said = {key: value for key, value in _values(report).items() if key in known and key in has}
    if CONDITIONS in has:
        others = [it for it in as_list(status.get(CONDITIONS)) if nested(it, "type") != names.POD_GROUP_CONDITION]
        said[CONDITIONS] = [*others, _condition(report, group_condition(status), now)]
    return said


def state_text(report: GroupStatus) -> str:
    """The status as one line, for an annotation."""
    return f"{report.phase}: {report.reason}: {report.message}"


def published_reason(seen: GroupSnapshot) -> GroupReason | None:
    """What the controller has written about a group: into its status, or into the annotation."""
    condition = group_condition(seen.pod_group_status)
    if condition:
        return GroupReason(reason=str(condition.get("reason", "")), message=str(condition.get("message", "")))
    parts = seen.state.split(": ", 2)
    return GroupReason(reason=parts[1], message=parts[2]) if len(parts) == 3 else None


def progress_only(said: Json, status: Mapping[str, Any]) -> bool:
    """Whether only counts and messages have changed, neither phase nor reason."""
    now, before = _status_and_reason(said), _status_and_reason(status)
    return now == before and said.get("phase") == status.get("phase")


def _values(report: GroupStatus) -> Json:
    counts, record = report.counts, report.record
    started = record.at if record is not None and record.stage is not AdmissionState.CLOSED else None
    return {
        "phase": str(report.phase),
        "admitted": report.admitted,
        "occupiedBy": report.occupied_by or None,
        _SCHEDULED: counts.bound,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "scheduleStartTime": None if started is None else _date(started),
    }


def _condition(report: GroupStatus, before: Mapping[str, Any], now: float) -> Json:
    record = report.record
    satisfied = record is not None and record.stage is AdmissionState.OPEN and record.satisfied is not None
    status = "True" if satisfied else "False"
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": names.POD_GROUP_CONDITION,
        "status": status,
        "reason": report.reason,
        "message": report.message,
        "lastTransitionTime": since or _date(now),
    }


def group_condition(status: Mapping[str, Any]) -> Json:
    """Our condition in a status; {} if there is none."""
    return next(
        (as_map(it) for it in as_list(status.get(CONDITIONS)) if nested(it, "type") == names.POD_GROUP_CONDITION), {}
    )


def _status_and_reason(status: Mapping[str, Any]) -> tuple[Any, Any]:
    found = group_condition(status)
    return found.get("status"), found.get("reason")


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
