"""A namespace with a gang as it is stored in a cluster, and nobody who acts: each part is put there by the test."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from typing_extensions import override

from controllers.barrier import crd_patcher
from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import Generation, Verdict, VerdictKind, WaitingSince
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBS, JOBSETS, PODS
from jobset_gate.podgroups.decode import format_opened
from jobset_gate.podgroups.model import Format, group_label
from jobset_gate.sources.table import JOB, JOBSET
from jobset_gate_demo.fake import jobset_crd
from tests.fakes import jobs as bare_jobs
from tests.fakes import jobsets
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.snapshots import timestamp
from tests.fakes.stored_pod_groups import NO_NODE, StoredPodGroups
from tests.fakes.wire_objects import owner

Json = dict[str, Any]
NODE = "far"
NO_ROOM = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."


async def install_jobset_crd(client: Client, namespace: str) -> StoredJobSet:
    """A camp on a plane with the JobSet CRD and our field in it."""
    await jobset_crd.install(client)
    await crd_patcher.extend_crd(client)
    return StoredJobSet(client, namespace)


class StoredJobSet:
    """The gang `train`; by default one Job of workers with two pods to come."""

    source, resource = JOBSET, JOBSETS

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.uid = ""

    # --- The JobSet and its Jobs -----------------------------------------------------------------------------------

    async def jobset(self, *jobs: Json, gated: bool = True, **more: Any) -> None:
        """As the webhook would have it stored; without `gated` as if it had been off."""
        labels = more.pop("labels", {})
        made = jobsets.jobset(*(jobs or (workers(),)), name="train", **more)
        made["metadata"]["namespace"] = self.namespace
        stored = jobsets.created(made) if gated else jobsets.defaulted(made)
        stored["metadata"].setdefault("labels", {}).update(labels)
        self.uid = (await self.client.create(JOBSETS, stored, self.namespace))["metadata"]["uid"]

    async def condition(self, reason: str, message: str, status: str = "False") -> None:
        said = {"type": names.CONDITION, "status": status, "reason": reason, "message": message}
        one = said | {"lastTransitionTime": timestamp(time.time())}
        await self._status(self.resource, "train", {"conditions": [one]}, PatchType.MERGE)

    async def job(self, number: int = 0, replicated: str = "workers") -> str:
        """A Job that no Job controller looks after."""
        name = self.job_name(number, replicated)
        spec = {
            "parallelism": 2,
            "completions": 2,
            "completionMode": "Indexed",
            "managedBy": "nobody.test/at-all",
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}},
        }
        meta = {
            "name": name,
            "labels": self._labels(number, replicated),
            "ownerReferences": [owner("JobSet", "train", self.uid)],
        }
        return str(
            (await self.client.create(JOBS, {"metadata": meta, "spec": spec}, self.namespace))["metadata"]["uid"]
        )

    # --- Pods --------------------------------------------------------------------------------------------------------

    async def pod(
        self, index: int, job: str, number: int = 0, *, node: str = "", replicated: str = "workers", **status: Any
    ) -> str:
        """A pod of that Job, its UID; `status` is merged into its status."""
        name = f"{self.job_name(number, replicated)}-{index}"
        labels, notes = self._labels(number, replicated), {names.JOB_COMPLETION_INDEX: str(index)}
        owners = [owner("Job", self.job_name(number, replicated), job)]
        meta = {"name": name, "labels": labels, "annotations": notes, "ownerReferences": owners}
        inits = ("fetch", names.BARRIER_CONTAINER)
        return await self._create_pod(meta, inits, {"restartPolicy": "Never"}, node=node, status=status)

    async def _create_pod(self, meta: Json, inits: Iterable[str], spec: Json, *, node: str, status: Json) -> str:
        """Its UID."""
        image = "registry.test/app:1"
        spec |= {"containers": [{"name": "main", "image": image}]} | ({"nodeName": node} if node else {})
        if containers := [{"name": it, "image": image} for it in inits]:
            spec["initContainers"] = containers
        made = await self.client.create(PODS, {"metadata": meta, "spec": spec}, self.namespace)
        if status:
            await self._status(PODS, meta["name"], status, PatchType.STRATEGIC)
        return str(made["metadata"]["uid"])

    async def started(self, index: int, job: str, number: int = 0, **more: Any) -> None:
        runs = {"running": {"startedAt": timestamp(time.time())}}
        await self.pod(
            index, job, number, node=NODE, initContainerStatuses=[container(names.BARRIER_CONTAINER, runs)], **more
        )

    async def passed(self, index: int, job: str, number: int = 0) -> None:
        moment = timestamp(time.time())
        ended = {"terminated": {"exitCode": 0, "startedAt": moment, "finishedAt": moment, "reason": "Completed"}}
        statuses = [container(names.BARRIER_CONTAINER, ended)]
        await self.pod(index, job, number, node=NODE, initContainerStatuses=statuses, phase="Running")

    async def unscheduled(self, index: int, job: str, words: str, number: int = 0) -> str:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
        return await self.pod(index, job, number, conditions=[condition])

    async def waits(self, index: int, job: str, init: str, reason: str, message: str = "") -> str:
        """One whose init container is held up."""
        state = {"waiting": {"reason": reason, "message": message}}
        return await self.pod(index, job, node=NODE, initContainerStatuses=[container(init, state)])

    # --- What others say ---------------------------------------------------------------------------------------------

    async def config_map(
        self, kind: VerdictKind | None = None, cause: str = "", message: str = "", since: float | None = None
    ) -> None:
        await self._create_config_map("train", Generation(self.uid, 0, 0), (kind, cause, message), since)

    async def decide(self, kind: VerdictKind, cause: str, message: str) -> None:
        """In place of the ConfigMap of before."""
        with suppress(NotFound):
            await self.client.delete(CONFIGMAPS, self.config_map_name, self.namespace)
        await self.config_map(kind, cause, message)

    @property
    def config_map_name(self) -> str:
        return self.source.config_map_name("train")

    async def _create_config_map(
        self,
        gang: str,
        its: Generation,
        decided: tuple[VerdictKind | None, str, str],
        since: float | None,
        *,
        kept: Membership | None = None,
        **meta: Any,
    ) -> None:
        kind, cause, message = decided
        verdict = None if kind is None else Verdict(kind=kind, generation=its, cause=cause, message=message)
        clock = None if since is None else WaitingSince(generation=its, at=since)
        meta |= {
            "name": self.source.config_map_name(gang),
            "labels": {names.GATE: names.GATE_VALUE} | meta.get("labels", {}),
            "annotations": {names.JOBSET_UID: its.uid},
        }
        body = {"metadata": meta, "data": verdict_codec.config_map_data(verdict, clock, kept)}
        await self.client.create(CONFIGMAPS, body, self.namespace)

    async def event(self, kind: str, name: str, reason: str, message: str, uid: str = "", *, field: str = "") -> None:
        involved = {"kind": kind, "name": name, "namespace": self.namespace, "uid": uid, "fieldPath": field}
        moment = timestamp(time.time())
        body = {
            "metadata": {"generateName": "said-"},
            "involvedObject": involved,
            "type": "Warning",
            "reason": reason,
            "message": message,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        await self.client.create(EVENTS, body, self.namespace)

    async def _status(self, resource: Any, name: str, status: Json, patch: PatchType) -> None:
        await self.client.patch(
            resource, name, self.namespace, body={"status": status}, patch=patch, subresource="status"
        )

    def job_name(self, number: int = 0, replicated: str = "workers") -> str:
        return f"train-{replicated}-{number}"

    def _labels(self, number: int, replicated: str) -> dict[str, str]:
        return {
            names.GATED: names.GATED_VALUE,
            names.JS_NAME: "train",
            names.JS_UID: self.uid,
            names.JS_REPLICATED_JOB: replicated,
            names.JS_JOB_INDEX: str(number),
            names.JS_RESTART_ATTEMPT: "0",
        }


class StoredJob(StoredJobSet):
    """The same gang as a plain Job of two pods, for an API server without a Job controller."""

    source, resource = JOB, JOBS

    @override
    async def jobset(self, *jobs: Json, gated: bool = True, **more: Any) -> None:
        labels, size = more.pop("labels", {}), {"parallelism": 2, "completions": 2}
        made = bare_jobs.job(name="train", namespace=self.namespace, labels=labels, spec=size | more.pop("spec", {}))
        stored = jobsets.injected(made) if gated else made
        self.uid = (await self.client.create(JOBS, stored, self.namespace))["metadata"]["uid"]

    @override
    async def job(self, number: int = 0, replicated: str = "workers") -> str:
        return self.uid

    @override
    def job_name(self, number: int = 0, replicated: str = "workers") -> str:
        return "train"

    @override
    def _labels(self, number: int, replicated: str) -> dict[str, str]:
        return {names.GATED: names.GATED_JOB, names.JOB_NAME: "train", names.JOB_CONTROLLER_UID: self.uid}


def workers(**more: Any) -> Json:
    job = {"parallelism": 2, "completions": 2} | more.pop("job", {})
    return jobsets.replicated(**({"job": job, "replicas": 1} | more))


def container(name: str, state: Json) -> Json:
    return {"name": name, "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}


async def store_half(camp: StoredJobSet) -> str:
    """One of two has started, for the other there is no room. Their Job's UID."""
    await camp.jobset()
    job = await camp.job()
    await camp.started(0, job)
    await camp.unscheduled(1, job, NO_ROOM)
    await camp.config_map(since=time.time())
    return job


