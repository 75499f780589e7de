"""The Job controller of the embedded cluster: Jobs in, pods out, and the Jobs' status.

It does what a JobSet or a pod group sees of kube-controller-manager. Left out: tracking finalizers (it counts in
memory), pod failure and success policies, deadlines, TTL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from jobset_gate.fake import job_pods
from jobset_gate.fake.job_pods import JobPod, JobPodWire, PodTracker
from jobset_gate.fake.objects import Clock, FakeObject, Json, Key, holds, keep_whole, stamp
from jobset_gate.fake.tasks import Reconciler, run_bounded
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, Conflict, NotFound
from jobset_gate.kube.resources import EVENTS, JOBS, PODS
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange

PARALLEL_WRITES = 50
LONGEST_BACKOFF = 600.0
BATCH_SECONDS = 1.0  # kube-controller-manager collects changes of pods for this long
UNSEEN_SECONDS = 30.0  # a created pod that no watch shows within this time counts as gone


class JobController:
    """`run()` until cancelled. `pod_backoff`: seconds before the first failed pod is replaced; it doubles."""

    def __init__(
        self, client: Client, clock: Clock, namespace: str | None = None, *, pod_backoff: float = 10.0
    ) -> None:
        self._client = client
        self._clock = clock
        self._pod_backoff = pod_backoff
        self._queue = Reconciler("job", self._reconcile, workers=8)
        self._writes = asyncio.Semaphore(PARALLEL_WRITES)
        self._trackers: dict[str, PodTracker] = {}
        self._jobs = Informer(client, WatchSource(JOBS, FakeObject, keep_whole, self._on_job, namespace=namespace))
        self._pods = Informer(
            client, WatchSource(PODS, JobPodWire, job_pods.decode_job_pod, self._on_pod, namespace=namespace)
        )

    async def wait_synced(self) -> None:
        await self._pods.wait_synced()
        await self._jobs.wait_synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._jobs.run())
            await self.wait_synced()
            group.create_task(self._queue.run())

    # --- Events to keys -----------------------------------------------------------------------------------------------

    def _on_job(self, change: ObjectChange[FakeObject]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._trackers.pop(old.metadata.uid, None)
        if new is not None:
            self._queue.add(change.key)

    def _on_pod(self, change: ObjectChange[JobPod]) -> None:
        pod = change.new or change.old
        if pod is None:
            return
        self._queue.add_after((pod.key[0], pod.job), BATCH_SECONDS)
        job = self._jobs.cache.get((pod.key[0], pod.job))
        if job is None and self._jobs.has_synced and change.new is None:
            return  # the Job is gone, and so is its tracker
        tracker = self._tracker(pod.job_uid)
        lost = tracker.observe(change.old, change.new)
        if lost is not None and job is not None and job.metadata.uid == lost.job_uid:
            tracker.count_pod(job, lost, self._clock())

    def _tracker(self, uid: str) -> PodTracker:
        return self._trackers.setdefault(uid, PodTracker())

    # --- One Job ------------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> None:
        job = self._jobs.cache.get(key)
        if job is None or job.deleting:
            return
        now = self._clock()
        tracker = self._tracker(job.metadata.uid)
        tracker.load_status(job)
        if job_pods.finished(job):
            await self._delete(tracker, tracker.active)
            return
        tracker.created = {key: made for key, made in tracker.created.items() if made[1] >= now - UNSEEN_SECONDS}
        tracker.count_ended(job, now)
        draft = job.mutable_copy()
        problem: ApiError | None = None
        try:
            await self._act(draft, tracker, stamp(now))
        except ApiError as error:
            problem = error
        job_pods.set_counts(draft, tracker)
        if draft.status != job.status:
            await self._client.replace(JOBS, draft.body(), subresource="status")
        if problem is not None:
            raise problem

    async def _act(self, job: FakeObject, tracker: PodTracker, now: str) -> None:
        if holds(job.status.get("conditions"), "FailureTarget") or tracker.backoff_limit_exceeded(job):
            await self._delete(tracker, tracker.active)
            message = "Job has reached the specified backoff limit"
            job_pods.set_ended(job, tracker, "Failed", "BackoffLimitExceeded", message, now)
        elif tracker.complete(job):
            await self._delete(tracker, tracker.active)
            message = "Reached expected number of succeeded pods"
            job_pods.set_ended(job, tracker, "Complete", "CompletionsReached", message, now)
        elif job.spec.get("suspend"):
            await self._delete(tracker, tracker.active)
            job_pods.set_condition(job, "Suspended", "True", "JobSuspended", "Job suspended", now)
        else:
            job_pods.set_started(job, now)
            await self._delete(tracker, tracker.surplus(job))
            await self._create_missing(job, tracker)

    # --- Pods ---------------------------------------------------------------------------------------------------------

    async def _create_missing(self, job: FakeObject, tracker: PodTracker) -> None:
        missing = tracker.missing(job)
        if not missing:
            return
        if tracker.failures_in_row:
            pause = min(LONGEST_BACKOFF, self._pod_backoff * 2 ** (tracker.failures_in_row - 1))
            left = tracker.last_failure + pause - self._clock()
            if left > 0:
                self._queue.add_after(job.metadata.key, left)
                return
        # The first one alone: a quota or an admission webhook that refuses it refuses all.
        await self._create(job, tracker, missing[0])
        await run_bounded(self._writes, [partial(self._create, job, tracker, index) for index in missing[1:]])

    async def _create(self, job: FakeObject, tracker: PodTracker, index: int | None) -> None:
        try:
            made = await self._client.create(PODS, job_pods.render(job, index), type=JobPodWire)
        except ApiError as error:
            await self._record_failure(job, f"Error creating: {error.message}")
            raise
        key = (made.metadata.namespace, made.metadata.name)
        if key not in tracker.pods:
            tracker.created[key] = (index, self._clock())
            self._queue.add_after(job.metadata.key, UNSEEN_SECONDS)

    async def _delete(self, tracker: PodTracker, pods: Iterable[JobPod]) -> None:
        await run_bounded(self._writes, [partial(self._delete_pod, tracker, pod) for pod in pods])

    async def _delete_pod(self, tracker: PodTracker, pod: JobPod) -> None:
        tracker.deleted.add(pod.uid)
        try:
            await self._client.delete(PODS, pod.key[1], pod.key[0], uid=pod.uid)
        except (NotFound, Conflict):
            return
        except ApiError:
            tracker.deleted.discard(pod.uid)
            raise

    async def _record_failure(self, job: FakeObject, message: str) -> None:
        """The Event in which jobset-gate reads that a quota is used up."""
        now, meta = stamp(self._clock()), job.metadata
        event: Json = {
            "metadata": {"generateName": f"{meta.name}.", "namespace": meta.namespace},
            "involvedObject": {
                "apiVersion": "batch/v1", "kind": "Job", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid
            },
            "type": "Warning",
            "reason": "FailedCreate",
            "message": message,
            "source": {"component": "job-controller"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }  # fmt: skip
        await self._client.create(EVENTS, event)
