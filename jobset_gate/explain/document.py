"""An explanation as JSON, the same for the command line and the status page. Fields are added, never renamed."""

from typing import Any

from jobset_gate.barrier.model import MissingByReason
from jobset_gate.explain.model import Explanation
from jobset_gate.explain.text import format_time

Json = dict[str, Any]


def explanation_json(it: Explanation) -> Json:
    return {
        "kind": "Explanation",
        "of": it.kind,
        "source": it.source or None,
        "namespace": it.namespace,
        "name": it.name,
        "owner": None
        if it.owner is None
        else {"apiVersion": it.owner.api_version, "kind": it.owner.kind, "name": it.owner.name},
        "attempt": it.attempt,
        "state": str(it.state),
        "message": it.message,
        "at": time_or_none(it.now),
        "expected": it.expected,
        "started": it.started,
        "passed": it.passed,
        "replicatedJobs": [
            {"name": part.name, "started": part.started, "expected": part.expected} for part in it.parts
        ],
        "missing": [_missing(one) for one in it.missing],
        "differing": list(it.differing),
        "timeoutSeconds": it.timeout,
        "waitingSince": time_or_none(it.waiting_since),
        "secondsLeft": None if it.left is None else round(it.left, 1),
        "atTimeout": it.afterwards or None,
        "decidedAt": time_or_none(it.decided),
        "pod": None
        if it.subject is None
        else {"name": it.subject.name, "slot": it.subject.slot or None, "message": it.subject.message},
        "controller": None
        if it.controller is None
        else {"leads": it.controller.leads, "message": it.controller.message},
        "unknown": list(it.unknown),
        "commands": list(it.commands),
    }


def _missing(one: MissingByReason) -> Json:
    return {
        "reason": one.reason,
        "message": one.message,
        "count": one.count,
        "first": list(one.slots),
        "since": time_or_none(one.oldest_created_at),
        "command": one.command or None,
    }


def time_or_none(seconds: float | None) -> str | None:
    """In UTC; null where it is not known or has not come."""
    return None if seconds is None else format_time(seconds)
