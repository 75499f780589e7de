"""What is to be done now to take back all opened members of a group without failing whoever made them (G4).

Each step is found by the trace that it leaves in the cluster, so a plan is made anew from what is there, by whoever
leads, however far the last one came:

* suspend: a Job or JobSet deletes its pods itself, and counts none of them;
* release and delete, where the end of a pod could fail its Job by a rule: the Job is made to forget the pod first. Such
  a Job is not suspended before all of that is long over: if it were told of it before it has forgotten the pods, it
  would wait for minutes to hear that the pods have gone that it has deleted;
* disrupt and delete: the pods of other controllers.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from jobset_gate.podgroups import deadline
from jobset_gate.podgroups.deadline import EvictionMethod, EvictionOwner, OwnerEviction
from jobset_gate.podgroups.eviction import (
    FINISHED,
    DetachPod,
    EvictionPlan,
    PodProvenance,
    SuspendOwner,
    SuspendTarget,
    eviction_mark,
    is_detached,
    is_evictable,
    is_job_pod,
    parse_mark,
)
from jobset_gate.podgroups.snapshot import MemberPod


def plan_eviction(
    members: Iterable[MemberPod],
    wanted: Mapping[str, int],
    made: Mapping[str, PodProvenance],
    marked: Iterable[SuspendTarget] = (),
) -> EvictionPlan:
    """All that is to be done now. `made`: how pods of Jobs came to be, by UID; `marked`: owners that carry our mark."""
    pods = sorted(members, key=lambda it: (it.namespace, it.name))
    mine = [it for it in pods if is_evictable(it, wanted)]
    free = [it for it in mine if not it.deleting]
    # Without a node there is nothing to wait for: an API server has left such a one halfway, as its client was killed.
    halfway = [
        it for it in mine if it.deleting and not it.node and not is_job_pod(it) and (it.controller or is_detached(it))
    ]
    deletes = [*halfway, *(it for it in free if is_detached(it))]
    disrupts = [it for it in free if it.controller is not None and not is_job_pod(it)]
    bare = [it for it in free if it.controller is None and not is_detached(it)]
    parts = [_of_root(root, some, pods, wanted, made) for root, some in _by_root(free, made)]
    asleep = [
        it for it in pods if it.gated and not it.deleting and _asleep(made.get(it.uid, PodProvenance()).target, wanted)
    ]
    orphans = [it for it in free if is_job_pod(it) and made.get(it.uid, PodProvenance()).target is None]
    found = EvictionPlan(
        marks=tuple(it for part in parts for it in part.marks),
        detaches=tuple(it for part in parts for it in part.detaches),
        suspends=tuple(it for part in parts for it in part.suspends),
        disrupts=tuple(disrupts),
        deletes=(*deletes, *disrupts, *(it.pod for part in parts for it in part.detaches)),
        terminating=(
            *(it for it in mine if it.deleting),
            *orphans,
            *asleep,
            *(it for part in parts for it in part.terminating),
        ),
        blocked=(*_bare(bare), *(it for part in parts for it in part.blocked)),
    )
    return _last(found, [it for it in marked if parse_mark(it.mark) in wanted.items() and not it.finished])


def _last(found: EvictionPlan, marked: Sequence[SuspendTarget]) -> EvictionPlan:
    """What is to be done when nothing else is left."""
    renews = tuple(SuspendOwner(target=it, mark=it.mark) for it in marked if not it.suspended)
    if not found.all_gone or renews:
        return replace(found, restarts=renews if found.all_gone else ())
    # Nobody knows when the end comes that those are resumed at; until then our gates hold their pods as well.
    return replace(found, resumes=tuple(marked) if found.blocked else ())


# --- Details ---------------------------------------------------------------------------------------------------------


def _by_root(
    free: Sequence[MemberPod], made: Mapping[str, PodProvenance]
) -> list[tuple[SuspendTarget, list[MemberPod]]]:
    found: dict[str, tuple[SuspendTarget, list[MemberPod]]] = {}
    for pod in free:
        root = made.get(pod.uid, PodProvenance()).target
        if root is not None:
            found.setdefault(root.uid, (root, []))[1].append(pod)
    return [found[uid] for uid in sorted(found)]


def _of_root(
    root: SuspendTarget,
    some: list[MemberPod],
    pods: list[MemberPod],
    wanted: Mapping[str, int],
    made: Mapping[str, PodProvenance],
) -> EvictionPlan:
    """Of those pods of a Job or JobSet that are to be taken back."""
    if root.finished or (root.suspended and not root.mark):
        return EvictionPlan(
            terminating=tuple(some)
        )  # whoever has ended or suspended it: it deletes its pods, and stays as it is
    ours = min(eviction_mark(it.group_label, wanted[it.group_label]) for it in some)
    if root.suspended:
        known = parse_mark(root.mark) in wanted.items()
        # A mark that an earlier roll-back has left would never be found when this one ends.
        return EvictionPlan(suspends=() if known else (SuspendOwner(target=root, mark=ours),), terminating=tuple(some))
    way = _way(root, some)
    if way.method is EvictionMethod.SUSPEND and root.can_fail and not all(made[it.uid].labels for it in some):
        way = OwnerEviction(
            owner=way.owner, method=EvictionMethod.BLOCKED, why=f"{root.kind} {root.name} finds its pods by no label"
        )
    if way.method is EvictionMethod.BLOCKED:
        return EvictionPlan(blocked=(way,))
    if not root.can_fail:
        return EvictionPlan(suspends=(SuspendOwner(target=root, mark=ours),), terminating=tuple(some))
    releases = tuple(_releases(root, pods, wanted, made))
    forgotten = {it.pod.uid for it in releases}
    notes = (
        (SuspendOwner(target=root, mark=ours),) if root.barrier and parse_mark(root.mark) not in wanted.items() else ()
    )
    return EvictionPlan(marks=notes, detaches=releases, terminating=tuple(it for it in some if it.uid not in forgotten))


def _asleep(root: SuspendTarget | None, wanted: Mapping[str, int]) -> bool:
    """Whether we have suspended it: were it resumed while one of its Jobs has not heard of that, that one's pods would
    still be of the epoch before.
    """
    return root is not None and root.suspended and not root.finished and parse_mark(root.mark) in wanted.items()


def _way(root: SuspendTarget, some: Sequence[MemberPod]) -> OwnerEviction:
    return deadline.eviction_of(
        EvictionOwner(
            kind=root.kind,
            name=root.name,
            pods=tuple(it.name for it in some),
            others=root.others,
            by_kueue=root.by_kueue,
            managed_by=root.managed_by,
        )
    )


def _releases(
    root: SuspendTarget, pods: Sequence[MemberPod], wanted: Mapping[str, int], made: Mapping[str, PodProvenance]
) -> Iterable[DetachPod]:
    """All pods of it that a node may run by the time they are deleted: the scheduler may bind them until then."""
    for pod in pods:
        how = made.get(pod.uid)
        if how is None or how.target is None or how.target.uid != root.uid or pod.controller is None:
            continue
        if pod.gated or pod.foreign_gates or pod.deleting or pod.phase in FINISHED:
            continue
        yield DetachPod(
            pod=pod,
            job=pod.controller.uid,
            labels=how.labels,
            mark=eviction_mark(pod.group_label, wanted[pod.group_label]),
        )


def _bare(pods: Sequence[MemberPod]) -> tuple[OwnerEviction, ...]:
    return (deadline.eviction_of(EvictionOwner(kind="", name="", pods=tuple(it.name for it in pods))),) if pods else ()
