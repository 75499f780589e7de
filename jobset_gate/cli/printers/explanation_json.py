"""Explanations as JSON or YAML, for programs. Fields are added here, never renamed: scripts hold on to them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jobset_gate.explain.model import Explanation, MissingByReason

Json = dict[str, Any]


def explanation_json(it: Explanation) -> Json:
    """One of them."""
    return {
        "kind": "Explanation",
        "of": it.kind,
        "namespace": it.namespace,
        "name": it.name,
        "state": str(it.state),
        "message": it.message,
        "at": _date(it.now),
        "expected": it.expected,
        "started": it.started,
        "passed": it.passed,
        "replicatedJobs": [
            {"name": part.name, "started": part.started, "expected": part.expected} for part in it.parts
        ],
        "missing": [_lack(one) for one in it.lacks],
        "timeoutSeconds": it.timeout,
        "waitingSince": _date(it.since),
        "secondsLeft": None if it.left is None else round(it.left, 1),
        "atTimeout": it.afterwards or None,
        "decidedAt": _date(it.decided),
        "pod": None if it.subject is None else _fields(it.subject.name, it.subject.slot, it.subject.told),
        "controller": None if it.controller is None else {"leads": it.controller.leads, "message": it.controller.told},
        "unknown": list(it.unknown),
        "commands": list(it.commands),
    }


def explanations_json(explanations: Sequence[Explanation], *, several: bool) -> Json:
    """One as it is; a list where several were asked for, or found (a pod may be in two gangs)."""
    if len(explanations) == 1 and not several:
        return explanation_json(explanations[0])
    return {"kind": "ExplanationList", "items": [explanation_json(it) for it in explanations]}


def _lack(one: MissingByReason) -> Json:
    return {
        "reason": one.reason,
        "message": one.message,
        "count": one.count,
        "first": list(one.slots),
        "since": _date(one.oldest_created_at),
        "command": one.command or None,
    }


def _fields(name: str, slot: str, told: str) -> Json:
    return {"name": name, "slot": slot or None, "message": told}


def _date(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
