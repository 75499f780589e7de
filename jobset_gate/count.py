"""Counts a gang: expected slots, started slots, and the missing ones with their reasons (A4).

A slot is (replicatedJob, job index, completion index). Pods are counted by slot, so a replacement beside its
terminating predecessor is one. Every pass counts from scratch: no running total that could drift.
"""

from collections.abc import Iterable, Iterator
from operator import attrgetter

from jobset_gate.model import (
    GangSeen,
    JobSeen,
    Missing,
    PodSeen,
    ReplicatedJobSeen,
    Stall,
    Tally,
    Why,
)

_JobKey = tuple[str, int]


def tally(seen: GangSeen) -> Tally:
    """The count of a gang as it stands. Nothing counts while the JobSet or the pod's Job is suspended."""
    jobs = _jobs(seen)
    pods = _pods_by_job(seen)
    counted: list[PodSeen] = []
    per_job: list[tuple[str, int, int]] = []
    for target in seen.jobset.targets:
        started = sum(
            _started(seen, target, jobs.get((target.name, number)), pods.get((target.name, number), ()), counted)
            for number in range(target.replicas)
        )
        per_job.append((target.name, started, target.expected))
    live_epoch = max((pod.epoch for pod in members(seen) if pod.alive), default=-1)
    since = [pod.barrier_since for pod in counted if pod.barrier_since is not None and pod.epoch == live_epoch]
    return Tally(
        expected=sum(expected for _, _, expected in per_job),
        started=sum(started for _, started, _ in per_job),
        per_job=tuple(per_job),
        epoch=max((pod.epoch for pod in counted), default=-1),
        live_epoch=live_epoch,
        first_start=min(since, default=None),
        last_start=max(since, default=None),
    )


def members(seen: GangSeen) -> Iterator[PodSeen]:
    """The pods of the gang's present life and restart attempt (A5), at any epoch. An empty UID never matches (A2)."""
    uid, attempt = seen.jobset.uid, seen.jobset.attempt
    return (pod for pod in seen.pods if pod.jobset_uid == uid != "" and pod.attempt == attempt)


def missing(seen: GangSeen) -> Iterator[Missing]:
    """Every slot without a started pod, in the order of the spec, with the reason why."""
    jobs = _jobs(seen)
    pods = _pods_by_job(seen)
    denials = dict(seen.denials)
    for target in seen.jobset.targets:
        for number in range(target.replicas):
            key = (target.name, number)
            yield from _missing(seen, target, number, jobs.get(key), pods.get(key, ()), denials)


def _jobs(seen: GangSeen) -> dict[_JobKey, JobSeen]:
    """The Jobs of the present attempt; one on its way out has been replaced or will be."""
    uid, attempt = seen.jobset.uid, seen.jobset.attempt
    return {
        (job.replicated_job, job.job_index): job
        for job in seen.jobs
        if job.jobset_uid == uid != "" and job.attempt == attempt and not job.deleting
    }


def _pods_by_job(seen: GangSeen) -> dict[_JobKey, list[PodSeen]]:
    by_job: dict[_JobKey, list[PodSeen]] = {}
    for pod in members(seen):
        by_job.setdefault((pod.replicated_job, pod.job_index), []).append(pod)
    return by_job


def _need(target: ReplicatedJobSeen, job: JobSeen | None) -> int:
    """Pods that the Job still has to run at once: what has finished needs no pod, in any epoch of the attempt."""
    if job is None:
        return target.pods_per_job
    if job.complete:
        return 0
    if target.completions is None:
        return target.pods_per_job
    done = len(job.completed) if target.indexed else job.succeeded
    return max(0, min(target.parallelism, target.completions - done))


def _started(
    seen: GangSeen,
    target: ReplicatedJobSeen,
    job: JobSeen | None,
    pods: Iterable[PodSeen],
    counted: list[PodSeen],
) -> int:
    """Started slots of one Job, finished ones included; appends the pods that were counted."""
    if job is None or job.suspended or seen.jobset.suspended:
        return 0
    need = _need(target, job)
    having = _having(target, job, pods)
    counted.extend(having)
    return target.pods_per_job - need + min(need, len(having))


