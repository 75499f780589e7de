"""Counts a gang: expected and started slots (A4).

A slot is (replicatedJob, job index, completion index). Pods are counted by slot, so a replacement and its terminating
predecessor are one. Every pass counts from scratch: a running total could drift. The cost is proportional to existing
Jobs and pods, not to the spec: a user may create a JobSet of a billion Jobs.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from jobset_gate.barrier.model import ANY_POD, BarrierStage, GangSnapshot, JobSeen, PodSeen, ReplicatedJobSeen, Value
from jobset_gate.objects.devices import Devices


class GangCount(Value, frozen=True):
    """The count of a gang (A4)."""

    expected: int
    started: int
    per_job: tuple[tuple[str, int, int], ...]
    """(replicatedJob, started, expected)."""
    epoch: int
    """Highest epoch of a counted pod; -1 without one."""
    live_epoch: int
    """Highest epoch of a live pod; -1 without one."""
    first_start: float | None
    """Earliest start of a counted pod of the live epoch; older pods started for an earlier generation."""
    first_announced: float | None = None
    """The same of pods that are only announced; by the controller's clock, not in whole seconds."""
    last_start: float | None = None

    @property
    def complete(self) -> bool:
        """Every slot has a started pod or needs none."""
        return self.started >= self.expected


@dataclass(frozen=True)
class JobSlots:
    """The slots of one Job, existing or not; or of several consecutive Jobs without any object."""

    target: ReplicatedJobSeen
    job_index: int
    job: JobSeen | None
    pods: Sequence[PodSeen]
    suspended: bool
    """The workload or this Job is suspended: no pod counts. A Job that is Complete needs none."""
    announced: Container[str] = ()
    """UIDs of pods with an open request on the gate stream."""
    repeat: int = 1
    """Number of consecutive Jobs from `job_index` on; above 1 none of them has a Job or a pod."""

    @property
    def index_count(self) -> int:
        """Number of completion indexes; an elastic Job that shrank leaves pods of other indexes behind."""
        return self.target.pods_per_job if self.target.completions is None else self.target.completions

    @property
    def completed_indexes(self) -> frozenset[int]:
        """Of an Indexed Job."""
        return self.job.completed if self.job is not None else frozenset()

    @property
    def failed_indexes(self) -> frozenset[int]:
        """Of an Indexed Job: those that have failed for good, so that no pod starts for them any more."""
        return frozenset() if self.job is None else self.job.failed

    @property
    def failed_count(self) -> int:
        """Slots of `required` that can never start: of the indexes that have not failed, too few are left."""
        if not self.failed_indexes:
            return 0
        gone = sum(index < self.index_count for index in self.failed_indexes | self.completed_indexes)
        return max(0, self.required - (self.index_count - gone))

    @property
    def required(self) -> int:
        """Pods that must run at once: a finished slot needs none, in any epoch of the attempt."""
        if self.job is not None and self.job.complete:
            return 0
        if self.job is None or self.target.completions is None:
            return self.target.pods_per_job
        if self.target.indexed:
            # An elastic Job may no longer have some of the completed indexes.
            finished = sum(index < self.index_count for index in self.job.completed)
        else:
            # status.succeeded lags behind the pods; a pod must not be counted twice.
            finished = max(self.job.succeeded, len(self._succeeded_pods))
        return max(0, min(self.target.parallelism, self.target.completions - finished))

    @property
    def missing_count(self) -> int:
        """Slots without a started pod, of each of the Jobs."""
        return max(0, self.required - len(self.started_pods))

    @cached_property
    def started_pods(self) -> list[PodSeen]:
        """Started pods, one per slot that is not completed."""
        if self.job is None or self.suspended:
            return []
        ready = [pod for pod in self.own_pods if pod.counts(self.announced)]
        if not self.target.indexed:
            return ready if self.target.completions is None else [pod for pod in ready if pod.phase != "Succeeded"]
        by_index: dict[int, PodSeen] = {}
        slots, done = self.index_count, self.completed_indexes | self.failed_indexes
        for pod in ready:
            if pod.index is None or not 0 <= pod.index < slots or pod.index in done:
                continue
            other = by_index.get(pod.index)
            if other is None or pod.epoch > other.epoch:
                by_index[pod.index] = pod
        return list(by_index.values())

    @property
    def own_pods(self) -> Iterator[PodSeen]:
        """Pods of this Job's UID, not of a deleted Job of the same name; all pods of a gang without Jobs."""
        uid = "" if self.job is None else self.job.uid
        return (pod for pod in self.pods if pod.job_uid == uid != "") if uid != ANY_POD else iter(self.pods)

    @property
    def _succeeded_pods(self) -> list[PodSeen]:
        return [pod for pod in self.own_pods if pod.alive and pod.phase == "Succeeded"]


