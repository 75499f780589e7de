"""The raw objects of this world: how the cluster writes them, and how to read them without the project's help."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jobset_gate import names
from tests.fakes.memory_api import Json
from tests.stress.world.facts import RawGeneration, alive, barrier, has_ended, indexes, notes_of, targets

JOBSET = "train"
WORKERS = "workers"
LOADERS = "loaders"
TOKEN = "t0ken"  # it opens nothing
STREAM = {"name": names.ENV_STREAM, "value": f"http://gate/v1/gangs/default/{JOBSET}/{TOKEN}"}


@dataclass(frozen=True, slots=True)
class GangShape:
    """A gang: `replicas` Indexed Jobs of `width` pods, and one NonIndexed Job of `loaders` pods if there are any."""

    replicas: int = 1
    width: int = 2
    loaders: int = 0
    timeout: int | None = 30
    releases_on_timeout: bool = False
    pods_restart: bool = False
    """restartPolicy OnFailure: a barrier that failed runs again."""
    source: str = "jobset"
    clears_start: bool = False
    """The Job controller of Kubernetes 1.36: it clears a suspended Job's startTime."""
    of_job: bool = False
    """The owner of a start group's pods is a batch Job: the success of a pod is final."""


@dataclass(frozen=True, slots=True)
class PassedBarrier:
    """A barrier obeyed a verdict."""

    pod: str
    life: RawGeneration
    text: str


def stamp(moment: float) -> str:
    """RFC 3339, as the API has times."""
    return datetime.fromtimestamp(int(moment), UTC).isoformat().replace("+00:00", "Z")


def holds(pod: Json) -> bool:
    """Its barrier runs, as far as reported."""
    return alive(pod) and "running" in barrier(pod)


def life_of_jobset(jobset: Json) -> RawGeneration:
    """The generation that new pods of its templates will be of."""
    return RawGeneration(jobset["metadata"]["uid"], attempt_of(jobset), epoch_of(jobset))


def attempt_of(jobset: Json) -> int:
    return int(jobset["status"].get("restarts") or 0)


def epoch_of(jobset: Json) -> int:
    return int(notes_of(targets(jobset)[0]["template"]["spec"]["template"])[names.EPOCH])


def slot_of(pod: Json) -> int:
    notes = notes_of(pod)
    return int(notes.get(names.JOB_COMPLETION_INDEX) or notes["slot"])


def completed_of(job: Json) -> set[int]:
    return set(job["status"].get("slots", ()))


def failed_of(job: Json) -> set[int]:
    return indexes(job["status"].get("failedIndexes") or "")


def give_up(job: Json, index: int) -> None:
    """The index has failed for good."""
    job["status"]["failedIndexes"] = ",".join(map(str, sorted(failed_of(job) | {index} - completed_of(job))))


def align(job: Json, wanted: Json) -> None:
    """Suspends, resumes with the JobSet's template of now, and follows an elastic width; not a Job that has ended."""
    spec = wanted["spec"]
    if has_ended(job):
        return
    if job["spec"]["suspend"] and not spec["suspend"]:
        job["spec"]["template"] = spec["template"]
    job["spec"].update(suspend=spec["suspend"], parallelism=spec["parallelism"], completions=spec["completions"])


def replicated_job(name: str, replicas: int, width: int, mode: str) -> Json:
    return {"name": name, "replicas": replicas, "template": {"spec": job_spec(width, mode)}}


def job_spec(width: int, mode: str) -> Json:
    template = {
        "metadata": {"annotations": {names.EPOCH: "0"}},
        "spec": {"initContainers": [{"name": names.BARRIER_CONTAINER, "env": [STREAM]}]},
    }
    return {"parallelism": width, "completions": width, "completionMode": mode, "template": template}


def container_status(state: Json, **more: Any) -> Json:
    return {"name": names.BARRIER_CONTAINER, "state": state} | more


def running(since: str) -> Json:
    return {"phase": "Pending", "initContainerStatuses": [container_status({"running": {"startedAt": since}})]}


def passed(since: str, main: str) -> Json:
    return {
        "phase": "Running",
        "initContainerStatuses": [container_status({"terminated": {"exitCode": 0, "startedAt": since}})],
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": main}}}],
    }


def timed_out(since: str, *, restarts: bool) -> Json:
    end = {"terminated": {"exitCode": names.EXIT_TIMED_OUT, "startedAt": since}}
    if not restarts:
        return {"phase": "Failed", "initContainerStatuses": [container_status(end)]}
    waits = container_status({"waiting": {"reason": "CrashLoopBackOff"}}, lastState=end, restartCount=1)
    return {"phase": "Pending", "initContainerStatuses": [waits]}
