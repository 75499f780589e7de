"""What was read of groups, told as the controller would tell it: a report for each, by the same rules."""

import time

from jobset_gate import names
from jobset_gate.cli.groups.reading import Reading
from jobset_gate.groups import kind_status, quota
from jobset_gate.groups.candidates import Check, Hold, Open
from jobset_gate.groups.outlook import outlook
from jobset_gate.groups.report import Report, report
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.standing import Standing
from jobset_gate.settings import Groups


def reports(reading: Reading, settings: Groups, now: float | None = None) -> list[Report]:
    """All groups that were read, by namespace and name."""
    moment = time.time() if now is None else now
    index = reading.index
    seen = [it for key in index.keys() if (it := index.observe(key)) is not None]  # noqa: SIM118 - no mapping
    told = outlook(
        seen,
        index.rooms(),
        check=Check.OFF if reading.blind else settings.capacity_check,
        starvation_seconds=settings.starvation_seconds,
        now=moment,
        across_namespaces=settings.across_namespaces,
        short_of_quota=lambda it: quota.lacks(it, index.quotas(it.group.key.namespace)),
        bound=index.bound,
    )
    found = [report(it, moment, _why(it, told.get(it.group.key), reading)) for it in seen]
    return sorted(found, key=lambda it: (it.key.namespace, it.key.name, it.key.design))


def _why(seen: GroupSeen, own: Open | Hold | Standing | None, reading: Reading) -> Open | Hold | Standing | None:
    """Where our own view does not reach, the controller's last word."""
    said = published(seen)
    if said is None:
        return own
    unsure = isinstance(own, Open) and reading.blind
    # Who makes the pods, and what their scheduler can do, is not asked here.
    gathering = isinstance(own, Standing) and own.reason == names.REASON_GATHERING
    beyond = gathering and said.reason == names.REASON_CANNOT_GATHER
    return said if unsure or beyond or said.reason == names.REASON_NATIVE_UNAVAILABLE else own


def published(seen: GroupSeen) -> Standing | None:
    """What the controller has written about a group."""
    condition = kind_status.ours(seen.kind_status)
    if condition:
        return Standing(reason=str(condition.get("reason", "")), message=str(condition.get("message", "")))
    parts = seen.annotations.get(names.GANG_STATE, "").split(": ", 2)
    return Standing(reason=parts[1], message=parts[2]) if len(parts) == 3 else None
