"""A stand-in for the JobSet controller: JobSets in, Jobs out, and the JobSet's own part of its status.

It talks to the API server like the real one (list, watch, PUT with resourceVersion, retry on conflict), so it runs
against the embedded API server and a real one. Left out: exclusive placement, volume claims, in-place restart, events.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from jobset_gate import names
from jobset_gate.fake.bounded import run_bounded
from jobset_gate.fake.jobset import children as family
from jobset_gate.fake.jobset import conditions, policies, render
from jobset_gate.fake.jobset.children import Children
from jobset_gate.fake.jobset.conditions import StatusDraft
from jobset_gate.fake.loop import Loop
from jobset_gate.fake.objects import Clock, FakeObject, Json, Key, controller_of, holds, keep_whole, seconds
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, SERVICES, Resource
from jobset_gate.runtime.informer import Informer
from jobset_gate.runtime.store import ObjectChange

PARALLEL_WRITES = 50


class JobSetController:
    """`run()` for ever. `reaction_seconds` is how late it looks at a change; see Loop for what that means."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        reaction_seconds: float = 0.0,
        namespace: str | None = None,
        workers: int = 4,
    ) -> None:
        self._client = client
        self._clock = clock
        self._loop = Loop("jobset", self._reconcile, reaction=reaction_seconds, workers=workers)
        self._jobs_of: defaultdict[str, set[Key]] = defaultdict(set)
        self._served: set[str] = set()
        self._news = asyncio.Event()
        self._writes = asyncio.Semaphore(PARALLEL_WRITES)
        self._jobsets = Informer(
            client, JOBSETS, wire=FakeObject, convert=keep_whole, handler=self._jobset_changed, namespace=namespace
        )
        self._jobs = Informer(
            client,
            JOBS,
            wire=FakeObject,
            convert=keep_whole,
            handler=self._job_changed,
            namespace=namespace,
            label_selector=names.JS_NAME,
        )

    @property
    def reaction_seconds(self) -> float:
        return self._loop.reaction

    @reaction_seconds.setter
    def reaction_seconds(self, value: float) -> None:
        self._loop.reaction = value

    def pause(self) -> None:
        """Look at nothing until `resume`."""
        self._loop.pause()

    def resume(self) -> None:
        self._loop.resume()

    async def wait_seen(self, jobset: Json) -> None:
        """Until its own view of this JobSet is not older: what happens to a paused controller between two views."""
        meta = jobset["metadata"]
        while not self._has_seen((meta["namespace"], meta["name"]), int(meta["resourceVersion"])):
            self._news.clear()
            await self._news.wait()

    async def wait_synced(self) -> None:
        await self._jobs.wait_synced()
        await self._jobsets.wait_synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run())
            group.create_task(self._jobsets.run())
            await self.wait_synced()
            group.create_task(self._loop.run())

    # --- Events to keys ---------------------------------------------------------------------------------------------

    def _has_seen(self, key: Key, version: int) -> bool:
        seen = self._jobsets.cache.get(key)
        return seen is not None and int(seen.metadata.resource_version) >= version

    def _jobset_changed(self, change: ObjectChange[FakeObject]) -> None:
        self._news.set()
        if change.new is not None:
            self._loop.add(change.key)

    def _job_changed(self, change: ObjectChange[FakeObject]) -> None:
        for job in (change.old, change.new):
            owner = controller_of(job.metadata) if job is not None else None
            if owner is None or owner["kind"] != "JobSet":
                continue
            if job is change.new:
                self._jobs_of[owner["uid"]].add(change.key)
            else:
                self._jobs_of[owner["uid"]].discard(change.key)
            self._loop.add((change.key[0], owner["name"]))

    # --- One JobSet -------------------------------------------------------------------------------------------------

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
        children = family.sort(jobset, self._children(jobset))
        draft.put("replicatedJobsStatus", family.statuses(jobset, children))
        statuses: dict[str, Json] = {status["name"]: status for status in jobset.status["replicatedJobsStatus"]}
        if _finished(jobset):
            await self._delete(children.active)
            await self._expire(jobset)
            return
        await self._delete(children.previous)
        suspended = bool(jobset.spec.get("suspend"))
        if not suspended and policies.all_ready(jobset, statuses):
            conditions.restarting_over(draft, "JobsReady", "every job is ready again")
        if children.failed:
            policies.fail_or_restart(jobset, children, draft)
            return
        if children.successful and policies.succeeded(jobset, children):
            conditions.completed(draft)
            return
        await self._create_service(jobset)
        await self._scale(jobset, children.active)
        await self._create_jobs(jobset, children, statuses, draft)
        if suspended:
            await self._suspend(children.active)
            conditions.suspended(draft)
            return
        await self._resume(jobset, children.active, statuses, draft)

    def _children(self, jobset: FakeObject) -> Iterable[FakeObject]:
        cache = self._jobs.cache
        return [cache[key] for key in sorted(self._jobs_of[jobset.metadata.uid]) if key in cache]

    async def _expire(self, jobset: FakeObject) -> None:
        ttl = jobset.spec.get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        ended = max(
            seconds(condition["lastTransitionTime"]) or 0.0
            for condition in jobset.status["conditions"]
            if condition["type"] in ("Completed", "Failed") and condition["status"] == "True"
        )
        left = ended + ttl - self._clock()
        if left > 0:
            self._loop.add_after(jobset.metadata.key, left)
            return
        await self._remove(JOBSETS, jobset)

    # --- Jobs and Service -------------------------------------------------------------------------------------------

    async def _create_service(self, jobset: FakeObject) -> None:
        if not render.names_in_dns(jobset) or jobset.metadata.uid in self._served:
            return
        wanted = render.service(jobset)
        try:
            await self._client.get(SERVICES, wanted["metadata"]["name"], jobset.metadata.namespace)
        except NotFound:
            await self._client.create(SERVICES, wanted)
        self._served.add(jobset.metadata.uid)

    async def _create_jobs(
        self, jobset: FakeObject, children: Children, statuses: dict[str, Json], draft: StatusDraft
    ) -> None:
        ordered = policies.in_order(jobset) and not jobset.spec.get("suspend")
        for replicated_job in jobset.spec["replicatedJobs"]:
            if not policies.may_start(replicated_job, jobset, statuses):
                continue
            if ordered and policies.all_started(replicated_job, statuses[replicated_job["name"]]):
                continue
            await self._create_missing(jobset, replicated_job, children)
            if ordered:
                conditions.starting_in_order(draft)
                return
        if ordered:
            conditions.started_in_order(draft)

    async def _create_missing(self, jobset: FakeObject, replicated_job: Json, children: Children) -> None:
        blocking = (jobset.spec.get("failurePolicy") or {}).get("restartStrategy") == "BlockingRecreate"
        if blocking and children.previous:
            return
        taken = {job.metadata.name for job in children}
        wanted = (render.job(jobset, replicated_job, index) for index in range(render.replicas(replicated_job)))
        missing = [job for job in wanted if job["metadata"]["name"] not in taken]
        await run_bounded(self._writes, [partial(self._client.create, JOBS, job) for job in missing])

    async def _delete(self, jobs: list[FakeObject]) -> None:
        doomed = [job for job in jobs if not job.deleting]
        await run_bounded(self._writes, [partial(self._remove, JOBS, job) for job in doomed])

    async def _remove(self, resource: Resource, target: FakeObject) -> None:
        meta = target.metadata
        try:
            await self._client.delete(resource, meta.name, meta.namespace, uid=meta.uid, propagation="Foreground")
        except NotFound:
            return

    async def _scale(self, jobset: FakeObject, active: list[FakeObject]) -> None:
        """Elastic Jobs: parallelism and completions follow the JobSet's, where both are the same number."""
        specs = {job["name"]: job["template"]["spec"] for job in jobset.spec["replicatedJobs"]}
        for job in active:
            spec = specs.get(family.replicated_job_of(job), {})
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
        self, jobset: FakeObject, active: list[FakeObject], statuses: dict[str, Json], draft: StatusDraft
    ) -> None:
        ordered = policies.in_order(jobset)
        for replicated_job in jobset.spec["replicatedJobs"]:
            name = replicated_job["name"]
            if not policies.may_start(replicated_job, jobset, statuses):
                continue
            if ordered and policies.all_started(replicated_job, statuses[name]):
                continue
            for job in active:
                if family.replicated_job_of(job) == name and job.spec.get("suspend"):
                    await self._resume_one(job, replicated_job["template"]["spec"]["template"])
            if ordered:
                conditions.starting_in_order(draft)
                return
        conditions.resumed(draft)

    async def _resume_one(self, job: FakeObject, template: Json) -> None:
        """The Job's template may change only while it has no start time, so that goes first."""
        going = job.mutable_copy()
        if going.status.pop("startTime", None) is not None:
            written = await self._client.replace(JOBS, going.body(), subresource="status", type=FakeObject)
            going.metadata.resource_version = written.metadata.resource_version
        _merge_template(going.spec["template"], template)
        going.spec["suspend"] = False
        await self._client.replace(JOBS, going.body())


def _finished(jobset: FakeObject) -> bool:
    stands = jobset.status.get("conditions")
    return holds(stands, "Completed") or holds(stands, "Failed")


def _merge_template(into: Json, template: Json) -> None:
    """What Kueue may have changed while the JobSet was suspended; others may have added to the Job's, so merge."""
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
