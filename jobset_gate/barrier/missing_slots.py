"""Names the slots of a gang that have no started pod, with the reason why (A9)."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from jobset_gate.barrier.count import JobSlots, list_job_slots
from jobset_gate.barrier.model import GangSnapshot, PendingCause, PendingReason, PodSeen, Value

NOT_CREATED_YET = "the Job controller has not created it yet"
"""Of a slot without a pod whose Job exists; why, only Events may tell."""

_NOT_COUNTED = PendingCause(reason=PendingReason.STARTING, message="is not counted yet")
"""Of a pod whose Job is suspended or unknown."""


class MissingSlot(Value, frozen=True):
    """One slot without a started pod."""

    replicated_job: str
    job_index: int
    index: int | None
    cause: PendingCause
    created_at: float | None = None
    """When its pod was created, if there is one."""
    pod: str = ""
    """The name of that pod."""

    @property
    def slot(self) -> str:
        """`workers-2/17`; a NonIndexed Job's pods have no number: `workers-2`."""
        job = f"{self.replicated_job}-{self.job_index}"
        return job if self.index is None else f"{job}/{self.index}"


class MissingInJob(Value, frozen=True):
    """What one Job lacks, or several of which nothing is there."""

    pods: list[PodSeen]
    """Those that have not started."""
    absent: list[MissingSlot]
    """Slots without a pod, at most as many as were asked for."""
    more: int
    """So many slots without a pod beside these."""


def missing_slots(seen: GangSnapshot) -> Iterator[MissingSlot]:
    """Every slot without a started pod, in the order of the spec: as many as the count lacks."""
    for gap in missing_by_job(seen):
        for pod in gap.pods:
            yield slot_of_pod(pod, pending_cause(seen, pod))
        yield from gap.absent


def missing_by_job(
    seen: GangSnapshot, limit: int | None = None, job_slots: Iterable[JobSlots] | None = None
) -> Iterator[MissingInJob]:
    """The same Job by Job; of slots without a pod, which differ in their numbers only, at most `most` one by one.

    `parts`: the gang's shares, where they are known already.
    """
    denials = dict(seen.denials)
    for share in list_job_slots(seen) if job_slots is None else job_slots:
        lacking = share.missing_count
        if not lacking:
            continue
        taken: set[int | None] = {pod.index for pod in share.started_pods()}
        pods = _pending_pods(share, taken)[:lacking]
        empty = lacking * share.repeat - len(pods)
        shown = empty if limit is None else min(empty, limit)
        slots = _slots(share, taken | {pod.index for pod in pods}, shown, lacking)
        stall = _cause_without_pod(share, denials) if shown else None
        absent = [_missing(share, *slot, stall) for slot in slots] if stall is not None else []
        yield MissingInJob(pods=pods, absent=absent, more=empty - shown)


def slot_of_pod(pod: PodSeen, cause: PendingCause) -> MissingSlot:
    """Its slot as a missing one."""
    return MissingSlot(
        replicated_job=pod.replicated_job,
        job_index=pod.job_index,
        index=pod.index,
        cause=cause,
        created_at=pod.created,
        pod=pod.name,
    )


def pending_cause(seen: GangSnapshot, pod: PodSeen) -> PendingCause:
    """Why a pod of the gang has not started."""
    stall = pod.pending or _NOT_COUNTED
    if seen.provisioning and stall.reason is PendingReason.UNSCHEDULED and pod.name in seen.provisioning:
        return _provisioning(stall.message)
    return stall


@lru_cache(maxsize=256)
def _provisioning(detail: str) -> PendingCause:
    return PendingCause(reason=PendingReason.NODE_PROVISIONING, message=detail)


def _pending_pods(share: JobSlots, taken: set[int | None]) -> list[PodSeen]:
    """The pods that have not started; a replacement stands before what it replaces."""
    idle = [pod for pod in share.pods if not pod.counts(share.announced)]
    if not share.target.indexed:
        return sorted((pod for pod in idle if pod.alive), key=lambda pod: pod.name)
    by_slot: dict[int, PodSeen] = {}
    for pod in idle:
        if pod.index is None or pod.index in taken or pod.index in share.completed_indexes:
            continue
        if pod.alive or pod.index not in by_slot:
            by_slot[pod.index] = pod
    return [by_slot[index] for index in sorted(by_slot)]


def _slots(share: JobSlots, taken: set[int | None], many: int, each: int) -> list[tuple[int, int | None]]:
    """So many slots without any pod as (job index, completion index), Job by Job, each of which lacks `each`."""
    found: list[tuple[int, int | None]] = []
    for number in range(share.job_index, share.job_index + share.repeat):
        found += [(number, index) for index in _without_pod(share, taken, min(each, many - len(found)))]
        if len(found) >= many:
            break
    return found


def _without_pod(share: JobSlots, taken: set[int | None], many: int) -> list[int] | list[None]:
    """So many slots without any pod, lowest first: the order in which the Job controller fills them."""
    if not share.target.indexed:
        return [None] * many
    done = share.completed_indexes
    free = (index for index in range(share.index_count) if index not in taken and index not in done)
    return list(islice(free, many))


def _missing(share: JobSlots, number: int, index: int | None, stall: PendingCause) -> MissingSlot:
    return MissingSlot(replicated_job=share.target.name, job_index=number, index=index, cause=stall)


def _cause_without_pod(share: JobSlots, denials: dict[str, str]) -> PendingCause:
    if share.suspended:
        return PendingCause(reason=PendingReason.NOT_CREATED, message="the JobSet or its Job is suspended")
    if share.job is None:
        return PendingCause(reason=PendingReason.NOT_CREATED, message="its Job does not exist yet")
    if share.job.name in denials:
        return PendingCause(reason=PendingReason.QUOTA_DENIED, message=denials[share.job.name])
    return PendingCause(reason=PendingReason.NOT_CREATED, message=NOT_CREATED_YET)
