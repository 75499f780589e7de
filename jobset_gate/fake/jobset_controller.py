"""A stand-in for the JobSet controller: JobSets in, Jobs out, and the JobSet's own part of its status.

It uses the API server like the real one (list, watch, PUT with resourceVersion, retry on conflict), so it runs against
the embedded API server and a real one. Left out: exclusive placement, volume claims, rules of the failure policy,
restarts of single Jobs and in place, TTL, events.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from jobset_gate import names
from jobset_gate.fake import jobset_jobs, jobset_policies
from jobset_gate.fake.jobset_policies import Children, StatusDraft
from jobset_gate.fake.objects import Clock, FakeObject, Json, Key, controller_of, holds, keep_whole
from jobset_gate.fake.tasks import Reconciler, run_bounded
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, SERVICES
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange

PARALLEL_WRITES = 50


class JobSetController:
    """`run()` until cancelled."""

    def __init__(self, client: Client, clock: Clock, namespace: str | None = None) -> None:
        self._client = client
        self._clock = clock
        self._queue = Reconciler("jobset", self._reconcile, workers=4)
        self._jobs_of: defaultdict[str, set[Key]] = defaultdict(set)
        self._with_service: set[str] = set()
        self._changed = asyncio.Event()
        self._writes = asyncio.Semaphore(PARALLEL_WRITES)
        self._jobsets = Informer(
            client, WatchSource(JOBSETS, FakeObject, keep_whole, self._on_jobset, namespace=namespace)
        )
        self._jobs = Informer(
            client,
            WatchSource(JOBS, FakeObject, keep_whole, self._on_job, namespace=namespace, label_selector=names.JS_NAME),
        )

    def pause(self) -> None:
        """Reconcile nothing until `resume`."""
        self._queue.pause()

    def resume(self) -> None:
        self._queue.resume()

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

    async def wait_synced(self) -> None:
        await self._jobs.wait_synced()
        await self._jobsets.wait_synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run())
            group.create_task(self._jobsets.run())
            await self.wait_synced()
            group.create_task(self._queue.run())

    # --- Events to keys -----------------------------------------------------------------------------------------------

    def _on_jobset(self, change: ObjectChange[FakeObject]) -> None:
        self._changed.set()
        if change.new is not None:
            self._queue.add(change.key)

    def _on_job(self, change: ObjectChange[FakeObject]) -> None:
        for job in (change.old, change.new):
            owner = controller_of(job.metadata) if job is not None else None
            if owner is None or owner["kind"] != "JobSet":
                continue
            if job is change.new:
                self._jobs_of[owner["uid"]].add(change.key)
            else:
                self._jobs_of[owner["uid"]].discard(change.key)
            self._queue.add((change.key[0], owner["name"]))

    # --- One JobSet ---------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> None:
        seen = self._jobsets.cache.get(key)
        if seen is None or seen.deleting or seen.spec.get("managedBy") not in (None, names.JOBSET_CONTROLLER):
            return
        jobset = seen.mutable_copy()
        draft = StatusDraft(jobset.status, self._clock())
        await self._act(jobset, draft)
        if draft.changed:
            await self._client.replace(JOBSETS, jobset.body(), subresource="status")

    async def _act(self, jobset: FakeObject, draft: StatusDraft) -> None:
        children = Children.of(jobset, self._owned_jobs(jobset))
        draft.put("replicatedJobsStatus", jobset_policies.statuses(jobset, children))
        by_name: dict[str, Json] = {status["name"]: status for status in jobset.status["replicatedJobsStatus"]}
        conditions = jobset.status.get("conditions")
        if holds(conditions, "Completed") or holds(conditions, "Failed"):
            await self._delete(children.active)
            return
        await self._delete(children.previous)
        suspended = bool(jobset.spec.get("suspend"))
        if not suspended and jobset_policies.all_ready(jobset, by_name):
            draft.restart_ended("JobsReady", "every job is ready again")
        if children.failed:
            jobset_policies.fail_or_restart(jobset, children, draft)
            return
        if children.successful and jobset_policies.succeeded(jobset, children):
            draft.terminal("Completed", "AllJobsCompleted", "the success policy is satisfied")
            return
        await self._create_service(jobset)
        await self._scale(jobset, children.active)
        await self._create_jobs(jobset, children, by_name, draft)
        if suspended:
            await self._suspend(children.active)
            draft.suspended()
        else:
            await self._resume(jobset, children.active, by_name, draft)

    def _owned_jobs(self, jobset: FakeObject) -> Iterable[FakeObject]:
        cache = self._jobs.cache
        return [cache[key] for key in sorted(self._jobs_of[jobset.metadata.uid]) if key in cache]

    # --- Jobs and Service ---------------------------------------------------------------------------------------------

    async def _create_service(self, jobset: FakeObject) -> None:
        if not jobset_jobs.has_dns_names(jobset) or jobset.metadata.uid in self._with_service:
            return
        wanted = jobset_jobs.service(jobset)
        try:
            await self._client.get(SERVICES, wanted["metadata"]["name"], jobset.metadata.namespace)
        except NotFound:
            await self._client.create(SERVICES, wanted)
        self._with_service.add(jobset.metadata.uid)

    async def _create_jobs(
        self, jobset: FakeObject, children: Children, by_name: dict[str, Json], draft: StatusDraft
    ) -> None:
        ordered = jobset_policies.in_order(jobset) and not jobset.spec.get("suspend")
        for replicated_job in self._startable(jobset, by_name, ordered=ordered):
            taken = {job.metadata.name for job in children}
            count = jobset_policies.replicas(replicated_job)
            wanted = [jobset_jobs.job(jobset, replicated_job, index) for index in range(count)]
            missing = [job for job in wanted if job["metadata"]["name"] not in taken]
            await run_bounded(self._writes, [partial(self._client.create, JOBS, job) for job in missing])
            if ordered:
                draft.starting_in_order()
                return
        if ordered:
            draft.started_in_order()

    def _startable(self, jobset: FakeObject, by_name: dict[str, Json], *, ordered: bool) -> Iterable[Json]:
        for replicated_job in jobset.spec["replicatedJobs"]:
            if not jobset_policies.may_start(replicated_job, jobset, by_name):
                continue
            if not ordered or not jobset_policies.all_started(replicated_job, by_name[replicated_job["name"]]):
                yield replicated_job

    async def _delete(self, jobs: list[FakeObject]) -> None:
        await run_bounded(self._writes, [partial(self._delete_job, job) for job in jobs if not job.deleting])

    async def _delete_job(self, job: FakeObject) -> None:
        meta = job.metadata
        try:
            await self._client.delete(JOBS, meta.name, meta.namespace, uid=meta.uid, propagation="Foreground")
        except NotFound:
            return

    async def _scale(self, jobset: FakeObject, active: list[FakeObject]) -> None:
        """Elastic Jobs: parallelism and completions follow the JobSet's, where both are the same number."""
        specs = {job["name"]: job["template"]["spec"] for job in jobset.spec["replicatedJobs"]}
        for job in active:
            spec = specs.get(jobset_policies.replicated_job_of(job), {})
            size = spec.get("parallelism")
            if size is None or size != spec.get("completions"):
                continue
            if job.spec.get("parallelism") == size == job.spec.get("completions"):
                continue
            body = {"spec": {"parallelism": size, "completions": size}}
            await self._client.patch(JOBS, job.metadata.name, job.metadata.namespace, body=body, patch=PatchType.MERGE)

    async def _suspend(self, active: list[FakeObject]) -> None:
        for job in active:
            if not job.spec.get("suspend"):
                stopped = job.mutable_copy()
                stopped.spec["suspend"] = True
                await self._client.replace(JOBS, stopped.body())

    async def _resume(
        self, jobset: FakeObject, active: list[FakeObject], by_name: dict[str, Json], draft: StatusDraft
    ) -> None:
        ordered = jobset_policies.in_order(jobset)
        for replicated_job in self._startable(jobset, by_name, ordered=ordered):
            for job in active:
                if jobset_policies.replicated_job_of(job) == replicated_job["name"] and job.spec.get("suspend"):
                    await self._resume_job(job, replicated_job["template"]["spec"]["template"])
            if ordered:
                draft.starting_in_order()
                return
        draft.resumed()

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