def _having(target: ReplicatedJobSeen, job: JobSeen, pods: Iterable[PodSeen]) -> list[PodSeen]:
    """The started pods of this very Job (not of a namesake that it replaces), one for each slot that is not done."""
    ready = [pod for pod in pods if pod.started and pod.job_uid == job.uid]
    if not target.indexed:
        return ready
    by_index: dict[int, PodSeen] = {}
    # An elastic Job that shrank leaves pods behind whose indexes are no slots any more.
    slots = target.pods_per_job if target.completions is None else target.completions
    for pod in ready:
        if pod.index is None or not 0 <= pod.index < slots or pod.index in job.completed:
            continue
        other = by_index.get(pod.index)
        if other is None or pod.epoch > other.epoch:
            by_index[pod.index] = pod
    return list(by_index.values())


def _missing(
    seen: GangSeen,
    target: ReplicatedJobSeen,
    number: int,
    job: JobSeen | None,
    pods: Iterable[PodSeen],
    denials: dict[str, str],
) -> Iterator[Missing]:
    need = _need(target, job)
    suspended = seen.jobset.suspended or (job is not None and job.suspended)
    having = [] if job is None or suspended else _having(target, job, pods)
    lacking = need - len(having)
    if lacking <= 0:
        return
    taken: set[int | str | None] = {pod.index for pod in having}
    waiting = sorted(
        (pod for pod in pods if not pod.started and (not target.indexed or pod.index not in taken)),
        key=attrgetter("alive"),
        reverse=True,
    )
    by_slot: dict[int | str | None, PodSeen] = {}
    for pod in waiting:
        # Without indexes every pod is a slot of its own; with them a replacement stands before what it replaces.
        if target.indexed:
            by_slot.setdefault(pod.index, pod)
            continue
        if pod.alive:
            by_slot[pod.name] = pod
    for pod in sorted(by_slot.values(), key=lambda pod: (pod.index is None, pod.index or 0, pod.name))[:lacking]:
        yield Missing(
            replicated_job=target.name,
            job_index=number,
            index=pod.index,
            stall=_stall_of(seen, pod),
            since=pod.created or None,
        )
        lacking -= 1
    stall = _nothing_there(job, suspended=suspended, denials=denials)
    for index in _free(target, job, taken | set(by_slot))[:lacking] if target.indexed else [None] * lacking:
        yield Missing(replicated_job=target.name, job_index=number, index=index, stall=stall)


def _free(target: ReplicatedJobSeen, job: JobSeen | None, taken: set[int | str | None]) -> list[int]:
    """Indexes without any pod, lowest first: the order in which the Job controller fills them."""
    slots = target.pods_per_job if target.completions is None else target.completions
    done = job.completed if job is not None else frozenset[int]()
    return [index for index in range(slots) if index not in taken and index not in done]


def _stall_of(seen: GangSeen, pod: PodSeen) -> Stall:
    stall = pod.stall or Stall(why=Why.STARTING, detail="is not counted yet")
    if stall.why is Why.UNSCHEDULED and pod.name in seen.provisioning:
        return Stall(why=Why.NODE_PROVISIONING, detail=stall.detail)
    return stall


def _nothing_there(job: JobSeen | None, *, suspended: bool, denials: dict[str, str]) -> Stall:
    if suspended:
        return Stall(why=Why.NOT_CREATED, detail="the JobSet or its Job is suspended")
    if job is None:
        return Stall(why=Why.NOT_CREATED, detail="its Job does not exist yet")
    if job.name in denials:
        return Stall(why=Why.QUOTA_DENIED, detail=denials[job.name])
    return Stall(why=Why.NOT_CREATED, detail="the Job controller has not created it yet")