async def store_every_reason(camp: StoredJobSet) -> None:
    """Five pods in one Job: one has started, the others wait for five different things."""
    await camp.jobset(workers(job={"parallelism": 6, "completions": 6}))
    job = await camp.job()
    await camp.started(0, job)
    await camp.unscheduled(1, job, NO_ROOM)
    await camp.waits(2, job, "fetch", "ImagePullBackOff", 'Back-off pulling image "registry.test/app:1"')
    await camp.waits(3, job, names.BARRIER_CONTAINER, "ErrImagePull", "no such host")
    await camp.waits(4, job, "fetch", "CrashLoopBackOff", "back-off 10s restarting failed container")
    words = 'Error creating: pods "train-workers-0-5-x" is forbidden: exceeded quota: gpus, requested: cpu=1'
    await camp.event("Job", "train-workers-0", "FailedCreate", words)


async def store_placing_pod(groups: StoredPodGroups, group: str, name: str, words: str) -> None:
    """A pod of a group that was opened, for which the scheduler has no place."""
    made = manifests.pod(name, group, Format.SCHEDULER_PLUGINS, None, **NO_NODE)
    made["metadata"]["labels"][names.POD_GROUP_LABEL] = group_label(groups.key(group))
    made["metadata"]["annotations"] = {names.POD_GROUP_OPENED: format_opened(1, time.time())}
    await groups.client.create(PODS, made, groups.namespace)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    body = {"status": {"conditions": [condition]}}
    await groups.client.patch(PODS, name, groups.namespace, body=body, patch=PatchType.STRATEGIC, subresource="status")
