"""A JobSet's Jobs sorted into active, successful, failed and those of an earlier run, and counted per replicatedJob."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from jobset_gate import names
from jobset_gate.fake.objects import FakeObject, Json, holds


@dataclass(slots=True)
class Children:
    """The Jobs that a JobSet owns. `previous` are of an earlier restart and on their way out."""

    active: list[FakeObject] = field(default_factory=list)
    successful: list[FakeObject] = field(default_factory=list)
    failed: list[FakeObject] = field(default_factory=list)
    previous: list[FakeObject] = field(default_factory=list)

    def __iter__(self) -> Iterator[FakeObject]:
        yield from self.active
        yield from self.successful
        yield from self.failed
        yield from self.previous


def sort(jobset: FakeObject, jobs: Iterable[FakeObject]) -> Children:
    """Jobs whose restart labels are behind the JobSet's status are of an earlier run."""
    children = Children()
    for job in jobs:
        if _outdated(jobset, job):
            children.previous.append(job)
        elif finished(job, "Failed"):
            children.failed.append(job)
        elif finished(job, "Complete"):
            children.successful.append(job)
        else:
            children.active.append(job)
    return children


def finished(job: FakeObject, kind: str) -> bool:
    return holds(job.status.get("conditions"), kind)


def replicated_job_of(job: FakeObject) -> str:
    return job.metadata.labels.get(names.JS_REPLICATED_JOB, "")


def job_restarts(jobset: FakeObject, name: str, replicas: int, field_name: str = "jobRestarts") -> list[int]:
    """Restarts of the single Jobs of a replicatedJob, zeros where the status says nothing."""
    for status in jobset.status.get("replicatedJobsStatus", ()):
        if status["name"] == name and status.get(field_name):
            return list(status[field_name])
    return [0] * replicas


def statuses(jobset: FakeObject, children: Children) -> list[Json]:
    """status.replicatedJobsStatus: how many Jobs of each replicatedJob are ready, active and so on."""
    before = {status["name"]: status for status in jobset.status.get("replicatedJobsStatus", ())}
    return [_status(job["name"], children, before.get(job["name"], {})) for job in jobset.spec["replicatedJobs"]]


def _status(name: str, children: Children, before: Json) -> Json:
    active = [job for job in children.active if replicated_job_of(job) == name]
    counted = {
        "name": name,
        "ready": sum(map(_ready, active)),
        "succeeded": sum(replicated_job_of(job) == name for job in children.successful),
        "failed": sum(replicated_job_of(job) == name for job in children.failed),
        "active": sum(job.status.get("active", 0) > 0 for job in active),
        "suspended": sum(bool(job.spec.get("suspend")) for job in active),
    }
    kept = {key: before[key] for key in ("jobRestarts", "jobRestartsCountTowardsMax") if key in before}
    return counted | kept


def _ready(job: FakeObject) -> bool:
    wanted = job.spec.get("parallelism", 1)
    completions = job.spec.get("completions")
    if completions is not None:
        wanted = min(wanted, completions)
    return bool(job.status.get("succeeded", 0) + job.status.get("ready", 0) >= wanted)


def _outdated(jobset: FakeObject, job: FakeObject) -> bool:
    labels = job.metadata.labels
    if int(labels[names.JS_RESTART_ATTEMPT]) < jobset.status.get("restarts", 0):
        return True
    restarts = job_restarts(jobset, replicated_job_of(job), 0)
    index = int(labels[names.JS_JOB_INDEX])
    return index < len(restarts) and int(labels.get(names.JS_JOB_RESTART_ATTEMPT, 0)) < restarts[index]
