"""A JobSet's Jobs sorted and counted, its startup, success and restart policies, and the conditions they set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from jobset_gate import names
from jobset_gate.fake.objects import FakeObject, Json, holds, stamp

_EXCLUSIVE = {
    "StartupPolicyInProgress": "StartupPolicyCompleted",
    "StartupPolicyCompleted": "StartupPolicyInProgress",
}


# --- Jobs -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Children:
    """The Jobs that a JobSet owns. `previous` are of an earlier restart and being deleted."""

    active: list[FakeObject] = field(default_factory=list)
    successful: list[FakeObject] = field(default_factory=list)
    failed: list[FakeObject] = field(default_factory=list)
    previous: list[FakeObject] = field(default_factory=list)

    def __iter__(self) -> Iterator[FakeObject]:
        yield from self.active
        yield from self.successful
        yield from self.failed
        yield from self.previous

    @classmethod
    def of(cls, jobset: FakeObject, jobs: Iterable[FakeObject]) -> Children:
        """A Job whose restart label is behind the JobSet's status is of an earlier run."""
        children = cls()
        for job in jobs:
            conditions = job.status.get("conditions")
            if int(job.metadata.labels[names.JS_RESTART_ATTEMPT]) < jobset.status.get("restarts", 0):
                children.previous.append(job)
            elif holds(conditions, "Failed"):
                children.failed.append(job)
            elif holds(conditions, "Complete"):
                children.successful.append(job)
            else:
                children.active.append(job)
        return children


def replicated_job_of(job: FakeObject) -> str:
    return job.metadata.labels.get(names.JS_REPLICATED_JOB, "")


def replicas(replicated_job: Json) -> int:
    return int(replicated_job.get("replicas", 1))


def statuses(jobset: FakeObject, children: Children) -> list[Json]:
    """status.replicatedJobsStatus: how many Jobs of each replicatedJob are ready, active and so on."""
    return [_status(job["name"], children) for job in jobset.spec["replicatedJobs"]]


def _status(name: str, children: Children) -> Json:
    active = [job for job in children.active if replicated_job_of(job) == name]
    return {
        "name": name,
        "ready": sum(map(_ready, active)),
        "succeeded": sum(replicated_job_of(job) == name for job in children.successful),
        "failed": sum(replicated_job_of(job) == name for job in children.failed),
        "active": sum(job.status.get("active", 0) > 0 for job in active),
        "suspended": sum(bool(job.spec.get("suspend")) for job in active),
    }


def _ready(job: FakeObject) -> bool:
    wanted = job.spec.get("parallelism", 1)
    completions = job.spec.get("completions")
    if completions is not None:
        wanted = min(wanted, completions)
    return bool(job.status.get("succeeded", 0) + job.status.get("ready", 0) >= wanted)


# --- Conditions -------------------------------------------------------------------------------------------------------


class StatusDraft:
    """A JobSet's status to be written at the end of a reconcile, if anything in it has changed."""

    def __init__(self, status: Json, now: float) -> None:
        self.status = status
        self.changed = False
        self._now = now

    def put(self, field_name: str, value: object) -> None:
        if self.status.get(field_name) != value:
            self.status[field_name] = value
            self.changed = True

    def condition(self, kind: str, status: str, reason: str, message: str) -> None:
        """A condition that is False is not added where there is none; the time changes with the status only."""
        conditions: list[Json] = self.status.setdefault("conditions", [])
        wanted = {"type": kind, "status": status, "reason": reason, "message": message}
        if status == "True":
            for other in conditions:
                if other["type"] == _EXCLUSIVE.get(kind) and other["status"] == "True":
                    other["status"] = "False"
                    self.changed = True
        found = next((condition for condition in conditions if condition["type"] == kind), None)
        if found is None:
            if status == "True":
                conditions.append({**wanted, "lastTransitionTime": stamp(self._now)})
                self.changed = True
        elif {key: found.get(key) for key in wanted} != wanted:
            if found["status"] != status:
                found["lastTransitionTime"] = stamp(self._now)
            found.update(wanted)
            self.changed = True

    def restart_ended(self, reason: str, message: str) -> None:
        self.condition("RestartingJobSet", "False", reason, message)

    def suspended(self) -> None:
        message = "the jobs of the jobset are suspended"
        self.condition("Suspended", "True", "SuspendedJobs", message)
        self.restart_ended("JobSetSuspended", message)

    def resumed(self) -> None:
        self.condition("Suspended", "False", "ResumeJobs", "the jobs of the jobset may run")

    def terminal(self, kind: str, reason: str, message: str) -> None:
        """Completed or Failed."""
        self.condition(kind, "True", reason, message)
        self.restart_ended(f"JobSet{kind}", message)
        self.put("terminalState", kind)

    def starting_in_order(self) -> None:
        self.condition("StartupPolicyInProgress", "True", "InOrderStartupPolicyInProgress", "starting jobs in order")

    def started_in_order(self) -> None:
        self.condition("StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted", "all jobs were started")


# --- Policies ---------------------------------------------------------------------------------------------------------


def in_order(jobset: FakeObject) -> bool:
    return bool((jobset.spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder")


def all_started(replicated_job: Json, status: Json) -> bool:
    """A Job that failed has started, too."""
    return bool(replicas(replicated_job) == status["ready"] + status["succeeded"] + status["failed"])


def may_start(replicated_job: Json, jobset: FakeObject, by_name: dict[str, Json]) -> bool:
    """Whether all its dependencies have the status that dependsOn demands. by_name: statuses."""
    jobs = {job["name"]: job for job in jobset.spec["replicatedJobs"]}
    for needed in replicated_job.get("dependsOn") or ():
        other, status = jobs[needed["name"]], by_name[needed["name"]]
        if needed["status"] == "Complete" and status["succeeded"] != replicas(other):
            return False
        if needed["status"] == "Ready" and not all_started(other, status):
            return False
    return True


def all_ready(jobset: FakeObject, by_name: dict[str, Json]) -> bool:
    wanted = sum(map(replicas, jobset.spec["replicatedJobs"]))
    return bool(wanted == sum(status["ready"] + status["succeeded"] for status in by_name.values()))


def succeeded(jobset: FakeObject, children: Children) -> bool:
    policy = jobset.spec.get("successPolicy") or {"operator": "All"}
    targets = policy.get("targetReplicatedJobs") or [job["name"] for job in jobset.spec["replicatedJobs"]]
    done = sum(replicated_job_of(job) in targets for job in children.successful)
    if policy["operator"] == "Any":
        return done >= 1
    return done >= sum(replicas(job) for job in jobset.spec["replicatedJobs"] if job["name"] in targets)


def fail_or_restart(jobset: FakeObject, children: Children, draft: StatusDraft) -> None:
    """Fail the JobSet, or restart all its Jobs while maxRestarts permits. Rules of the failurePolicy are not played."""
    first = min(job.metadata.name for job in children.failed)
    policy = jobset.spec.get("failurePolicy")
    restarts = jobset.status.get("restarts", 0)
    if policy is None:
        draft.terminal("Failed", "FailedJobs", f"a job failed and no policy says otherwise: {first}")
    elif restarts >= policy.get("maxRestarts", 0):
        draft.terminal("Failed", "ReachedMaxRestarts", f"no restart is left after the failure of {first}")
    else:
        draft.put("restarts", restarts + 1)
        draft.put("restartsCountTowardsMax", restarts + 1)
        message = f"all jobs are recreated after the failure of {first}"
        draft.condition("RestartingJobSet", "True", "DefaultFailurePolicy", message)
