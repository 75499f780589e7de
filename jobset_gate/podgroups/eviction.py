"""Eviction of an admitted group: the next steps that delete its pods without failing their owners (G4).

Each step leaves a trace in the cluster, so that any leader makes the rest of the plan from what it finds:

* suspend: a suspended Job or JobSet deletes its pods itself and counts no failure;
* detach and delete: a Job with a rule that a pod's end may fulfil loses the pod first, by its labels. Such a Job is
  suspended only long after that: suspended earlier, it would wait for minutes for pods that it has not seen deleted;
* disrupt and delete: for pods of other controllers;
* blocked: bare pods, which no controller would create again, and owners that another controller suspends.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from jobset_gate.barrier.model import Value
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.podgroups.model import group_label
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import MemberPod

JOB: Final = "Job"
JOBSET: Final = "JobSet"
MAX_PODS_NAMED: Final = 10
_MAX_DIGITS: Final = 20
"""Of a generation: Python refuses to parse very long numbers, which users can write into the mark."""


class SuspendTarget(Value, frozen=True):
    """A Job or JobSet; for a Job of a JobSet its JobSet, which would resume the Job."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    suspended: bool = False
    mark: str = ""
    """Which eviction has suspended it; "": not we."""
    finished: bool = False
    """Or being deleted: its pods go without an eviction."""
    by_kueue: bool = False
    """Kueue suspends and resumes it, and would undo ours."""
    managed_by: str = ""
    """Another controller, whose reaction to a suspension is not known."""
    can_fail: bool = False
    """A rule of it may fail the Job for how one pod ends."""
    barrier: bool = False
    """A JobSet with a start barrier, which needs another epoch for the new pods."""
    others: tuple[str, ...] = ()
    """Living pods that are not in the group: a suspension would delete them, too."""


class PodProvenance(Value, frozen=True):
    """The owner of a pod of a Job."""

    target: SuspendTarget | None = None
    """None: it is gone, and the garbage collector deletes its pods."""
    labels: tuple[str, ...] = ()
    """The labels without which its Job does not find the pod; () if there are none."""


class DetachPod(Value, frozen=True):
    """Remove the pod from its Job, which counts the exit codes of all pods that it finds, deleted ones too."""

    pod: MemberPod
    job: str
    """UID of its Job."""
    labels: tuple[str, ...]
    mark: str


class SuspendOwner(Value, frozen=True):
    """Suspend it, with our mark."""

    target: SuspendTarget
    mark: str


class Blocked(Value, frozen=True):
    """Pods that cannot be evicted."""

    pods: tuple[str, ...]
    why: str


class EvictionPlan(Value, frozen=True):
    """Steps in the order of the fields; each waits until all earlier ones are done."""

    marks: tuple[SuspendOwner, ...] = ()
    """To be marked only."""
    detaches: tuple[DetachPod, ...] = ()
    suspends: tuple[SuspendOwner, ...] = ()
    disrupts: tuple[MemberPod, ...] = ()
    deletes: tuple[MemberPod, ...] = ()
    terminating: tuple[MemberPod, ...] = ()
    restarts: tuple[SuspendOwner, ...] = ()
    """Marked owners, to be suspended once no pod has been left for a while: for their start barrier."""
    blocked: tuple[Blocked, ...] = ()
    resumes: tuple[SuspendTarget, ...] = ()
    """Suspended owners that need not wait for blocked pods."""

    @property
    def all_gone(self) -> bool:
        """No admitted pod is left, but blocked ones."""
        return not (self.detaches or self.suspends or self.deletes or self.terminating)

    @property
    def done(self) -> bool:
        """Nothing is left to do."""
        return self.all_gone and not self.restarts

    @property
    def blocked_pods(self) -> tuple[str, ...]:
        """Names of the pods that cannot be evicted."""
        return tuple(sorted(pod for it in self.blocked for pod in it.pods))

    @property
    def blocked_message(self) -> str:
        return "; ".join(it.why for it in self.blocked)


