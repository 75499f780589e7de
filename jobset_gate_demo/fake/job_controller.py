"""The Job controller of the embedded cluster: Indexed Jobs in, pods out, and the Jobs' status.

All that it knows it reads off the Job's pods. Suspended, it clears startTime, as from Kubernetes 1.36 on. Left out:
Jobs without indexes, resizing, back-off between pods, restarts of containers in the back-off limit, pod failure and
success policies, deadlines, TTL, Events, tracking finalizers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import suppress

from typing_extensions import override

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Conflict, NotFound
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate.runtime.store import ObjectChange
from jobset_gate_demo.fake.objects import Clock, FakeObject, Json, Key, controller_of, holds, owned_by, stamp
from jobset_gate_demo.fake.tasks import PlayedController, in_parallel

BATCH_SECONDS = 1.0  # kube-controller-manager collects changes of pods for this long


class JobController(PlayedController):
    """`run()` until cancelled."""

    def __init__(self, client: Client, clock: Clock, namespace: str | None = None) -> None:
        super().__init__("job", client, clock, namespace, workers=8)
        self._pods = self._informer(PODS, self._on_pod)
        self._jobs = self._informer(JOBS, self._on_job)

    def _on_job(self, change: ObjectChange[FakeObject]) -> None:
        if change.new is not None:
            self._queue.add(change.key)

    def _on_pod(self, change: ObjectChange[FakeObject]) -> None:
        for pod in (change.old, change.new):
            owner = controller_of(pod.metadata) if pod is not None else None
            if owner is not None and owner["kind"] == "Job":
                self._queue.add_after((change.key[0], owner["name"]), BATCH_SECONDS)

    @override
    async def _reconcile(self, key: Key) -> None:
        job = self._jobs.cache.get(key)
        if job is None or job.deleting or _ended(job):
            return
        pods = [pod for pod in self._pods.cache.values() if _owner_uid(pod) == job.metadata.uid]
        draft = job.mutable_copy()
        suspended = bool(job.spec.get("suspend"))
        if not suspended:
            draft.status.setdefault("startTime", stamp(self._clock()))
        succeeded = {_index(pod) for pod in pods if _phase(pod) == "Succeeded"}
        active = [pod for pod in pods if not pod.deleting and _phase(pod) not in ("Succeeded", "Failed")]
        failed = sum(_phase(pod) == "Failed" and not pod.deleting for pod in pods)
        if failed > job.spec["backoffLimit"] or holds(job.status.get("conditions"), "FailureTarget"):
            await self._end(draft, active, "Failed", "BackoffLimitExceeded", "the backoff limit is reached")
        elif len(succeeded) >= job.spec["completions"]:
            await self._end(draft, active, "Complete", "CompletionsReached", "all indexes have succeeded")
        elif suspended:
            draft.status.pop("startTime", None)
            self._set_condition(draft, "Suspended", "True", "JobSuspended", "Job suspended")
            await in_parallel(map(self._delete, active))
            active = []
        else:
            self._set_condition(draft, "Suspended", "False", "JobResumed", "Job resumed")
            active += await self._create_missing(job, active, succeeded)
        counts: Json = {"active": len(active), "succeeded": len(succeeded), "failed": failed}
        draft.status |= counts | {"ready": sum(map(_ready, active)), "completedIndexes": _ranges(succeeded)}
        if draft.status != job.status:
            await self._client.replace(JOBS, draft.body(), subresource="status")

    async def _end(self, job: FakeObject, active: list[FakeObject], kind: str, reason: str, message: str) -> None:
        """Failed or Complete once no pod runs; the interim condition at once."""
        interim = "FailureTarget" if kind == "Failed" else "SuccessCriteriaMet"
        for reached in (interim,) if active else (interim, kind):
            self._set_condition(job, reached, "True", reason, message)
        if kind == "Complete" and not active:
            job.status["completionTime"] = stamp(self._clock())
        await in_parallel(map(self._delete, active))

    def _set_condition(self, job: FakeObject, kind: str, status: str, reason: str, message: str) -> None:
        conditions: list[Json] = job.status.setdefault("conditions", [])
        if holds(conditions, kind) is (status == "True"):
            return
        now = stamp(self._clock())
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        others = [it for it in conditions if it["type"] != kind]
        job.status["conditions"] = [*others, {**condition, "lastProbeTime": now, "lastTransitionTime": now}]

    async def _delete(self, pod: FakeObject) -> None:
        with suppress(NotFound, Conflict):
            await self._client.delete(PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)

    async def _create_missing(self, job: FakeObject, active: list[FakeObject], done: set[int]) -> list[FakeObject]:
        """The first pod alone: a webhook that refuses it refuses all."""
        taken = done | {_index(pod) for pod in active}
        missing = [index for index in range(job.spec["completions"]) if index not in taken]
        wanted = missing[: max(0, job.spec["parallelism"] - len(active))]
        made: list[FakeObject] = []

        async def create(index: int) -> None:
            pod = await self._client.create(PODS, render(job, index), type=FakeObject)
            # So that the next pass knows of it even if no watch has shown it by then.
            self._pods.store.observe_object(pod)
            made.append(pod)

        for indexes in (wanted[:1], wanted[1:]):
            await in_parallel(map(create, indexes))
        return made


def render(job: FakeObject, index: int) -> Json:
    """A pod to create."""
    meta = job.metadata
    stem = f"{meta.name}-{index}"
    template = copy.deepcopy(job.spec["template"])
    own = template.get("metadata") or {}
    mark = {names.JOB_COMPLETION_INDEX: str(index)}
    spec: Json = template["spec"] | {"hostname": stem}
    reference = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{names.JOB_COMPLETION_INDEX}']"}}
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "valueFrom": reference})
    return {
        "metadata": {
            "generateName": f"{stem}-",
            "namespace": meta.namespace,
            "labels": {**(own.get("labels") or {}), **mark},
            "annotations": {**(own.get("annotations") or {}), **mark},
            "ownerReferences": [owned_by("batch/v1", "Job", meta)],
        },
        "spec": spec,
    }


def _owner_uid(pod: FakeObject) -> str:
    return str((controller_of(pod.metadata) or {}).get("uid", ""))


def _index(pod: FakeObject) -> int:
    return int(pod.metadata.annotations[names.JOB_COMPLETION_INDEX])


def _phase(pod: FakeObject) -> str:
    return str(pod.status.get("phase", ""))


def _ready(pod: FakeObject) -> bool:
    return holds(pod.status.get("conditions"), "Ready")


def _ended(job: FakeObject) -> bool:
    conditions = job.status.get("conditions")
    return holds(conditions, "Complete") or holds(conditions, "Failed")


def _ranges(numbers: Iterable[int]) -> str:
    """0, 1, 2, 7 -> "0-2,7", as the API writes completedIndexes."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
