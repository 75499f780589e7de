"""The Job controller of the embedded cluster: Jobs in, pods out, and the Jobs' status.

It follows kube-controller-manager's as far as a JobSet and a pod group see it. Left out: tracking finalizers (it keeps
its books in memory instead: a pod that a Job deletes itself is never counted, as if its finalizer had been taken off
before), backoffLimitPerIndex, successPolicy, ttlSecondsAfterFinished, managedBy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from jobset_gate.fake.bounded import run_bounded
from jobset_gate.fake.job import pods, policies, status
from jobset_gate.fake.job.pod_tracker import PodTracker
from jobset_gate.fake.job.pods import JobPod, JobPodWire
from jobset_gate.fake.loop import Loop
from jobset_gate.fake.objects import Clock, FakeObject, Json, Key, holds, keep_whole, stamp
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, Conflict, NotFound
from jobset_gate.kube.resources import EVENTS, JOBS, PODS
from jobset_gate.runtime.informer import Informer
from jobset_gate.runtime.store import ObjectChange

PARALLEL_WRITES = 50
LONGEST_BACKOFF = 600.0
BATCH_SECONDS = 1.0  # changes of pods are looked at together, as kube-controller-manager does it
UNSEEN_SECONDS = 30.0  # after that a pod that was made and never seen counts as gone


class JobController:
    """`run()` for ever. `pod_backoff` is the wait in seconds before the first failed pod is replaced; it doubles."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        reaction_seconds: float = 0.0,
        pod_backoff: float = 10.0,
        namespace: str | None = None,
        workers: int = 8,
    ) -> None:
        self._client = client
        self._clock = clock
        self._pod_backoff = pod_backoff
        self._loop = Loop("job", self._reconcile, reaction=reaction_seconds, workers=workers)
        self._writes = asyncio.Semaphore(PARALLEL_WRITES)
        self._ledgers: dict[str, PodTracker] = {}
        self._opened: set[str] = set()
        self._jobs = Informer(
            client, JOBS, wire=FakeObject, convert=keep_whole, handler=self._job_changed, namespace=namespace
        )
        self._pods = Informer(
            client, PODS, wire=JobPodWire, convert=pods.decode_job_pod, handler=self._pod_changed, namespace=namespace
        )

    def pause(self) -> None:
        self._loop.pause()

    def resume(self) -> None:
        self._loop.resume()

    async def wait_synced(self) -> None:
        await self._pods.wait_synced()
        await self._jobs.wait_synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._jobs.run())
            await self.wait_synced()
            group.create_task(self._loop.run())

    # --- Events to keys ---------------------------------------------------------------------------------------------

    def _job_changed(self, change: ObjectChange[FakeObject]) -> None:
        if change.old is not None and (change.new is None or change.new.metadata.uid != change.old.metadata.uid):
            self._ledgers.pop(change.old.metadata.uid, None)
            self._opened.discard(change.old.metadata.uid)
        if change.new is not None:
            self._loop.add(change.key)

    def _pod_changed(self, change: ObjectChange[JobPod]) -> None:
        pod = change.new or change.old
        if pod is None:
            return
        self._loop.add_after((pod.key[0], pod.job), max(self._loop.reaction, BATCH_SECONDS))
        if not pod.job_uid:
            if change.old is not None and change.old.job_uid:
                self._ledger(change.old.job_uid).release_pod(change.old)
            return
        job = self._jobs.cache.get((pod.key[0], pod.job))
        if job is None and self._jobs.has_synced and change.new is None:
            return  # the Job is gone, and so are its books
        ledger = self._ledger(pod.job_uid)
        lost = ledger.observe(change.old, change.new)
        if lost is not None and job is not None and job.metadata.uid == lost.job_uid:
            ledger.record_pod(job, lost, self._clock(), lambda pod: self._counts(job, ledger, pod))

    def _ledger(self, uid: str) -> PodTracker:
        ledger = self._ledgers.get(uid)
        if ledger is None:
            ledger = self._ledgers[uid] = PodTracker(uid)
        return ledger

    # --- One Job ----------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> None:
        job = self._jobs.cache.get(key)
        if job is None or job.deleting:
            return
        ledger = self._ledger(job.metadata.uid)
        if job.metadata.uid not in self._opened:
            self._opened.add(job.metadata.uid)
            ledger.load_status(job)
        if status.finished(job):
            await self._delete(ledger, ledger.active)
            return
        ledger.expire_unseen(self._clock() - UNSEEN_SECONDS)
        only_failed = policies.only_failed_replaced(job)
        ledger.record_finished(job, self._clock(), lambda pod: self._counts(job, ledger, pod), only_failed=only_failed)
        if ledger.verdict is None and not holds(job.status.get("conditions"), "SuccessCriteriaMet"):
            ledger.verdict = policies.fatal(job, ledger)
        drafted = job.mutable_copy()
        problem: ApiError | None = None
        try:
            await self._act(drafted, ledger)
        except ApiError as error:
            problem = error
        status.count(drafted, ledger)
        if drafted.status != job.status:
            await self._client.replace(JOBS, drafted.body(), subresource="status")
        if problem is not None:
            raise problem

    async def _act(self, job: FakeObject, ledger: PodTracker) -> None:
        suspended = bool(job.spec.get("suspend"))
        left, late = policies.overdue(job, self._clock) if not suspended else (0.0, None)
        if left > 0:
            self._loop.add_after(job.metadata.key, left)
        if ledger.verdict is None and not holds(job.status.get("conditions"), "SuccessCriteriaMet"):
            ledger.verdict = policies.exhausted(job, ledger) or late
        now = stamp(self._clock())
        if ledger.verdict is not None:
            await self._delete(ledger, ledger.active)
            status.fail(job, ledger, *ledger.verdict, now)
            return
        if policies.complete(job, ledger):
            await self._delete(ledger, ledger.active)
            status.complete(job, ledger, now)
            return
        if suspended:
            await self._delete(ledger, ledger.active)
            status.suspend(job, now)
            return
        status.start(job, now)
        await self._delete(ledger, policies.surplus(job, ledger))
        await self._create_missing(job, ledger)

    def _counts(self, job: FakeObject, ledger: PodTracker, pod: JobPod) -> bool:
        verdict, message = policies.action(job, pod)
        if verdict == "FailJob" and ledger.verdict is None:
            ledger.verdict = ("PodFailurePolicy", message)
        return verdict != "Ignore"

    # --- Pods -------------------------------------------------------------------------------------------------------

    async def _create_missing(self, job: FakeObject, ledger: PodTracker) -> None:
        wanted = policies.missing(job, ledger)
        if not wanted:
            return
        if ledger.streak:
            pause = min(LONGEST_BACKOFF, self._pod_backoff * 2 ** (ledger.streak - 1))
            left = ledger.last_failure + pause - self._clock()
            if left > 0:
                self._loop.add_after(job.metadata.key, left)
                return
        # The first one alone: where a quota or an admission says no, it says no a hundred times.
        await self._create(job, ledger, wanted[0])
        await run_bounded(self._writes, [partial(self._create, job, ledger, index) for index in wanted[1:]])

    async def _create(self, job: FakeObject, ledger: PodTracker, index: int | None) -> None:
        try:
            made = await self._client.create(PODS, pods.render(job, index), type=JobPodWire)
        except ApiError as error:
            await self._tell(job, f"Error creating: {error.message}")
            raise
        key = (made.metadata.namespace, made.metadata.name)
        if key not in ledger.pods:
            ledger.created[key] = (index, self._clock())
            self._loop.add_after(job.metadata.key, UNSEEN_SECONDS)

    async def _delete(self, ledger: PodTracker, targets: Iterable[JobPod]) -> None:
        await run_bounded(self._writes, [partial(self._delete_one, ledger, pod) for pod in targets])

    async def _delete_one(self, ledger: PodTracker, pod: JobPod) -> None:
        ledger.ours.add(pod.uid)
        try:
            await self._client.delete(PODS, pod.key[1], pod.key[0], uid=pod.uid)
        except (NotFound, Conflict):
            return
        except ApiError:
            ledger.ours.discard(pod.uid)
            raise

    async def _tell(self, job: FakeObject, message: str) -> None:
        """The event in which people (and jobset-gate) read that a quota is used up."""
        now = stamp(self._clock())
        meta = job.metadata
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
