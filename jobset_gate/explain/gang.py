"""Explains why a gang or a pod group waits, or how it was decided (G5). Pure.

For gangs it is built on `decide`, so that it says what the controller would do with the same facts.
"""

from collections.abc import Iterator, Sequence

from jobset_gate import names
from jobset_gate.barrier import count, messages
from jobset_gate.barrier.decide import decide, recorded_verdict
from jobset_gate.barrier.decision import Blocked, Decide, Decision, Enforce, Ignore, Wait
from jobset_gate.barrier.missing import commands, missing_by_reason, slot_of_pod
from jobset_gate.barrier.model import (
    BarrierStage,
    GangSnapshot,
    Generation,
    MissingByReason,
    PendingCause,
    PendingReason,
    PodSeen,
    Verdict,
    VerdictKind,
    WorkloadSeen,
)
from jobset_gate.barrier.source import Source
from jobset_gate.explain.model import (
    GIVEN_UP_STATES,
    WAITING_STATES,
    ControllerStatus,
    ExplainedPod,
    Explanation,
    FailurePolicies,
    GangState,
    ReplicatedJobCount,
)
from jobset_gate.explain.text import after_timeout
from jobset_gate.podgroups.model import GangMode
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.podgroups.status import GroupStatus, last_ungated_at, missing_members, unscheduled_text, waiting_for

_FIELD = f"spec.{names.CONFIG_FIELD}"
MOST_COMMANDS = 3
"""Of a pod group."""


def explain_gang(
    seen: GangSnapshot,
    now: float,
    *,
    controller: ControllerStatus | None = None,
    policy: FailurePolicies | None = None,
    unknown: Sequence[str] = (),
    pods_forbidden: bool = False,
    pod: str = "",
) -> Explanation:
    """The explanation of a gang.

    `pods_forbidden`: its pods could not be read, so nothing is counted; `unknown`: sentences about what could not be
    read; `pod`: name of the pod that the command line names.
    """
    workload, decision, verdict = seen.workload, decide(seen, now), _present_verdict(seen)
    state, message = _standing(workload, decision, verdict, policy, pods_forbidden=pods_forbidden)
    if state is GangState.WAITING and not message:
        message = "; ".join(filter(None, (_cannot_gather(seen), messages.differing(workload))))
    waits = state in WAITING_STATES
    found: tuple[MissingByReason, ...] = ()
    if waits and not pods_forbidden:
        found = decision.missing if isinstance(decision, Wait) else missing_by_reason(seen)
    clock = decision.clock if waits and isinstance(decision, Wait | Decide | Enforce) else None
    tally = count.count_gang(seen)
    # Pods that go after the end say nothing about the start.
    given_up = isinstance(decision, Enforce) and decision.verdict.kind is VerdictKind.TIMEOUT
    ended = given_up or (workload.finished and isinstance(decision, Ignore))
    counted = _recorded_count(workload, verdict) if ended else None
    unknown_now = pods_forbidden or (workload.finished and ended)
    parts = tuple(
        ReplicatedJobCount(name=name, started=up, expected=all_)
        for name, up, all_ in tally.per_job
        if name  # a workload with one template has no name for it
    )
    comes = waits and workload.config.timeout is not None
    to_follow = comes or (state in GIVEN_UP_STATES and policy is not None and not workload.finished)
    return Explanation(
        kind=workload.source.kind,
        source=workload.source.name,
        namespace=workload.namespace,
        name=workload.shown_name,
        owner=workload.owner,
        attempt=workload.attempt,
        state=state,
        message=message,
        now=now,
        expected=counted[1] if counted else tally.expected,
        started=counted[0] if counted else None if unknown_now else tally.started,
        passed=sum(it.stage is BarrierStage.PASSED and it.alive for it in count.gang_pods(seen)),
        parts=() if unknown_now or counted else parts,
        missing=found,
        differing=workload.differing,
        timeout=workload.config.timeout,
        waiting_since=clock.at if clock is not None else None,
        decided=workload.condition.true_since if workload.condition and state is GangState.RELEASED else None,
        afterwards=after_timeout(workload, policy) if to_follow else "",
        subject=_subject(seen, pod) if pod else None,
        controller=controller,
        unknown=tuple(unknown),
        commands=_commands(state, workload, found, policy),
    )


def explain_ungated(source: Source, namespace: str, name: str, now: float) -> Explanation:
    """A workload without a groupSchedulingConfig."""
    places = f"neither {_FIELD} nor the" if source.has_config_field else "no"
    return Explanation(
        kind=source.kind,
        source=source.name,
        namespace=namespace,
        name=name,
        state=GangState.NOT_GATED,
        now=now,
        message=f"asks for no start barrier: it has {places} annotation {names.CONFIG}",
        commands=(f"kubectl describe {source.kind.lower()} {name} -n {namespace}",),
    )


