"""Names the slots of a gang that have no started pod, with the reason why (A9)."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from jobset_gate.count import Share, runs
from jobset_gate.model import GangSeen, PodSeen, Stall, Why, Word

UNMADE = "the Job controller has not created it yet"
"""Of a slot without a pod whose Job exists; why, only Events may tell."""

_NOT_COUNTED = Stall(why=Why.STARTING, detail="is not counted yet")
"""Of a pod whose Job is suspended or unknown."""


class Missing(Word, frozen=True):
    """One slot without a started pod."""

    replicated_job: str
    job_index: int
    index: int | None
    stall: Stall
    since: float | None = None
    """When its pod was created, if there is one."""
    pod: str = ""
    """The name of that pod."""

    @property
    def slot(self) -> str:
        """`workers-2/17`; a NonIndexed Job's pods have no number: `workers-2`."""
        job = f"{self.replicated_job}-{self.job_index}"
        return job if self.index is None else f"{job}/{self.index}"


class Gap(Word, frozen=True):
    """What one Job lacks, or several of which nothing is there."""

    pods: list[PodSeen]
    """Those that have not started."""
    absent: list[Missing]
    """Slots without a pod, at most as many as were asked for."""
    more: int
    """So many slots without a pod beside these."""


def missing(seen: GangSeen) -> Iterator[Missing]:
    """Every slot without a started pod, in the order of the spec: as many as the count lacks."""
    for gap in gaps(seen):
        for pod in gap.pods:
            yield of_pod(pod, stall_of(seen, pod))
        yield from gap.absent


def gaps(seen: GangSeen, most: int | None = None, parts: Iterable[Share] | None = None) -> Iterator[Gap]:
    """The same Job by Job; of slots without a pod, which differ in their numbers only, at most `most` one by one.

    `parts`: the gang's shares, where they are known already.
    """
    denials = dict(seen.denials)
    for share in runs(seen) if parts is None else parts:
        lacking = share.lacking
        if not lacking:
            continue
        taken: set[int | None] = {pod.index for pod in share.having()}
        pods = _one_per_slot(share, taken)[:lacking]
        empty = lacking * share.times - len(pods)
        shown = empty if most is None else min(empty, most)
        slots = _slots(share, taken | {pod.index for pod in pods}, shown, lacking)
        stall = _nothing_there(share, denials) if shown else None
        absent = [_missing(share, *slot, stall) for slot in slots] if stall is not None else []
        yield Gap(pods=pods, absent=absent, more=empty - shown)


def of_pod(pod: PodSeen, stall: Stall) -> Missing:
    """Its slot as a missing one."""
    return Missing(
        replicated_job=pod.replicated_job,
        job_index=pod.job_index,
        index=pod.index,
        stall=stall,
        since=pod.created,
        pod=pod.name,
    )


def stall_of(seen: GangSeen, pod: PodSeen) -> Stall:
    """Why a pod of the gang has not started."""
    stall = pod.stall or _NOT_COUNTED
    if seen.provisioning and stall.why is Why.UNSCHEDULED and pod.name in seen.provisioning:
        return _provisioning(stall.detail)
    return stall


@lru_cache(maxsize=256)
def _provisioning(detail: str) -> Stall:
    return Stall(why=Why.NODE_PROVISIONING, detail=detail)


def _one_per_slot(share: Share, taken: set[int | None]) -> list[PodSeen]:
    """The pods that have not started; a replacement stands before what it replaces."""
    idle = [pod for pod in share.pods if not pod.counts(share.announced)]
    if not share.target.indexed:
        return sorted((pod for pod in idle if pod.alive), key=lambda pod: pod.name)
    by_slot: dict[int, PodSeen] = {}
    for pod in idle:
        if pod.index is None or pod.index in taken or pod.index in share.done:
            continue
        if pod.alive or pod.index not in by_slot:
            by_slot[pod.index] = pod
    return [by_slot[index] for index in sorted(by_slot)]


def _slots(share: Share, taken: set[int | None], many: int, each: int) -> list[tuple[int, int | None]]:
    """So many slots without any pod as (job index, completion index), Job by Job, each of which lacks `each`."""
    found: list[tuple[int, int | None]] = []
    for number in range(share.number, share.number + share.times):
        found += [(number, index) for index in _without_pod(share, taken, min(each, many - len(found)))]
        if len(found) >= many:
            break
    return found


def _without_pod(share: Share, taken: set[int | None], many: int) -> list[int] | list[None]:
    """So many slots without any pod, lowest first: the order in which the Job controller fills them."""
    if not share.target.indexed:
        return [None] * many
    done = share.done
    free = (index for index in range(share.slots) if index not in taken and index not in done)
    return list(islice(free, many))


def _missing(share: Share, number: int, index: int | None, stall: Stall) -> Missing:
    return Missing(replicated_job=share.target.name, job_index=number, index=index, stall=stall)


def _nothing_there(share: Share, denials: dict[str, str]) -> Stall:
    if share.suspended:
        return Stall(why=Why.NOT_CREATED, detail="the JobSet or its Job is suspended")
    if share.job is None:
        return Stall(why=Why.NOT_CREATED, detail="its Job does not exist yet")
    if share.job.name in denials:
        return Stall(why=Why.QUOTA_DENIED, detail=denials[share.job.name])
    return Stall(why=Why.NOT_CREATED, detail=UNMADE)
