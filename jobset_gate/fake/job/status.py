"""A Job's status: counts and conditions as the real controller writes them."""

from __future__ import annotations

from jobset_gate.fake.job.pod_tracker import PodTracker
from jobset_gate.fake.job.pods import indexed
from jobset_gate.fake.objects import FakeObject, Json, format_indexes, holds


def finished(job: FakeObject) -> bool:
    conditions = job.status.get("conditions")
    return holds(conditions, "Complete") or holds(conditions, "Failed")


def count(job: FakeObject, ledger: PodTracker) -> None:
    """Numbers that are zero are left out, but `ready` and `terminating`."""
    active = ledger.active
    counts = {
        "active": len(active) + len(ledger.created),
        "succeeded": ledger.succeeded,
        "failed": ledger.failed,
    }
    for name, number in counts.items():
        _set(job.status, name, number or None)
    job.status["ready"] = sum(pod.ready for pod in active)
    job.status["terminating"] = ledger.terminating
    job.status.setdefault("uncountedTerminatedPods", {})
    if indexed(job):
        _set(job.status, "completedIndexes", format_indexes(ledger.completed) or None)


def fail(job: FakeObject, ledger: PodTracker, reason: str, message: str, now: str) -> None:
    """First the target, and Failed only when the last pod has ended."""
    condition(job, "FailureTarget", "True", reason, message, now)
    if not ledger.active and not ledger.created and not ledger.terminating:
        condition(job, "Failed", "True", reason, message, now)


def complete(job: FakeObject, ledger: PodTracker, now: str) -> None:
    """First the criteria, and Complete only when the last pod has ended."""
    reason, message = "CompletionsReached", "Reached expected number of succeeded pods"
    condition(job, "SuccessCriteriaMet", "True", reason, message, now)
    if not ledger.active and not ledger.created and not ledger.terminating:
        condition(job, "Complete", "True", reason, message, now)
        job.status.setdefault("completionTime", now)


def suspend(job: FakeObject, now: str) -> None:
    condition(job, "Suspended", "True", "JobSuspended", "Job suspended", now)


def start(job: FakeObject, now: str) -> None:
    """Set the start time, anew after a suspend."""
    if holds(job.status.get("conditions"), "Suspended"):
        condition(job, "Suspended", "False", "JobResumed", "Job resumed", now)
        job.status["startTime"] = now
    job.status.setdefault("startTime", now)


def condition(job: FakeObject, kind: str, status: str, reason: str, message: str, now: str) -> None:  # noqa: PLR0917
    """The time moves with the status only."""
    conditions: list[Json] = job.status.setdefault("conditions", [])
    found = next((item for item in conditions if item["type"] == kind), None)
    if found is None:
        found = {"type": kind, "lastProbeTime": now}
        conditions.append(found)
    if found.get("status") != status:
        found |= {
            "status": status, "reason": reason, "message": message, "lastProbeTime": now, "lastTransitionTime": now
        }  # fmt: skip


def _set(status: Json, name: str, value: object) -> None:
    if value is None:
        status.pop(name, None)
        return
    status[name] = value