def _present_verdict(seen: GangSnapshot) -> Verdict | None:
    """The verdict on the present generation; a restarted workload may have one on an earlier one."""
    found, workload = recorded_verdict(seen), seen.workload
    present = Generation(workload.uid, workload.attempt, workload.epoch)
    return found if found is not None and found.generation.covers(present) else None


def _standing(
    workload: WorkloadSeen,
    decision: Decision,
    verdict: Verdict | None,
    policy: FailurePolicies | None,
    *,
    pods_forbidden: bool,
) -> tuple[GangState, str]:
    """State and message."""
    match decision:
        case Ignore():
            return _ignored(workload, verdict)
        case Blocked(condition=condition):
            return GangState(condition.reason), condition.message
        case Enforce(verdict=enforced):
            released = enforced.kind is VerdictKind.RELEASE
            return GangState.RELEASED if released else _given_up(enforced), enforced.message
        # Without its pods a gang is known to be due only if its annotation asks for the release.
        case Decide(verdict=due) if workload.bypass or not pods_forbidden:
            what = "the gate is due to open" if due.kind is VerdictKind.RELEASE else "the gang is due to be ended"
            return GangState.DUE, f"{what} ({due.message}), as soon as a controller says so"
        case Wait() if workload.suspended:
            queue = policy.queue if policy else ""
            who = f"Kueue has not admitted it (queue {queue})" if queue else "spec.suspend is true"
            return GangState.SUSPENDED, f"{who}; while it is suspended nothing counts and no clock runs"
    message = ""
    if pods_forbidden:
        said = _waiting_message(workload)
        message = "how many pods have started is not known" if said is None else f"the controller said: {said}"
    return GangState.WAITING, message


def _ignored(workload: WorkloadSeen, verdict: Verdict | None) -> tuple[GangState, str]:
    """Of a workload that has ended: the verdict and the end, first the one that the state is about.

    A workload that is nothing but its pods never ends, since others may follow.
    """
    if workload.source.gates_pods:
        state, how = GangState.IDLE, "no pod of it is live"
    elif workload.deleting:
        return GangState.DELETING, "is being deleted"
    elif not workload.finished:
        return GangState.MANAGED_ELSEWHERE, "spec.managedBy names another controller, so its gate is not ours to open"
    else:
        state = GangState.FAILED if workload.failed else GangState.COMPLETED
        how = workload.finished_message or f"the {workload.source.kind} has {state.lower()}"
    decided = "" if verdict is None else verdict.message
    if verdict is not None and verdict.kind is VerdictKind.TIMEOUT:
        then = state if state is GangState.COMPLETED else _given_up(verdict)
        return then, f"{decided or 'timed out'}; then: {how}"
    if decided:
        return state, f"{how}; before that: {decided}"
    return state, f"{how}; before that, no verdict on its gate" if state is GangState.FAILED else how


def _given_up(verdict: Verdict) -> GangState:
    return GangState.INDEX_FAILED if verdict.cause == names.REASON_INDEX_FAILED else GangState.TIMED_OUT


def _recorded_count(workload: WorkloadSeen, verdict: Verdict | None) -> tuple[int, int] | None:
    """(started, expected) at the verdict, or at the controller's last count."""
    if verdict is not None:
        return messages.parse_progress(verdict.message)
    said = _waiting_message(workload)
    return None if said is None else messages.parse_progress(said)


def _cannot_gather(seen: GangSnapshot) -> str:
    """Why the owner of the pods never makes enough of them: as it was read, or as the controller has read it."""
    condition = seen.workload.condition
    if seen.cannot_gather or condition is None or condition.reason != names.REASON_CANNOT_GATHER:
        return seen.cannot_gather
    return condition.message.partition("; ")[2].partition("; ")[0]


def _waiting_message(workload: WorkloadSeen) -> str | None:
    """The message of a condition that says that the gang waits."""
    condition = workload.condition
    return condition.message if condition is not None and condition.reason in messages.WAITING else None


# --- One pod ---------------------------------------------------------------------------------------------------------


def _subject(seen: GangSnapshot, name: str) -> ExplainedPod | None:
    pod = next((it for it in seen.pods if it.name == name), None)
    if pod is None:
        return None
    slot = slot_of_pod(seen, pod).slot(seen.workload.source)
    return ExplainedPod(name=name, slot=slot, message=_pod_message(seen, pod))


def _pod_message(seen: GangSnapshot, pod: PodSeen) -> str:
    if pod.workload_uid != seen.workload.uid or pod.attempt != seen.workload.attempt:
        return f"belongs to an earlier life or restart of the {seen.workload.source.kind}"
    if not pod.started:
        cause = pod.pending or PendingCause(reason=PendingReason.STARTING)
        return f"{cause.reason}: {cause.message}" if cause.message else cause.reason.value
    if pod.stage is BarrierStage.PASSED:
        return "has gone through the barrier"
    return "has finished" if pod.phase == "Succeeded" else "has started and waits in the barrier"


# --- What to run next ------------------------------------------------------------------------------------------------


