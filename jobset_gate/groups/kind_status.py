"""The status of a PodGroup as its kind has it, and what of it is to be written (G5).

Fields that a CRD does not have are left out. What we add goes to a condition, and where there is none to an annotation.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.groups.record import Stage
from jobset_gate.groups.report import Report
from jobset_gate.template import Json, dig, items, mapping

CONDITIONS: Final = "conditions"

_SEED: Final = ("phase", "occupiedBy", "running", "succeeded", "failed", "scheduleStartTime")
FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        names.KEP24_GROUP: ("admitted", "running", "succeeded", "failed"),
        names.PLUGINS_GROUP: _SEED,
        names.SIGS_GROUP: _SEED,
    }
)
"""Of each design's own type; what its CRD has of them is what counts."""
_SCHEDULED: Final = "scheduled"
"""Not in that type, but in some CRDs of it: how many pods are bound."""


def fields(crd: Json, version: str = names.POD_GROUP_VERSION) -> tuple[str, ...]:
    """The fields of the status in a CRD's schema; () where it has no status that could be written apart."""
    spec = mapping(crd.get("spec"))
    for each in items(spec.get("versions")):
        if dig(each, "name") != version or dig(each, "subresources", "status") is None:
            continue
        return tuple(sorted(mapping(dig(each, "schema", "openAPIV3Schema", "properties", "status", "properties"))))
    return ()


def wanted(report: Report, api: str, has: Collection[str], status: Mapping[str, Any], now: float) -> Json:
    """What the status shall say, of the fields that it has; the other conditions in `status` stay as they are."""
    known = {*FIELDS[api], _SCHEDULED}
    said = {key: value for key, value in _values(report).items() if key in known and key in has}
    if CONDITIONS in has:
        others = [it for it in items(status.get(CONDITIONS)) if dig(it, "type") != names.GANG_CONDITION]
        said[CONDITIONS] = [*others, _condition(report, ours(status), now)]
    return said


def news(said: Json, status: Mapping[str, Any]) -> Json:
    """The part of it that the status does not say yet, as a merge patch; {} if there is nothing to write."""
    return {key: value for key, value in said.items() if status.get(key) != value}


def state(report: Report) -> str:
    """The same in one line, for an annotation."""
    return f"{report.phase}: {report.reason}: {report.message}"


def progress_only(said: Json, status: Mapping[str, Any]) -> bool:
    """Whether only numbers and words have changed, and neither the phase nor the reason."""
    now, before = _words(said), _words(status)
    return now == before and said.get("phase") == status.get("phase")


def _values(report: Report) -> Json:
    counts, record = report.counts, report.record
    started = record.at if record is not None and record.stage is not Stage.CLOSED else None
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


def _condition(report: Report, before: Mapping[str, Any], now: float) -> Json:
    record = report.record
    satisfied = record is not None and record.stage is Stage.OPEN and record.satisfied is not None
    status = "True" if satisfied else "False"
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": names.GANG_CONDITION,
        "status": status,
        "reason": report.reason,
        "message": report.message,
        "lastTransitionTime": since or _date(now),
    }


def ours(status: Mapping[str, Any]) -> Json:
    """Our condition in a status; {} where there is none."""
    return next((mapping(it) for it in items(status.get(CONDITIONS)) if dig(it, "type") == names.GANG_CONDITION), {})


def _words(status: Mapping[str, Any]) -> tuple[Any, Any]:
    found = ours(status)
    return found.get("status"), found.get("reason")


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
