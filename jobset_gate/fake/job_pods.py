"""The pods of a Job: rendered from its template, tracked until each is counted once, and the Job's status from that."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from sys import intern

import msgspec

from jobset_gate import names
from jobset_gate.fake.objects import FakeObject, Json, Key, format_indexes, holds, owned_by, parse_indexes

_DEFAULT_BACKOFF_LIMIT = 6
_ENDED = ("Succeeded", "Failed")


class _Annotations(msgspec.Struct, rename={"index": names.JOB_COMPLETION_INDEX}):
    index: str = ""


class _Owner(msgspec.Struct):
    kind: str
    name: str
    uid: str
    controller: bool = False


class _PodMeta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: _Annotations | None = None
    owner_references: list[_Owner] = msgspec.field(default_factory=list)


class _Container(msgspec.Struct, rename="camel"):
    name: str
    restart_count: int = 0


class _Condition(msgspec.Struct):
    type: str
    status: str


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] | None = None
    init_container_statuses: list[_Container] | None = None
    container_statuses: list[_Container] | None = None


class JobPodWire(msgspec.Struct):
    """The fields of a pod that the Job controller reads."""

    metadata: _PodMeta
    status: _PodStatus | None = None


class JobPod(msgspec.Struct, frozen=True, gc=False):
    """A pod of a Job."""

    key: Key
    uid: str
    job: str
    job_uid: str
    index: int | None
    phase: str
    deleting: bool
    ready: bool
    restarts: int

    @property
    def active(self) -> bool:
        return not self.deleting and not self.ended

    @property
    def ended(self) -> bool:
        return self.phase in _ENDED


def decode_job_pod(pod: JobPodWire) -> JobPod | None:
    """None for a pod without a Job."""
    meta, status = pod.metadata, pod.status or _PodStatus()
    owner = next((owner for owner in meta.owner_references if owner.controller and owner.kind == "Job"), None)
    if owner is None:
        return None
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    index = meta.annotations.index if meta.annotations else ""
    return JobPod(
        key=(intern(meta.namespace), meta.name),
        uid=meta.uid,
        job=intern(owner.name),
        job_uid=intern(owner.uid),
        index=int(index) if index else None,
        phase=intern(status.phase),
        deleting=meta.deletion_timestamp is not None,
        ready=any(item.type == "Ready" and item.status == "True" for item in status.conditions or ()),
        restarts=sum(item.restart_count for item in containers),
    )


def indexed(job: FakeObject) -> bool:
    return bool(job.spec.get("completionMode") == "Indexed")


def size(job: FakeObject) -> tuple[int, int | None]:
    """(parallelism, completions) with the defaults of the API; completions None: one success is enough."""
    parallelism, completions = job.spec.get("parallelism"), job.spec.get("completions")
    if completions is None and (parallelism is None or indexed(job)):
        completions = 1 if parallelism is None else parallelism
    return 1 if parallelism is None else parallelism, completions


def render(job: FakeObject, index: int | None) -> Json:
    """A pod to create; `index` is None in a NonIndexed Job."""
    meta = job.metadata
    template = copy.deepcopy(job.spec["template"])
    own = template.get("metadata") or {}
    labels = {
        **(own.get("labels") or {}),
        names.JOB_NAME: meta.name,
        names.JOB_CONTROLLER_UID: meta.uid,
        "job-name": meta.name,
        "controller-uid": meta.uid,
    }
    annotations = dict(own.get("annotations") or {})
    spec: Json = template["spec"]
    stem = meta.name
    if index is not None:
        stem = f"{meta.name}-{index}"
        labels[names.JOB_COMPLETION_INDEX] = annotations[names.JOB_COMPLETION_INDEX] = str(index)
        spec["hostname"] = stem
        for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
            _add_index_variable(container)
    return {
        "metadata": {
            "generateName": f"{stem}-",
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owned_by("batch/v1", "Job", meta)],
        },
        "spec": spec,
    }


def _add_index_variable(container: Json) -> None:
    env: list[Json] = container.setdefault("env", [])
    if not any(item["name"] == "JOB_COMPLETION_INDEX" for item in env):
        path = f"metadata.labels['{names.JOB_COMPLETION_INDEX}']"
        ref = {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}
        env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": ref})


@dataclass(slots=True)
class PodTracker:
    """Counts each success and each failure of one Job's pods once. Counts start from the Job's status."""

    pods: dict[Key, JobPod] = field(default_factory=dict)
    created: dict[Key, tuple[int | None, float]] = field(default_factory=dict)
    """Pods that were created and that no watch has shown yet: index, time of creation."""
    deleted: set[str] = field(default_factory=set)
    """UIDs of pods that the controller deleted: not failures."""
    counted: set[str] = field(default_factory=set)
    """UIDs of pods whose success or failure is counted."""
    completed: set[int] = field(default_factory=set)
    succeeded: int = 0
    failed: int = 0
    failures_in_row: int = 0
    """Since the last success, for the back-off."""
    last_failure: float = 0.0

    loaded: bool = False

    def load_status(self, job: FakeObject) -> None:
        """Take over the counts of the Job's status, once."""
        if not self.loaded:
            self.loaded = True
            self.completed = parse_indexes(job.status.get("completedIndexes", ""))
            self.succeeded, self.failed = job.status.get("succeeded", 0), job.status.get("failed", 0)

    def observe(self, old: JobPod | None, new: JobPod | None) -> JobPod | None:
        """A watch event. Returns a pod that is gone and not counted yet."""
        if new is not None:
            self.pods[new.key] = new
            self.created.pop(new.key, None)
            return None
        if old is None:
            return None
        self.pods.pop(old.key, None)
        self.created.pop(old.key, None)
        return None if old.uid in self.deleted or old.uid in self.counted else old

    @property
    def active(self) -> list[JobPod]:
        return [pod for pod in self.pods.values() if pod.active and pod.uid not in self.deleted]

    @property
    def idle(self) -> bool:
        """No pod runs or is about to."""
        leaving = (not pod.ended for pod in self.pods.values() if pod.deleting or pod.uid in self.deleted)
        return not self.active and not self.created and not any(leaving)

    def count_ended(self, job: FakeObject, now: float) -> None:
        for pod in list(self.pods.values()):
            if pod.ended or pod.deleting:
                self.count_pod(job, pod, now)

    def count_pod(self, job: FakeObject, pod: JobPod, now: float) -> None:
        """A pod that has ended or is gone."""
        if pod.uid in self.counted or (pod.uid in self.deleted and pod.phase != "Succeeded"):
            return
        self.counted.add(pod.uid)
        if pod.phase != "Succeeded":
            self.failed += 1
            self.failures_in_row += 1
            self.last_failure = now
            return
        self.failures_in_row = 0
        if not indexed(job):
            self.succeeded += 1
        elif pod.index is not None and pod.index < (size(job)[1] or 0):
            self.completed.add(pod.index)
            self.succeeded = len(self.completed)

    def backoff_limit_exceeded(self, job: FakeObject) -> bool:
        limit = job.spec.get("backoffLimit", _DEFAULT_BACKOFF_LIMIT)
        if self.failed > limit:
            return True
        if job.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        restarts = sum(pod.restarts for pod in self.pods.values() if pod.phase in ("Pending", "Running"))
        return restarts > 0 if limit == 0 else restarts >= limit

    def complete(self, job: FakeObject) -> bool:
        _, completions = size(job)
        if completions is not None:
            return self.succeeded >= completions
        return self.succeeded > 0 and not self.active and not self.created

    def missing(self, job: FakeObject) -> list[int | None]:
        """Indexes of pods to create now, lowest first (None for each pod of a NonIndexed Job)."""
        parallelism, completions = size(job)
        running = len(self.active) + len(self.created)
        if not indexed(job) or completions is None:
            left = parallelism if completions is None else min(parallelism, completions - self.succeeded)
            if completions is None and self.succeeded:
                left = running
            return [None] * max(0, left - running)
        taken = self.completed | {pod.index for pod in self.active} | {index for index, _ in self.created.values()}
        room = max(0, min(parallelism, completions - len(self.completed)) - running)
        free: list[int | None] = [index for index in range(completions) if index not in taken]
        return free[:room]

    def surplus(self, job: FakeObject) -> list[JobPod]:
        """Active pods that the Job no longer wants: indexes out of range, duplicates, and the last of too many."""
        parallelism, completions = size(job)
        kept: set[tuple[str, int | None]] = set()
        dropped: list[JobPod] = []
        for pod in sorted(self.active, key=lambda pod: (pod.index or 0, not pod.ready, pod.key)):
            slot = ("index", pod.index) if indexed(job) else (pod.uid, None)
            outside = indexed(job) and completions is not None and (pod.index or 0) >= completions
            if outside or slot in kept or pod.index in self.completed or len(kept) >= parallelism:
                dropped.append(pod)
            else:
                kept.add(slot)
        return dropped