def _commands(
    state: GangState, workload: WorkloadSeen, found: Sequence[MissingByReason], policy: FailurePolicies | None
) -> tuple[str, ...]:
    if found:
        return commands(found)
    if state is GangState.SUSPENDED and policy and policy.queue:
        return (f"kubectl describe workloads.kueue.x-k8s.io -n {workload.namespace}",)
    command = _OF_STATES.get(state, "kubectl describe {resource} {name} -n {namespace}")
    source, its = workload.source, workload.involved_object
    return (
        command.format(
            resource=its.kind.lower(),
            name=its.name,
            namespace=workload.namespace,
            pods_labels=source.pods_labels(workload.name),
            config_map=source.config_map_name(workload.name),
        ),
    )


_PODS = "kubectl get pods -n {namespace} -l {pods_labels}"
_OF_STATES: dict[GangState, str] = {
    GangState.SUSPENDED: (
        """kubectl patch {resource} {name} -n {namespace} --type=merge -p '{{"spec":{{"suspend":false}}}}'"""
    ),
    GangState.CONFIG_MAP_CONFLICT: "kubectl get configmap {config_map} -n {namespace} -o yaml",
    GangState.GATE_MISSING: "kubectl jobset-gate doctor",
    GangState.RELEASED: _PODS,
    GangState.DUE: _PODS,
    GangState.WAITING: _PODS,
}


# --- A pod group -----------------------------------------------------------------------------------------------------


def explain_pod_group(
    report: GroupStatus,
    now: float,
    *,
    controller: ControllerStatus | None = None,
    unknown: Sequence[str] = (),
    pod: str = "",
) -> Explanation:
    """Everything there is to say of a group; `pod` is the name of a member that the command line names."""
    record, counts = report.record, report.counts
    placing = record is not None and record.stage is AdmissionState.OPEN and record.satisfied is None
    clock = last_ungated_at(report.snapshot, record, now) if placing and record is not None else None
    return Explanation(
        kind=names.POD_GROUP,
        namespace=report.key.namespace,
        name=report.key.name or "<none>",
        state=report.reason,
        message=report.message.replace(
            unscheduled_text(report.snapshot), ""
        ),  # the missing members are listed by reason
        now=now,
        expected=counts.minimum,
        started=counts.bound,
        passed=counts.running,
        missing=tuple(_lacks(report)),
        timeout=round(record.wait * (2 if record.extended else 1)) if placing and record is not None else None,
        waiting_since=clock,
        decided=None if record is None or record.stage is not AdmissionState.OPEN else record.at,
        afterwards=_afterwards(record) if placing and record is not None else "",
        subject=next((_member(it) for it in report.snapshot.members if it.name == pod), None) if pod else None,
        controller=controller,
        unknown=tuple(unknown),
        commands=_group_commands(report),
    )


def _afterwards(record: AdmissionRecord) -> str:
    if record.mode is GangMode.NON_STRICT:
        return "nothing is taken back (its mode is NonStrict): what is bound goes on, the others wait for a place"
    return "all of its pods are taken back, so that others get the room, and it waits to be opened again"


def _lacks(report: GroupStatus) -> Iterator[MissingByReason]:
    """Members without a node, by what holds them; last those without a pod."""
    yield from missing_members(report.snapshot.members)
    absent = report.counts.minimum - report.counts.present
    if absent > 0:
        yield MissingByReason(
            reason="NotCreated", message="no such pods exist yet", count=absent, command=_members(report)
        )


def _member(member: MemberPod) -> ExplainedPod:
    if member.bound and member.alive:
        return ExplainedPod(
            name=member.name, slot="", message=f"is bound to node {member.node}" if member.node else "has ended"
        )
    return ExplainedPod(name=member.name, slot="", message=": ".join(waiting_for(member)))


def _members(report: GroupStatus) -> str:
    return f"kubectl get pods -n {report.key.namespace} -l {names.POD_GROUP_LABEL}={report.label}"


def _group_commands(report: GroupStatus) -> tuple[str, ...]:
    namespace, group = report.key.namespace, report.pod_group
    described = [f"kubectl describe podgroups.{group.api} {group.name} -n {namespace}"] if group else []
    pods = [it for it in report.snapshot.members if it.alive and not it.bound]
    first = [f"kubectl describe pod {min(it.name for it in pods)} -n {namespace}"] if pods else []
    own = {
        names.REASON_POD_GROUP_MISSING: [f"kubectl get podgroups -n {namespace}", _members(report)],
        names.REASON_WAITING_FOR_CAPACITY: ["kubectl describe nodes", _members(report)],
        names.REASON_BEHIND_OTHER: ["kubectl jobset-gate get groups -A -o wide"],
        names.REASON_WAITING_FOR_GANG_GROUP: [f"kubectl jobset-gate get groups -n {namespace} -o wide"],
        names.REASON_OTHER_GATE: first,
        names.REASON_PLACING: first,
        names.REASON_TIMED_OUT: first,
    }.get(report.reason, [_members(report)])
    return tuple(dict.fromkeys((*own, *described)))[:MOST_COMMANDS]
