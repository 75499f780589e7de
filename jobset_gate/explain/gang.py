"""explain(seen, now): why a gang still waits, or how it was decided. The answer to the question asked most.

Built on `decide`, so that it never says anything else than what the controller would do with the same facts. Pure.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from jobset_gate import names
from jobset_gate.barrier import count, messages
from jobset_gate.barrier.decide import decide, recorded_verdict
from jobset_gate.barrier.missing import commands, missing_by_reason
from jobset_gate.barrier.model import (
    BarrierStage,
    Blocked,
    Decide,
    Decision,
    Enforce,
    GangSnapshot,
    Generation,
    Ignore,
    JobSetSeen,
    PendingCause,
    PodSeen,
    Verdict,
    VerdictKind,
    Wait,
    WaitingSince,
)
from jobset_gate.explain.after_timeout import after_timeout
from jobset_gate.explain.model import (
    ControllerStatus,
    ExplainedPod,
    Explanation,
    FailurePolicies,
    GangState,
    MissingByReason,
    ReplicatedJobCount,
)
from jobset_gate.explain.text import explanation_lines

__all__ = [
    "ControllerStatus",
    "Explanation",
    "FailurePolicies",
    "GangState",
    "MissingByReason",
    "ReplicatedJobCount",
    "explain_gang",
    "explain_ungated",
    "explanation_lines",
]

_FIELD = f"spec.{names.CONFIG_FIELD}"


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
    """Everything there is to say of a gang. `blind`: its pods could not be read, so nothing is counted.

    `unknown` are the sentences about what could not be read, `pod` the name of the pod that the command line names.
    """
    about = _GangExplainer(seen, now, decide(seen, now), policy, blind=pods_forbidden)
    state = about.state()
    shows = state in (GangState.WAITING, GangState.DUE) and not pods_forbidden
    found = about.lacks() if shows else ()
    clock, tally = about.clock(), count.count_gang(seen)
    ended = about.ended()
    counted = about.counted() if ended else None
    unknown_now = pods_forbidden or (seen.jobset.finished and ended)  # its pods go, and say nothing about the start
    waits = state in (GangState.WAITING, GangState.DUE)
    parts = tuple(ReplicatedJobCount(name=name, started=up, expected=all_) for name, up, all_ in tally.per_job)
    return Explanation(
        kind="JobSet",
        namespace=seen.jobset.namespace,
        name=seen.jobset.name,
        state=state,
        message=about.message(state),
        now=now,
        expected=counted[1] if counted else tally.expected,
        started=counted[0] if counted else None if unknown_now else tally.started,
        passed=sum(it.stage is BarrierStage.PASSED and it.alive for it in count.gang_pods(seen)),
        parts=() if unknown_now or counted else parts,
        lacks=tuple(found),
        timeout=seen.jobset.config.timeout,
        since=clock.at if clock is not None and waits else None,
        decided=about.decided(state),
        afterwards=about.afterwards(state),
        subject=_subject(seen, pod) if pod else None,
        controller=controller,
        unknown=tuple(unknown),
        commands=_commands(state, seen.jobset, found, policy),
    )


def explain_ungated(namespace: str, name: str, now: float) -> Explanation:
    """A JobSet that asks for no gate."""
    return Explanation(
        kind="JobSet",
        namespace=namespace,
        name=name,
        state=GangState.NOT_GATED,
        now=now,
        message=f"asks for no start barrier: it has neither {_FIELD} nor the annotation {names.CONFIG}",
        commands=(f"kubectl describe jobset {name} -n {namespace}",),
    )


class _GangExplainer:
    """What was decided about a gang, put into words."""

    def __init__(
        self, seen: GangSnapshot, now: float, decision: Decision, policy: FailurePolicies | None, *, blind: bool
    ) -> None:
        self.seen, self.now, self.decision, self.policy, self.blind = seen, now, decision, policy, blind
        self.verdict = self._verdict()

    def _verdict(self) -> Verdict | None:
        """Of the present generation, for one that has ended too: a JobSet that was restarted has another since."""
        found, jobset = recorded_verdict(self.seen), self.seen.jobset
        present = Generation(jobset.uid, jobset.attempt, jobset.epoch)
        return found if found is not None and found.generation.covers(present) else None

    def ended(self) -> bool:
        """Whether pods that go now say nothing about the start."""
        timed_out = isinstance(self.decision, Enforce) and self.decision.verdict.kind is VerdictKind.TIMEOUT
        return timed_out or (self.seen.jobset.finished and isinstance(self.decision, Ignore))

    def counted(self) -> tuple[int, int] | None:
        """How many of how many had started when it was decided, or when the controller counted last."""
        condition = self.seen.jobset.condition
        if self.verdict is None:
            return (
                messages.parse_progress(condition.message)
                if condition is not None and condition.reason == names.REASON_WAITING
                else None
            )
        return messages.parse_progress(self.verdict.message)

    def state(self) -> GangState:
        jobset = self.seen.jobset
        match self.decision:
            case Ignore():
                if jobset.deleting:
                    return GangState.DELETING
                return self._end() if jobset.finished else GangState.MANAGED_ELSEWHERE
            case Blocked(condition=condition):
                return GangState(condition.reason)
            case Enforce(verdict=verdict):
                return GangState.RELEASED if verdict.kind is VerdictKind.RELEASE else GangState.TIMED_OUT
            case Decide():
                # Without its pods a gang is known to be due only if its annotation asks for the release.
                return GangState.WAITING if self.blind and not jobset.bypass else GangState.DUE
            case Wait():
                return GangState.SUSPENDED if jobset.suspended else GangState.WAITING

    def _end(self) -> GangState:
        if not self.seen.jobset.failed:
            return GangState.COMPLETED
        timed_out = self.verdict is not None and self.verdict.kind is VerdictKind.TIMEOUT
        return GangState.TIMED_OUT if timed_out else GangState.FAILED

    def lacks(self) -> Sequence[MissingByReason]:
        return self.decision.missing if isinstance(self.decision, Wait) else missing_by_reason(self.seen)

    def clock(self) -> WaitingSince | None:
        return self.decision.clock if isinstance(self.decision, Wait | Decide | Enforce) else None

    def decided(self, state: GangState) -> float | None:
        """Our condition turns True with the release, so it knows when; to other verdicts it is no witness."""
        condition = self.seen.jobset.condition
        if state is not GangState.RELEASED or condition is None or condition.status != "True":
            return None
        try:
            return datetime.fromisoformat(condition.since).timestamp()
        except ValueError:
            return None

    def message(self, state: GangState) -> str:
        return _MESSAGES.get(state, _of_decision)(self)

    def afterwards(self, state: GangState) -> str:
        if state in (GangState.WAITING, GangState.DUE):
            return after_timeout(self.seen.jobset, self.policy)
        if state is GangState.TIMED_OUT and self.policy is not None and not self.seen.jobset.finished:
            return after_timeout(self.seen.jobset, self.policy)
        return ""


def _of_decision(about: _GangExplainer) -> str:
    match about.decision:
        case Blocked(condition=condition):
            return condition.message
        case Enforce(verdict=verdict):
            return verdict.message
        case _:
            return ""


def _waiting(about: _GangExplainer) -> str:
    """Nothing, where the numbers say it all; without them, what the controller said last."""
    condition = about.seen.jobset.condition
    if not about.blind:
        return ""
    if condition is None or condition.reason != names.REASON_WAITING:
        return "how many pods have started is not known"
    return f"the controller said: {condition.message}"


def _due(about: _GangExplainer) -> str:
    verdict: Verdict | None = about.decision.verdict if isinstance(about.decision, Decide) else None
    if verdict is None:
        return ""
    what = "the gate is due to open" if verdict.kind is VerdictKind.RELEASE else "the gang is due to be timed out"
    return f"{what} ({verdict.message}), as soon as a controller says so"


def _ended(about: _GangExplainer) -> str:
    """What was decided, and what became of the JobSet; first of both what the state is about."""
    jobset, verdict = about.seen.jobset, about.verdict
    how = jobset.finished_message or f"the JobSet has {'failed' if jobset.failed else 'completed'}"
    decided = "" if verdict is None else verdict.message
    if verdict is not None and verdict.kind is VerdictKind.TIMEOUT:
        return f"{decided or 'timed out'}; then: {how}"
    if decided:
        return f"{how}; before that: {decided}"
    return f"{how}; before that, no verdict on its gate" if jobset.failed else how


def _suspended(about: _GangExplainer) -> str:
    queue = about.policy.queue if about.policy else ""
    who = f"Kueue has not admitted it (queue {queue})" if queue else "spec.suspend is true"
    return f"{who}; while it is suspended nothing counts and no clock runs"


_MESSAGES: dict[GangState, Callable[[_GangExplainer], str]] = {
    GangState.WAITING: _waiting,
    GangState.DUE: _due,
    GangState.COMPLETED: _ended,
    GangState.FAILED: _ended,
    GangState.TIMED_OUT: lambda about: _ended(about) if about.seen.jobset.finished else _of_decision(about),
    GangState.SUSPENDED: _suspended,
    GangState.DELETING: lambda _: "is being deleted",
    GangState.MANAGED_ELSEWHERE: lambda _: "spec.managedBy names another controller, so its gate is not ours to open",
}


# --- One pod ---------------------------------------------------------------------------------------------------------


def _subject(seen: GangSnapshot, name: str) -> ExplainedPod | None:
    pod = next((it for it in seen.pods if it.name == name), None)
    if pod is None:
        return None
    slot = f"{pod.replicated_job}-{pod.job_index}" + ("" if pod.index is None else f"/{pod.index}")
    return ExplainedPod(name=name, slot=slot, message=_pod_message(seen, pod))


def _pod_message(seen: GangSnapshot, pod: PodSeen) -> str:
    if pod.jobset_uid != seen.jobset.uid or pod.attempt != seen.jobset.attempt:
        return "belongs to an earlier life or restart of the JobSet"
    if not pod.started:
        return _cause_text(pod.pending)
    if pod.stage is BarrierStage.PASSED:
        return "has gone through the barrier"
    return "has finished" if pod.phase == "Succeeded" else "has started and waits in the barrier"


def _cause_text(stall: PendingCause | None) -> str:
    if stall is None:
        return "has not started"
    return f"{stall.reason}: {stall.message}" if stall.message else stall.reason.value


# --- What to run next ------------------------------------------------------------------------------------------------


def _commands(
    state: GangState, jobset: JobSetSeen, found: Sequence[MissingByReason], policy: FailurePolicies | None
) -> tuple[str, ...]:
    if found:
        return commands(found)
    if state is GangState.SUSPENDED and policy and policy.queue:
        return (f"kubectl describe workloads.kueue.x-k8s.io -n {jobset.namespace}",)
    command = _OF_STATES.get(state, "kubectl describe jobset {name} -n {namespace}")
    return (command.format(name=jobset.name, namespace=jobset.namespace),)


_PODS = f"kubectl get pods -n {{namespace}} -l {names.JS_NAME}={{name}}"
_OF_STATES: dict[GangState, str] = {
    GangState.SUSPENDED: (
        """kubectl patch jobset {name} -n {namespace} --type=merge -p '{{"spec":{{"suspend":false}}}}'"""
    ),
    GangState.CONFIG_MAP_CONFLICT: f"kubectl get configmap {{name}}{names.CONFIG_MAP_SUFFIX} -n {{namespace}} -o yaml",
    GangState.GATE_MISSING: "kubectl jobset-gate doctor",
    GangState.RELEASED: _PODS,
    GangState.DUE: _PODS,
    GangState.WAITING: _PODS,
}