# --- Status -----------------------------------------------------------------------------------------------------------


def finished(job: FakeObject) -> bool:
    conditions = job.status.get("conditions")
    return holds(conditions, "Complete") or holds(conditions, "Failed")


def set_counts(job: FakeObject, tracker: PodTracker) -> None:
    """Numbers that are zero are left out, but `ready`."""
    active = tracker.active
    counts = {
        "active": len(active) + len(tracker.created),
        "succeeded": tracker.succeeded,
        "failed": tracker.failed,
        "completedIndexes": format_indexes(tracker.completed),
    }
    job.status |= {name: value for name, value in counts.items() if value}
    for name in [name for name, value in counts.items() if not value]:
        job.status.pop(name, None)
    job.status["ready"] = sum(pod.ready for pod in active)


def set_condition(job: FakeObject, kind: str, status: str, reason: str, message: str, now: str) -> None:  # noqa: PLR0917
    """The time changes with the status only."""
    conditions: list[Json] = job.status.setdefault("conditions", [])
    found = next((item for item in conditions if item["type"] == kind), None)
    if found is None:
        found = {"type": kind}
        conditions.append(found)
    if found.get("status") != status:
        found |= {"status": status, "reason": reason, "message": message}
        found |= {"lastProbeTime": now, "lastTransitionTime": now}


def set_ended(job: FakeObject, tracker: PodTracker, kind: str, reason: str, message: str, now: str) -> None:  # noqa: PLR0917
    """Failed or Complete once no pod runs; the interim condition at once."""
    set_condition(job, "FailureTarget" if kind == "Failed" else "SuccessCriteriaMet", "True", reason, message, now)
    if tracker.idle:
        set_condition(job, kind, "True", reason, message, now)
        if kind == "Complete":
            job.status.setdefault("completionTime", now)


def set_started(job: FakeObject, now: str) -> None:
    """Set the start time, again after a suspend."""
    if holds(job.status.get("conditions"), "Suspended"):
        set_condition(job, "Suspended", "False", "JobResumed", "Job resumed", now)
        job.status["startTime"] = now
    job.status.setdefault("startTime", now)