# --- Marks -----------------------------------------------------------------------------------------------------------


def generations_by_label(record: AdmissionRecord) -> dict[str, int]:
    """The generation to be evicted, by the label of each gang of the decision."""
    return {group_label(key): generation for key, generation in record.gangs}


def eviction_mark(label: str, generation: int) -> str:
    """The mark of an eviction on pods and owners."""
    return f"{label}.{generation}"


def parse_mark(text: str) -> tuple[str, int]:
    """Label and generation of a mark; ("", 0) if it is invalid."""
    label, _, number = text.rpartition(".")
    valid = label and number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS
    return (label, int(number)) if valid else ("", 0)


def is_detached(pod: MemberPod) -> bool:
    """Whether it was removed from its Job: only this controller will delete it."""
    return pod.controller is None and bool(pod.group_label) and parse_mark(pod.eviction_mark)[0] == pod.group_label


def is_evictable(pod: MemberPod, wanted: Mapping[str, int]) -> bool:
    """Whether the pod was admitted and has to go before the group can be closed."""
    if pod.ended or pod.group_label not in wanted:
        return False
    return is_detached(pod) or (not pod.gated and 0 < pod.generation <= wanted[pod.group_label])


def is_job_pod(pod: MemberPod) -> bool:
    return pod.controller is not None and pod.controller.kind == JOB and pod.controller.api_version.startswith("batch/")


# --- What blocks -----------------------------------------------------------------------------------------------------


def why_blocked(target: SuspendTarget) -> str:
    """Why an owner may not be suspended; "": it may."""
    title = f"{target.kind} {target.name}"
    if target.by_kueue:
        return f"{title} is suspended and resumed by Kueue"
    if target.managed_by:
        return f"{title} is managed by {target.managed_by}"
    if target.others:
        return f"pods of {title} are not in the group: {_listed(target.others)}"
    return ""


def bare_pods_message(pods: Sequence[str]) -> str:
    """Pods without an owner: the user has to decide."""
    return f"nobody would make them again, so they are left to you to delete: {_listed(pods)}"


def _listed(pods: Sequence[str]) -> str:
    return truncate_list(sorted(pods), MAX_PODS_NAMED)


# --- The plan --------------------------------------------------------------------------------------------------------


def plan_eviction(
    members: Iterable[MemberPod],
    wanted: Mapping[str, int],
    made: Mapping[str, PodProvenance],
    marked: Iterable[SuspendTarget] = (),
) -> EvictionPlan:
    """The steps now. `wanted`: generations by label; `made`: owners by pod UID; `marked`: owners with our mark."""
    pods = sorted(members, key=lambda it: (it.namespace, it.name))
    targets = {it.uid: made[it.uid].target if it.uid in made else None for it in pods}
    evicted = [it for it in pods if is_evictable(it, wanted)]
    free = [it for it in evicted if not it.deleting]
    # No kubelet ends a pod without a node: its deletion was cut short by the crash of a client.
    halfway = [it for it in evicted if it.deleting and not it.node and (is_detached(it) or _is_disrupted(it))]
    disrupts = tuple(it for it in free if _is_disrupted(it))
    bare = tuple(it.name for it in free if it.controller is None and not is_detached(it))
    suspended = [it for it in pods if it.gated and not it.deleting and _is_suspended(targets[it.uid], wanted)]
    orphans = [it for it in free if is_job_pod(it) and targets[it.uid] is None]
    first = EvictionPlan(
        disrupts=disrupts,
        deletes=(*halfway, *(it for it in free if is_detached(it)), *disrupts),
        terminating=(*(it for it in evicted if it.deleting), *orphans, *suspended),
        blocked=(Blocked(pods=bare, why=bare_pods_message(bare)),) if bare else (),
    )
    plan = _joined([first, *(_plan_target(it, some, pods, wanted, made) for it, some in _by_target(free, targets))])
    return _with_last_steps(plan, [it for it in marked if parse_mark(it.mark) in wanted.items() and not it.finished])


