"""A Job's pods: how they are made from its template, and what the Job controller remembers of each."""

from __future__ import annotations

import copy
from sys import intern

import msgspec

from jobset_gate import names
from jobset_gate.fake.objects import FakeObject, FakeObjectMeta, Json, Key, owned_by

INDEXED = "Indexed"


class _Notes(msgspec.Struct, rename={"index": names.JOB_COMPLETION_INDEX}):
    index: str = ""


class _Labels(msgspec.Struct, rename={"job": names.JOB_NAME}):
    job: str = ""


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
    labels: _Labels | None = None
    annotations: _Notes | None = None
    owner_references: list[_Owner] = msgspec.field(default_factory=list)


class _Ended(msgspec.Struct, rename="camel"):
    exit_code: int = 0


class _State(msgspec.Struct):
    terminated: _Ended | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str
    restart_count: int = 0
    state: _State | None = None


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] | None = None
    init_container_statuses: list[_Container] | None = None
    container_statuses: list[_Container] | None = None


class JobPodWire(msgspec.Struct):
    """The fields of a pod that the Job controller looks at."""

    metadata: _PodMeta
    status: _Status | None = None


class JobPod(msgspec.Struct, frozen=True, gc=False):
    """A pod of a Job. `exits` are (container, exit code) of containers that have ended.

    `job_uid` "": one that a Job made and that is nobody's by now.
    """

    key: Key
    uid: str
    job: str
    job_uid: str
    index: int | None
    phase: str
    deleting: bool
    ready: bool
    restarts: int
    exits: tuple[tuple[str, int], ...]
    conditions: tuple[tuple[str, str], ...]

    @property
    def active(self) -> bool:
        return not self.deleting and not self.over

    @property
    def over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def terminating(self) -> bool:
        return self.deleting and not self.over


def decode_job_pod(pod: JobPodWire) -> JobPod | None:
    """None for a pod that no Job has made."""
    meta, status = pod.metadata, pod.status or _Status()
    owner = next((owner for owner in meta.owner_references if owner.controller and owner.kind == "Job"), None)
    if owner is None:
        if meta.labels is None or not meta.labels.job:
            return None
        owner = _Owner("Job", meta.labels.job, "")
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
        exits=tuple(
            (intern(item.name), item.state.terminated.exit_code)
            for item in containers
            if item.state is not None and item.state.terminated is not None
        ),
        conditions=tuple((intern(item.type), intern(item.status)) for item in status.conditions or ()),
    )


def indexed(job: FakeObject) -> bool:
    return bool(job.spec.get("completionMode") == INDEXED)


def size(job: FakeObject) -> tuple[int, int | None]:
    """(parallelism, completions) with the defaults of the API; completions None: one success is enough."""
    parallelism, completions = job.spec.get("parallelism"), job.spec.get("completions")
    if completions is None and (parallelism is None or indexed(job)):
        completions = 1 if parallelism is None else parallelism
    return 1 if parallelism is None else parallelism, completions


def render(job: FakeObject, index: int | None) -> Json:
    """A pod to create; `index` is None in a NonIndexed Job."""
    meta: FakeObjectMeta = job.metadata
    template = copy.deepcopy(job.spec["template"])
    its = template.get("metadata") or {}
    labels = {**(its.get("labels") or {}), **_labels(job)}
    annotations = dict(its.get("annotations") or {})
    spec: Json = template["spec"]
    stem = meta.name
    if index is not None:
        stem = f"{meta.name}-{index}"
        labels[names.JOB_COMPLETION_INDEX] = annotations[names.JOB_COMPLETION_INDEX] = str(index)
        spec["hostname"] = stem
        for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
            _tell_index(container)
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


def _labels(job: FakeObject) -> dict[str, str]:
    meta = job.metadata
    return {
        names.JOB_NAME: meta.name,
        names.JOB_CONTROLLER_UID: meta.uid,
        "job-name": meta.name,
        "controller-uid": meta.uid,
    }


def _tell_index(container: Json) -> None:
    env: list[Json] = container.setdefault("env", [])
    if any(item["name"] == "JOB_COMPLETION_INDEX" for item in env):
        return
    path = f"metadata.labels['{names.JOB_COMPLETION_INDEX}']"
    env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}})
