"""Counts a gang: how many slots are expected and how many have started (A4).

A slot is (replicatedJob, job index, completion index). Pods are counted by slot, so a replacement beside its
terminating predecessor is one. Every pass counts from scratch: no running total that could drift. It costs time for
what is there, not for what is asked for: anybody may write a JobSet of a billion Jobs.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from jobset_gate.barrier.model import BarrierStage, GangCount, GangSnapshot, JobSeen, PodSeen, ReplicatedJobSeen


@dataclass(frozen=True, slots=True)
class JobSlots:
    """One Job's share of the gang, whether or not that Job exists yet; or that of several that are not there."""

    target: ReplicatedJobSeen
    job_index: int
    """The job index."""
    job: JobSeen | None
    pods: Sequence[PodSeen]
    suspended: bool
    """The JobSet or this Job is: no pod of it counts. A Job that became Complete meanwhile is so for good."""
    announced: Container[str] = ()
    """UIDs of the pods that hold the gate stream open."""
    repeat: int = 1
    """So many Jobs from this number on, none of which has a Job or a pod yet if there are several."""
    _started_pods: list[list[PodSeen]] = field(default_factory=list, compare=False, repr=False)
    """Its started pods once they have been looked for: both who counts and who names the missing ask for them."""

    @property
    def index_count(self) -> int:
        """How many completion indexes there are; an elastic Job that shrank leaves pods of others behind."""
        return self.target.pods_per_job if self.target.completions is None else self.target.completions

    @property
    def completed_indexes(self) -> frozenset[int]:
        """Completed indexes."""
        return self.job.completed if self.job is not None else frozenset()

    @property
    def required(self) -> int:
        """Pods it still has to run at once: what has finished needs no pod, in any epoch of the attempt."""
        if self.job is not None and self.job.complete:
            return 0
        if self.job is None or self.target.completions is None:
            return self.target.pods_per_job
        if self.target.indexed:
            # Some may be of indexes that an elastic Job no longer has.
            finished = sum(index < self.index_count for index in self.job.completed)
        else:
            # The Job counts a pod that succeeded a moment later; it must not be counted twice.
            finished = max(self.job.succeeded, len(self._succeeded_pods))
        return max(0, min(self.target.parallelism, self.target.completions - finished))

    @property
    def missing_count(self) -> int:
        """Slots of each of its Jobs that are still to be filled: who counts and who names the missing go by this."""
        return max(0, self.required - len(self.started_pods()))

    def started_pods(self) -> list[PodSeen]:
        """Its started pods, one per slot that is not done."""
        if not self._started_pods:
            self._started_pods.append(self._find_started_pods())
        return self._started_pods[0]

    def _find_started_pods(self) -> list[PodSeen]:
        if self.job is None or self.suspended:
            return []
        ready = [pod for pod in self._own_pods if pod.counts(self.announced)]
        if not self.target.indexed:
            return ready if self.target.completions is None else [pod for pod in ready if pod.phase != "Succeeded"]
        by_index: dict[int, PodSeen] = {}
        slots, done = self.index_count, self.completed_indexes
        for pod in ready:
            if pod.index is None or not 0 <= pod.index < slots or pod.index in done:
                continue
            other = by_index.get(pod.index)
            if other is None or pod.epoch > other.epoch:
                by_index[pod.index] = pod
        return list(by_index.values())

    @property
    def _own_pods(self) -> Iterator[PodSeen]:
        """Pods of this very Job, not of a namesake that it replaces."""
        uid = "" if self.job is None else self.job.uid
        return (pod for pod in self.pods if pod.job_uid == uid != "")

    @property
    def _succeeded_pods(self) -> list[PodSeen]:
        return [pod for pod in self._own_pods if pod.alive and pod.phase == "Succeeded"]


def count_gang(seen: GangSnapshot, job_slots: Iterable[JobSlots] | None = None) -> GangCount:
    """The count of a gang as it stands. No pod counts while the JobSet or the pod's Job is suspended.

    `parts`: its shares, where they are known already.
    """
    started = dict.fromkeys((target.name for target in seen.jobset.targets), 0)
    counted: list[PodSeen] = []
    for share in list_job_slots(seen) if job_slots is None else job_slots:
        started[share.target.name] += share.repeat * (share.target.pods_per_job - share.missing_count)
        counted += share.started_pods()
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
    per_job = tuple((target.name, started[target.name], target.expected) for target in seen.jobset.targets)
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
    """The pods of the gang's present life and restart attempt (A5), at any epoch. An empty UID never matches (A2)."""
    uid, attempt = seen.jobset.uid, seen.jobset.attempt
    return (pod for pod in seen.pods if pod.jobset_uid == uid != "" and pod.attempt == attempt)


def list_job_slots(seen: GangSnapshot) -> Iterator[JobSlots]:
    """The gang Job by Job, in the order of the spec; neighbours of which nothing is there are one."""
    jobset = seen.jobset
    # A Job on its way out has been replaced or will be.
    jobs = {
        (job.replicated_job, job.job_index): job
        for job in seen.jobs
        if job.jobset_uid == jobset.uid != "" and job.attempt == jobset.attempt and not job.deleting
    }
    pods: dict[tuple[str, int], list[PodSeen]] = {}
    for pod in gang_pods(seen):
        pods.setdefault((pod.replicated_job, pod.job_index), []).append(pod)
    there: dict[str, list[int]] = {}
    for name, number in jobs:
        there.setdefault(name, []).append(number)
    for name, number in pods.keys() - jobs.keys():
        there.setdefault(name, []).append(number)
    for target in jobset.targets:
        following = 0
        for number in sorted(there.get(target.name, ())):
            if not 0 <= number < target.replicas:
                continue  # of a Job that the spec has no more
            if number > following:
                yield _absent_jobs(seen, target, following, number)
            job = jobs.get((target.name, number))
            suspended = jobset.suspended or (job is not None and job.suspended)
            yield JobSlots(target, number, job, pods.get((target.name, number), ()), suspended, seen.announced)
            following = number + 1
        if following < target.replicas:
            yield _absent_jobs(seen, target, following, target.replicas)


def _absent_jobs(seen: GangSnapshot, target: ReplicatedJobSeen, first: int, end: int) -> JobSlots:
    return JobSlots(target, first, None, (), seen.jobset.suspended, seen.announced, repeat=end - first)