def count_gang(seen: GangSnapshot, job_slots: Iterable[JobSlots] | None = None) -> GangCount:
    """Counts a gang. No pod counts while the workload or the pod's Job is suspended."""
    started = dict.fromkeys((target.name for target in seen.workload.targets), 0)
    counted: list[PodSeen] = []
    for slots in list_job_slots(seen) if job_slots is None else job_slots:
        started[slots.target.name] += slots.repeat * (slots.target.pods_per_job - slots.missing_count)
        counted += slots.started_pods
    live_epoch = max((pod.epoch for pod in gang_pods(seen) if pod.alive), default=-1)
    since: list[float] = []
    announced: list[float] = []
    for pod in counted:
        if pod.epoch != live_epoch:
            continue
        if pod.barrier_since is not None:
            since.append(pod.barrier_since)
        elif pod.stage is BarrierStage.WAITING and pod.uid in seen.announced:
            announced.append(seen.announced[pod.uid])
    per_job = tuple((target.name, started[target.name], target.expected) for target in seen.workload.targets)
    return GangCount(
        expected=sum(expected for _, _, expected in per_job),
        started=sum(started.values()),
        per_job=per_job,
        epoch=max((pod.epoch for pod in counted), default=-1),
        live_epoch=live_epoch,
        first_start=min(since, default=None),
        first_announced=min(announced, default=None),
        last_start=max((*since, *announced), default=None),
    )


def gang_pods(seen: GangSnapshot) -> Iterator[PodSeen]:
    """The pods of this workload UID and restart attempt (A5), of any epoch. An empty UID never matches (A2)."""
    uid, attempt = seen.workload.uid, seen.workload.attempt
    return (pod for pod in seen.pods if pod.workload_uid == uid != "" and pod.attempt == attempt)


def device_holders(seen: GangSnapshot) -> Iterator[tuple[PodSeen, Devices]]:
    """Started pods that wait in their barrier, with the devices that each of them holds meanwhile."""
    devices = {target.name: target.devices for target in seen.workload.targets if target.devices}
    for pod in gang_pods(seen) if devices else ():
        held = devices.get(pod.replicated_job)
        waits = pod.stage is not BarrierStage.PASSED and pod.phase != "Succeeded"
        if held and waits and pod.counts(seen.announced):
            yield pod, held


def list_job_slots(seen: GangSnapshot) -> Iterator[JobSlots]:
    """The gang's Jobs in the order of the spec; consecutive ones without Job and pods are one JobSlots."""
    workload = seen.workload
    # The JobSet controller replaces a Job that is being deleted.
    jobs = {
        (job.replicated_job, job.job_index): job
        for job in seen.jobs
        if job.workload_uid == workload.uid != "" and job.attempt == workload.attempt and not job.deleting
    }
    pods: dict[tuple[str, int], list[PodSeen]] = {}
    for pod in gang_pods(seen):
        pods.setdefault((pod.replicated_job, pod.job_index), []).append(pod)
    there: dict[str, list[int]] = {}
    for name, number in jobs:
        there.setdefault(name, []).append(number)
    for name, number in pods.keys() - jobs.keys():
        there.setdefault(name, []).append(number)
    for target in workload.targets:
        following = 0
        for number in sorted(there.get(target.name, ())):
            if not 0 <= number < target.replicas:
                continue  # the spec no longer has this Job
            if number > following:
                yield _absent_jobs(seen, target, following, number)
            job = jobs.get((target.name, number))
            suspended = workload.suspended or (job is not None and job.suspended)
            yield JobSlots(target, number, job, pods.get((target.name, number), ()), suspended, seen.announced)
            following = number + 1
        if following < target.replicas:
            yield _absent_jobs(seen, target, following, target.replicas)


def _absent_jobs(seen: GangSnapshot, target: ReplicatedJobSeen, first: int, end: int) -> JobSlots:
    return JobSlots(target, first, None, (), seen.workload.suspended, seen.announced, repeat=end - first)
