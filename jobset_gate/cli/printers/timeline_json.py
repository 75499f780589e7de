"""A timeline as JSON or YAML, for programs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jobset_gate.timeline.model import Placement, PodTimeline, Step, Timeline
from jobset_gate.timeline.summary import (
    IdleDevices,
    StepSummary,
    start_skew,
    step_summaries,
    step_summary,
    total_cost,
)

Json = dict[str, Any]


def timeline_json(it: Timeline, idle: Sequence[IdleDevices]) -> Json:
    """All of it. A time that is null was not reached yet, unless `unknown` names it."""
    mains = start_skew(it)
    return {
        "kind": "Timeline",
        "of": it.kind,
        "source": None if it.source is None else it.source.name,
        "namespace": it.namespace,
        "name": it.name,
        "restartAttempt": it.attempt,
        "now": _date(it.now),
        "created": _date(it.created),
        "firstPodCreated": _date(it.origin),
        "waitingSince": _date(it.waiting_since),
        "verdict": it.verdict or None,
        "opened": _date(it.opened),
        "timedOut": _date(it.timed_out),
        "message": it.decision or None,
        "expectedPods": it.expected,
        "startedPods": it.started,
        "resolutionSeconds": 1,
        "steps": [_sum(each) for each in step_summaries(it)],
        "skewSeconds": {
            "barriers": step_summary(it.pods, Step.STARTED).spread,
            "mains": mains.spread,
            "mainsComplete": mains.known > 0 and not mains.pending and not mains.lost,
            "openedToLastMain": None if it.opened is None or mains.last is None else mains.last - it.opened,
        },
        "idle": [_idle(each) for each in idle],
        "cost": total_cost(idle),
        "group": None if it.placing is None else _placing(it, it.placing),
        "pods": [_pod(one, it.now) for one in it.pods],
        "replacements": [_pod(one, it.now) for one in it.replacements],
        "notes": list(it.notes),
    }


def _placing(it: Timeline, group: Placement) -> Json:
    return {
        "generation": group.generation or None,
        "minimum": group.minimum,
        "gathered": _date(group.gathered),
        "minimumBound": _date(group.satisfied),
        "minimumRunning": _date(group.working),
        "placementSkewSeconds": step_summary(it.pods, Step.SCHEDULED).spread,
    }


def _sum(it: StepSummary) -> Json:
    return {
        "step": str(it.step),
        "known": it.known,
        "unknown": it.lost,
        "pending": it.pending,
        "first": _date(it.first),
        "median": _date(it.median),
        "last": _date(it.last),
    }


def _idle(it: IdleDevices) -> Json:
    return {
        "resource": it.resource,
        "devices": it.devices,
        "deviceSeconds": round(it.seconds, 3),
        "podsUnknown": it.unknown,
        "cost": it.cost,
    }


def _pod(it: PodTimeline, now: float) -> Json:
    held = it.held_seconds(now)
    return {
        "name": it.name,
        "replicatedJob": it.replicated_job,
        "jobIndex": it.job_index,
        "completionIndex": it.index,
        "node": it.node or None,
        "phase": it.phase,
        "times": {str(step): _date(it.times.get(step)) for step in it.path.steps},
        "unknown": [str(step) for step in it.path.steps if step in it.unknown_steps],
        "gaveUp": _date(it.gave_up),
        "ended": _date(it.ended),
        "heldSeconds": None if held is None else round(held, 3),
    }


def _date(seconds: float | None) -> str | None:
    """With milliseconds only where they are known."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    text = moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
    return text.replace("+00:00", "Z")
