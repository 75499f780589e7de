"""Names the slots of a gang that have no started pod, with the reason why (A9)."""

from collections.abc import Iterator

from jobset_gate.count import Share, shares
from jobset_gate.model import GangSeen, Missing, PodSeen, Stall, Why


def missing(seen: GangSeen) -> Iterator[Missing]:
    """Every slot without a started pod, in the order of the spec: as many as the count lacks."""
    denials = dict(seen.denials)
    for share in shares(seen):
        yield from _of_share(seen, share, denials)


def _of_share(seen: GangSeen, share: Share, denials: dict[str, str]) -> Iterator[Missing]:
    having = share.having()
    lacking = share.need - len(having)
    if lacking <= 0:
        return
    taken = {pod.index for pod in having}
    pods = _one_per_slot(share, taken)[:lacking]
    for pod in pods:
        yield _missing(share, pod.index, _stall_of(seen, pod), pod.created)
    stall = _nothing_there(share, denials)
    for index in _without_pod(share, taken | {pod.index for pod in pods}, lacking - len(pods)):
        yield _missing(share, index, stall, None)


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


def _without_pod(share: Share, taken: set[int | None], many: int) -> list[int] | list[None]:
    """Slots without any pod, lowest first: the order in which the Job controller fills them."""
    if not share.target.indexed:
        return [None] * many
    done = share.done
    return [index for index in range(share.slots) if index not in taken and index not in done][:many]


def _missing(share: Share, index: int | None, stall: Stall, since: float | None) -> Missing:
    return Missing(replicated_job=share.target.name, job_index=share.number, index=index, stall=stall, since=since)


def _stall_of(seen: GangSeen, pod: PodSeen) -> Stall:
    stall = pod.stall or Stall(why=Why.STARTING, detail="is not counted yet")
    if stall.why is Why.UNSCHEDULED and pod.name in seen.provisioning:
        return Stall(why=Why.NODE_PROVISIONING, detail=stall.detail)
    return stall


def _nothing_there(share: Share, denials: dict[str, str]) -> Stall:
    if share.suspended:
        return Stall(why=Why.NOT_CREATED, detail="the JobSet or its Job is suspended")
    if share.job is None:
        return Stall(why=Why.NOT_CREATED, detail="its Job does not exist yet")
    if share.job.name in denials:
        return Stall(why=Why.QUOTA_DENIED, detail=denials[share.job.name])
    return Stall(why=Why.NOT_CREATED, detail="the Job controller has not created it yet")
