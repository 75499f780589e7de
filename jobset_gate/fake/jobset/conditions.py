"""Conditions in a JobSet's status: set as the real controller sets them, those of others left alone."""

from __future__ import annotations

from jobset_gate.fake.objects import Json, stamp

_EXCLUSIVE = {
    "StartupPolicyInProgress": "StartupPolicyCompleted",
    "StartupPolicyCompleted": "StartupPolicyInProgress",
}


class StatusDraft:
    """A JobSet's status to be written at the end of a reconcile, if anything in it has changed."""

    def __init__(self, status: Json, now: float) -> None:
        self.status = status
        self.changed = False
        self._now = now

    def put(self, field: str, value: object) -> None:
        if self.status.get(field) != value:
            self.status[field] = value
            self.changed = True

    def condition(self, kind: str, status: str, reason: str, message: str) -> None:
        """A condition that is False is not added where there is none; the time moves with the status only."""
        conditions: list[Json] = self.status.setdefault("conditions", [])
        wanted = {"type": kind, "status": status, "reason": reason, "message": message}
        if status == "True":
            self._retract(conditions, _EXCLUSIVE.get(kind))
        found = next((condition for condition in conditions if condition["type"] == kind), None)
        if found is None:
            if status == "True":
                conditions.append({**wanted, "lastTransitionTime": stamp(self._now)})
                self.changed = True
            return
        if {key: found.get(key) for key in wanted} == wanted:
            return
        if found["status"] != status:
            found["lastTransitionTime"] = stamp(self._now)
        found.update(wanted)
        self.changed = True

    def _retract(self, conditions: list[Json], kind: str | None) -> None:
        for condition in conditions:
            if condition["type"] == kind and condition["status"] == "True":
                condition["status"] = "False"
                self.changed = True


def suspended(draft: StatusDraft) -> None:
    message = "the jobs of the jobset are suspended"
    draft.condition("Suspended", "True", "SuspendedJobs", message)
    restarting_over(draft, "JobSetSuspended", message)


def resumed(draft: StatusDraft) -> None:
    draft.condition("Suspended", "False", "ResumeJobs", "the jobs of the jobset may run")


def completed(draft: StatusDraft) -> None:
    message = "the success policy is satisfied"
    draft.condition("Completed", "True", "AllJobsCompleted", message)
    restarting_over(draft, "JobSetCompleted", message)
    draft.put("terminalState", "Completed")


def failed(draft: StatusDraft, reason: str, message: str) -> None:
    draft.condition("Failed", "True", reason, message)
    restarting_over(draft, "JobSetFailed", message)
    draft.put("terminalState", "Failed")


def starting_in_order(draft: StatusDraft) -> None:
    draft.condition("StartupPolicyInProgress", "True", "InOrderStartupPolicyInProgress", "starting jobs one by one")


def started_in_order(draft: StatusDraft) -> None:
    draft.condition("StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted", "all jobs were started in order")


def restarting(draft: StatusDraft, reason: str, message: str) -> None:
    draft.condition("RestartingJobSet", "True", reason, message)


def restarting_over(draft: StatusDraft, reason: str, message: str) -> None:
    draft.condition("RestartingJobSet", "False", reason, message)