def _joined(plans: Sequence[EvictionPlan]) -> EvictionPlan:
    fields = EvictionPlan.__struct_fields__
    return EvictionPlan(**{name: tuple(it for plan in plans for it in getattr(plan, name)) for name in fields})


def _with_last_steps(plan: EvictionPlan, marked: Sequence[SuspendTarget]) -> EvictionPlan:
    restarts = tuple(SuspendOwner(target=it, mark=it.mark) for it in marked if not it.suspended)
    if not plan.all_gone or restarts:
        return replace(plan, restarts=restarts if plan.all_gone else ())
    # Owners resume at the end of the eviction, which blocked pods delay without limit; gates hold the new pods anyway.
    return replace(plan, resumes=tuple(marked) if plan.blocked else ())


def _by_target(
    free: Sequence[MemberPod], targets: Mapping[str, SuspendTarget | None]
) -> list[tuple[SuspendTarget, list[MemberPod]]]:
    found: dict[str, tuple[SuspendTarget, list[MemberPod]]] = {}
    for pod in free:
        target = targets[pod.uid]
        if target is not None:
            found.setdefault(target.uid, (target, []))[1].append(pod)
    return [found[uid] for uid in sorted(found)]


def _plan_target(
    target: SuspendTarget,
    some: Sequence[MemberPod],
    pods: Sequence[MemberPod],
    wanted: Mapping[str, int],
    made: Mapping[str, PodProvenance],
) -> EvictionPlan:
    """For the evicted pods of one Job or JobSet."""
    going = tuple(some)
    if target.finished or (target.suspended and not target.mark):
        return EvictionPlan(terminating=going)  # it deletes its pods itself, and stays as its user left it
    mark = min(eviction_mark(it.group_label, wanted[it.group_label]) for it in some)
    suspend, known = SuspendOwner(target=target, mark=mark), parse_mark(target.mark) in wanted.items()
    if target.suspended:
        # With the mark of an earlier eviction it would not be resumed at the end of this one.
        return EvictionPlan(suspends=() if known else (suspend,), terminating=going)
    why = why_blocked(target)
    if not why and target.can_fail and not all(made[it.uid].labels for it in some):
        why = f"{target.kind} {target.name} finds its pods by no label"
    if why:
        return EvictionPlan(blocked=(Blocked(pods=tuple(it.name for it in some), why=why),))
    if not target.can_fail:
        return EvictionPlan(suspends=(suspend,), terminating=going)
    detaches = tuple(_detaches(target, pods, wanted, made))
    detached = {it.pod.uid for it in detaches}
    return EvictionPlan(
        marks=(suspend,) if target.barrier and not known else (),
        detaches=detaches,
        deletes=tuple(it.pod for it in detaches),
        terminating=tuple(it for it in some if it.uid not in detached),
    )


def _is_disrupted(pod: MemberPod) -> bool:
    """Of a controller that creates another pod."""
    return pod.controller is not None and not is_job_pod(pod)


def _is_suspended(target: SuspendTarget | None, wanted: Mapping[str, int]) -> bool:
    """By us, and one of its Jobs has not deleted its pods yet: resumed now, these would keep their old epoch."""
    return target is not None and target.suspended and not target.finished and parse_mark(target.mark) in wanted.items()


def _detaches(
    target: SuspendTarget, pods: Sequence[MemberPod], wanted: Mapping[str, int], made: Mapping[str, PodProvenance]
) -> Iterable[DetachPod]:
    """All its pods that may run by the time they are deleted, unbound ones too."""
    for pod in pods:
        how = made.get(pod.uid)
        if how is None or how.target is None or how.target.uid != target.uid or pod.controller is None:
            continue
        if pod.gated or pod.foreign_gates or pod.deleting or pod.ended:
            continue
        mark = eviction_mark(pod.group_label, wanted[pod.group_label])
        yield DetachPod(pod=pod, job=pod.controller.uid, labels=how.labels, mark=mark)
