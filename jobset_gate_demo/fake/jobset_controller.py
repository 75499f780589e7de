"""A stand-in for the JobSet controller: JobSets in, Jobs out, and the JobSet's own part of its status.

It uses the API server like the real one (list, watch, PUT with resourceVersion, retry on conflict), so it runs against
the embedded API server and a real one. Left out: success policies other than All, dependencies on Ready, groups,
rules of the failure policy, restarts of single Jobs and in place, exclusive placement, volume claims, TTL, Events, and
conditions other than Suspended, Completed and Failed.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable
from contextlib import suppress

from typing_extensions import override

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, SERVICES
from jobset_gate.runtime.store import ObjectChange
from jobset_gate_demo.fake.objects import Clock, FakeObject, Json, Key, controller_of, holds, owned_by, stamp
from jobset_gate_demo.fake.tasks import PlayedController, in_parallel


class JobSetController(PlayedController):
    """`run()` until cancelled."""

    def __init__(self, client: Client, clock: Clock, namespace: str | None = None) -> None:
        super().__init__("jobset", client, clock, namespace, workers=4)
        self._open = asyncio.Event()
        self._open.set()
        self._changed = asyncio.Event()
        self._with_service: set[str] = set()
        """UIDs of the JobSets whose Service is there."""
        self._jobs = self._informer(JOBS, self._on_job, names.JS_NAME)
        self._jobsets = self._informer(JOBSETS, self._on_jobset)

    def pause(self) -> None:
        """Reconcile nothing until `resume`."""
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    async def wait_seen(self, jobset: Json) -> None:
        """Until its cache holds this version of the JobSet or a later one."""
        meta = jobset["metadata"]
        key, version = (meta["namespace"], meta["name"]), int(meta["resourceVersion"])
        while True:
            seen = self._jobsets.cache.get(key)
            if seen is not None and int(seen.metadata.resource_version) >= version:
                return
            self._changed.clear()
            await self._changed.wait()

    # --- Events to keys -----------------------------------------------------------------------------------------------

    def _on_jobset(self, change: ObjectChange[FakeObject]) -> None:
        self._changed.set()
        if change.new is not None:
            self._queue.add(change.key)

    def _on_job(self, change: ObjectChange[FakeObject]) -> None:
        for job in (change.old, change.new):
            owner = controller_of(job.metadata) if job is not None else None
            if owner is not None and owner["kind"] == "JobSet":
                self._queue.add((change.key[0], owner["name"]))

    # --- One JobSet ---------------------------------------------------------------------------------------------------

    @override
    async def _reconcile(self, key: Key) -> None:
        await self._open.wait()
        seen = self._jobsets.cache.get(key)
        if seen is None or seen.deleting or seen.spec.get("managedBy") not in (None, names.JOBSET_CONTROLLER):
            return
        jobset = seen.mutable_copy()
        jobs = (job for _, job in sorted(self._jobs.cache.items()))
        owned = [job for job in jobs if (controller_of(job.metadata) or {}).get("uid") == jobset.metadata.uid]
        await self._act(jobset, owned)
        if jobset.status != seen.status:
            await self._client.replace(JOBSETS, jobset.body(), subresource="status")

    async def _act(self, jobset: FakeObject, owned: list[FakeObject]) -> None:
        """A Job whose restart label is behind the JobSet's status is of an earlier run."""
        restarts = jobset.status.get("restarts", 0)
        jobs = [job for job in owned if _attempt(job) >= restarts]
        complete = [job for job in jobs if _has(job, "Complete")]
        failed = [job for job in jobs if _has(job, "Failed")]
        active = [job for job in jobs if not _has(job, "Complete") and not _has(job, "Failed")]
        entries = [_entry(job["name"], jobs) for job in jobset.spec["replicatedJobs"]]
        jobset.status["replicatedJobsStatus"] = entries
        if _has(jobset, "Completed") or _has(jobset, "Failed"):
            await self._delete(active)
            return
        await self._delete([job for job in owned if _attempt(job) < restarts])
        if failed:
            self._fail_or_restart(jobset, min(job.metadata.name for job in failed))
        elif complete and _succeeded(jobset, complete):
            self._end(jobset, "Completed", "AllJobsCompleted", "all jobs have completed")
        else:
            await self._create_service(jobset)
            await self._scale(jobset, active)
            startable = self._startable(jobset, {entry["name"]: entry for entry in entries})
            await self._create_jobs(jobset, owned, startable)
            await (self._suspend if jobset.spec.get("suspend") else self._resume)(jobset, active, startable)

    def _fail_or_restart(self, jobset: FakeObject, first: str) -> None:
        """Fail the JobSet, or restart all its Jobs while maxRestarts permits."""
        policy, restarts = jobset.spec.get("failurePolicy"), jobset.status.get("restarts", 0)
        if policy is None:
            self._end(jobset, "Failed", "FailedJobs", f"a job failed and no policy says otherwise: {first}")
        elif restarts >= policy.get("maxRestarts", 0):
            self._end(jobset, "Failed", "ReachedMaxRestarts", f"no restart is left after the failure of {first}")
        else:
            jobset.status |= {"restarts": restarts + 1, "restartsCountTowardsMax": restarts + 1}

    def _end(self, jobset: FakeObject, kind: str, reason: str, message: str) -> None:
        self._set_condition(jobset, kind, "True", reason, message)
        jobset.status["terminalState"] = kind

    def _set_condition(self, jobset: FakeObject, kind: str, status: str, reason: str, message: str) -> None:
        """One that is False is not added where there is none."""
        conditions: list[Json] = jobset.status.setdefault("conditions", [])
        found = next((condition for condition in conditions if condition["type"] == kind), None)
        if found is None and status == "True":
            found = {"type": kind}
            conditions.append(found)
        if found is not None and found.get("status") != status:
            found |= {"status": status, "reason": reason, "message": message}
            found["lastTransitionTime"] = stamp(self._clock())

    async def _create_service(self, jobset: FakeObject) -> None:
        """The headless Service by which pods find each other, as the examples do."""
        network, uid = jobset.spec.get("network") or {}, jobset.metadata.uid
        if not network.get("enableDNSHostnames") or uid in self._with_service:
            return
        meta = {
            "name": _subdomain(jobset),
            "namespace": jobset.metadata.namespace,
            "ownerReferences": [owned_by(names.JOBSET_API_VERSION, "JobSet", jobset.metadata)],
        }
        spec = {
            "clusterIP": "None",
            "selector": {names.JS_NAME: jobset.metadata.name},
            "publishNotReadyAddresses": network.get("publishNotReadyAddresses", True),
        }
        with suppress(AlreadyExists):
            await self._client.create(SERVICES, {"metadata": meta, "spec": spec})
        self._with_service.add(uid)

    # --- Jobs ---------------------------------------------------------------------------------------------------------

    def _startable(self, jobset: FakeObject, statuses: dict[str, Json]) -> list[Json]:
        """The replicatedJobs whose Jobs may be there; InOrder up to the first that has not started."""
        ordered = (jobset.spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
        found: list[Json] = []
        jobs = jobset.spec["replicatedJobs"]
        for job in jobs:
            needed = {it["name"] for it in job.get("dependsOn") or ()}
            if all(statuses[it["name"]]["succeeded"] == _replicas(it) for it in jobs if it["name"] in needed):
                found.append(job)
            if ordered and not jobset.spec.get("suspend") and not _all_started(job, statuses[job["name"]]):
                break
        return found

    async def _create_jobs(self, jobset: FakeObject, owned: Iterable[FakeObject], startable: Iterable[Json]) -> None:
        taken = {job.metadata.name for job in owned}
        wanted = [(job, index) for job in startable for index in range(_replicas(job))]
        missing = [it for it in wanted if _job_name(jobset.metadata.name, it[0]["name"], it[1]) not in taken]
        await in_parallel(self._client.create(JOBS, render(jobset, *it)) for it in missing)

    async def _delete(self, jobs: list[FakeObject]) -> None:
        for meta in (job.metadata for job in jobs if not job.deleting):
            with suppress(NotFound):
                await self._client.delete(JOBS, meta.name, meta.namespace, uid=meta.uid, propagation="Foreground")

    async def _scale(self, jobset: FakeObject, active: list[FakeObject]) -> None:
        """Elastic Jobs: parallelism and completions follow the JobSet's, where both are the same number."""
        specs = {job["name"]: job["template"]["spec"] for job in jobset.spec["replicatedJobs"]}
        for job in active:
            wanted = specs.get(_replicated_job_of(job), {})
            size, completions = wanted.get("parallelism"), wanted.get("completions")
            if size is None or size != completions or size == job.spec["parallelism"] == job.spec.get("completions"):
                continue
            body = {"spec": {"parallelism": size, "completions": size}}
            await self._client.patch(JOBS, job.metadata.name, job.metadata.namespace, body=body, patch=PatchType.MERGE)

    async def _suspend(self, jobset: FakeObject, active: list[FakeObject], _: list[Json]) -> None:
        for job in active:
            if not job.spec.get("suspend"):
                stopped = job.mutable_copy()
                stopped.spec["suspend"] = True
                await self._client.replace(JOBS, stopped.body())
        self._set_condition(jobset, "Suspended", "True", "SuspendedJobs", "the jobs of the jobset are suspended")

    async def _resume(self, jobset: FakeObject, active: list[FakeObject], startable: list[Json]) -> None:
        templates = {job["name"]: job["template"]["spec"]["template"] for job in startable}
        for job in active:
            template = templates.get(_replicated_job_of(job))
            if template is not None and job.spec.get("suspend"):
                await self._resume_job(job, template)
        self._set_condition(jobset, "Suspended", "False", "ResumeJobs", "the jobs of the jobset may run")

    async def _resume_job(self, job: FakeObject, template: Json) -> None:
        """A Job's template may change only while it has no start time, so the start time is removed first."""
        resumed = job.mutable_copy()
        if resumed.status.pop("startTime", None) is not None:
            written = await self._client.replace(JOBS, resumed.body(), subresource="status", type=FakeObject)
            resumed.metadata.resource_version = written.metadata.resource_version
        _merge_template(resumed.spec["template"], template)
        resumed.spec["suspend"] = False
        await self._client.replace(JOBS, resumed.body())


def _merge_template(into: Json, template: Json) -> None:
    """Take over what Kueue may have changed while the JobSet was suspended; the Job may have additions of others."""
    meta, wanted_meta = into.setdefault("metadata", {}), template.get("metadata") or {}
    for field in ("labels", "annotations"):
        if merged := {**(meta.get(field) or {}), **(wanted_meta.get(field) or {})}:
            meta[field] = merged
    spec, wanted = into["spec"], template["spec"]
    if selector := {**(spec.get("nodeSelector") or {}), **(wanted.get("nodeSelector") or {})}:
        spec["nodeSelector"] = selector
    for field in ("tolerations", "schedulingGates"):
        both = list(spec.get(field) or ())
        both += [item for item in wanted.get(field) or () if item not in both]
        if both:
            spec[field] = both


# --- Jobs that a spec asks for ----------------------------------------------------------------------------------------


def _job_name(jobset: str, replicated_job: str, index: int) -> str:
    return f"{jobset}-{replicated_job}-{index}"


def _replicas(replicated_job: Json) -> int:
    return int(replicated_job.get("replicas", 1))


def render(jobset: FakeObject, replicated_job: Json, index: int) -> Json:
    """The Job of that index, suspended if the JobSet is."""
    template = copy.deepcopy(replicated_job["template"])
    marks = _marks(jobset, replicated_job, index)
    meta = template.get("metadata") or {}
    spec: Json = template["spec"]
    pod_meta = spec["template"].setdefault("metadata", {})
    for kind in ("labels", "annotations"):
        pod_meta[kind] = {**(pod_meta.get(kind) or {}), **marks}
    if (jobset.spec.get("network") or {}).get("enableDNSHostnames"):
        spec["template"]["spec"]["subdomain"] = _subdomain(jobset)
    spec["suspend"] = bool(jobset.spec.get("suspend"))
    return {
        "metadata": {
            "name": _job_name(jobset.metadata.name, replicated_job["name"], index),
            "namespace": jobset.metadata.namespace,
            "labels": {**(meta.get("labels") or {}), **marks},
            "annotations": {**(meta.get("annotations") or {}), **marks},
            "ownerReferences": [owned_by(names.JOBSET_API_VERSION, "JobSet", jobset.metadata)],
        },
        "spec": spec,
    }


def _marks(jobset: FakeObject, replicated_job: Json, index: int) -> dict[str, str]:
    """Of JobSet's marks those that someone here reads; each Job and pod carries them as labels and as annotations."""
    name, jobs = replicated_job["name"], jobset.spec["replicatedJobs"]
    before = sum(_replicas(job) for job in jobs[: [job["name"] for job in jobs].index(name)])
    marks = {
        names.JS_NAME: jobset.metadata.name,
        names.JS_UID: jobset.metadata.uid,
        names.JS_REPLICATED_JOB: name,
        names.JS_JOB_INDEX: str(index),
        names.JS_JOB_GLOBAL_INDEX: str(before + index),
        names.JS_RESTART_ATTEMPT: str(jobset.status.get("restarts", 0)),
    }
    if coordinator := jobset.spec.get("coordinator"):
        host = _job_name(jobset.metadata.name, coordinator["replicatedJob"], coordinator.get("jobIndex", 0))
        marks[names.JS_COORDINATOR] = f"{host}-{coordinator.get('podIndex', 0)}.{_subdomain(jobset)}"
    return marks


def _subdomain(jobset: FakeObject) -> str:
    given: str = (jobset.spec.get("network") or {}).get("subdomain") or ""
    return given or jobset.metadata.name


def _succeeded(jobset: FakeObject, complete: list[FakeObject]) -> bool:
    """All Jobs of the success policy's targets, by default of all replicatedJobs, are complete."""
    jobs = jobset.spec["replicatedJobs"]
    targets = (jobset.spec.get("successPolicy") or {}).get("targetReplicatedJobs") or [job["name"] for job in jobs]
    done = sum(_replicated_job_of(job) in targets for job in complete)
    return done == sum(_replicas(job) for job in jobs if job["name"] in targets)


# --- Jobs that exist --------------------------------------------------------------------------------------------------


def _replicated_job_of(job: FakeObject) -> str:
    return job.metadata.labels.get(names.JS_REPLICATED_JOB, "")


def _attempt(job: FakeObject) -> int:
    return int(job.metadata.labels[names.JS_RESTART_ATTEMPT])


def _has(one: FakeObject, kind: str) -> bool:
    return holds(one.status.get("conditions"), kind)


def _entry(name: str, jobs: Iterable[FakeObject]) -> Json:
    """The entry of a replicatedJob in status.replicatedJobsStatus."""
    own = [job for job in jobs if _replicated_job_of(job) == name]
    active = [job for job in own if not _has(job, "Complete") and not _has(job, "Failed")]
    return {
        "name": name,
        "ready": sum(map(_ready, active)),
        "succeeded": sum(_has(job, "Complete") for job in own),
        "failed": sum(_has(job, "Failed") for job in own),
        "active": sum(job.status.get("active", 0) > 0 for job in active),
        "suspended": sum(bool(job.spec.get("suspend")) for job in active),
    }


def _ready(job: FakeObject) -> bool:
    parallelism = job.spec.get("parallelism", 1)
    wanted = min(parallelism, job.spec.get("completions") or parallelism)
    return bool(job.status.get("succeeded", 0) + job.status.get("ready", 0) >= wanted)


def _all_started(replicated_job: Json, found: Json) -> bool:
    """A Job that failed has started, too."""
    return bool(_replicas(replicated_job) == found["ready"] + found["succeeded"] + found["failed"])
