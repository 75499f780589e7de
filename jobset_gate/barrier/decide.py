"""The decision on a gang: a list of rules, first match wins.

Pure: the same snapshot and time give the same decision in every process, so the next leader completes what a killed one
began. A decision becomes durable by one compare-and-swap write of the ConfigMap (A6.1); a conflict requeues the gang.
"""

from collections.abc import Callable, Iterable

from jobset_gate import names
from jobset_gate.barrier import count, messages, verdict_codec
from jobset_gate.barrier.decision import Blocked, Decide, Decision, Enforce, Ignore, Wait
from jobset_gate.barrier.missing import missing_by_reason
from jobset_gate.barrier.model import (
    BarrierStage,
    GangSnapshot,
    Generation,
    Verdict,
    VerdictKind,
    WaitingSince,
    WorkloadSeen,
)

CONFLICT_RECHECK_SECONDS = 30.0
"""No watch shows ConfigMaps without our label, so a conflict is read again after this time."""

_MAX_CLOCK_SKEW = 600.0
"""Seconds by which another replica's clock may be ahead; a gang's clock that is later was edited."""

_WHOLE_SECOND = 1.0
"""Kubelets round start times down to seconds."""


def decide(seen: GangSnapshot, now: float) -> Decision:
    """The decision on one gang. `now`: seconds since the epoch by the controller's clock."""
    return decide_on(Facts(seen, now))


def is_plausible_clock(clock: WaitingSince, workload: WorkloadSeen, now: float) -> bool:
    """False for a time that no controller writes as this workload's clock.

    The bounds are wide: the pods that started the clock may be gone, and nodes' clocks may differ.
    """
    possible = workload.created <= clock.at <= max(workload.created, now + _MAX_CLOCK_SKEW)
    return possible and clock.generation.uid == workload.uid


class Facts:
    """A snapshot, counted once: the input of all rules."""

    def __init__(self, seen: GangSnapshot, now: float) -> None:
        self.seen, self.now = seen, now
        self.job_slots = tuple(count.list_job_slots(seen))
        self.count = count.count_gang(seen, self.job_slots)
        self.failed_count = sum(slots.failed_count for slots in self.job_slots)
        self.epoch = self.count.live_epoch if self.count.live_epoch >= 0 else seen.workload.epoch
        self.recorded = recorded_verdict(seen)
        self.clock = self._clock()
        self.deadline = self._deadline()

    @property
    def standing(self) -> Verdict | None:
        """The verdict that stands for the present generation."""
        verdict = self.recorded
        return verdict if verdict is not None and _is_current(verdict, self) else None

    @property
    def is_due(self) -> bool:
        """True after the timeout."""
        return self.deadline is not None and self.now >= self.deadline

    @property
    def replaces_members(self) -> bool:
        """True where other members would be written: of a higher attempt, or of one whose members are not seen (K5)."""
        known, attempt, stored = self.seen.membership, self.seen.workload.attempt, self.seen.stored_verdict
        if known is None or attempt < known.attempt:
            return False
        if attempt == known.attempt:
            is_decided = stored is not None and stored.generation.attempt == attempt
            live = (pod.uid for pod in self.seen.pods if pod.live)
            if is_decided or not known.members or not known.members.isdisjoint(live):
                return False
        decision = decide_on(self)
        if isinstance(decision, Wait):
            return decision.clock is not None and decision.clock.generation.attempt == attempt
        return isinstance(decision, Decide | Enforce)

    @property
    def cannot_start(self) -> bool:
        """True where indexes that the gang needs have failed for good."""
        current = self.generation(self.epoch)
        return self.failed_count > 0 and not (self.clock and _is_of_later_attempt(self.clock.generation, current))

    def generation(self, epoch: int) -> Generation:
        return Generation(self.seen.workload.uid, self.seen.workload.attempt, epoch)

    def _clock(self) -> WaitingSince | None:
        """The generation's clock: the stored one, else the start of its first pod (A7)."""
        kept = self.seen.own_config_map.waiting_since if self.seen.own_config_map is not None else None
        current = self.generation(self.epoch)
        if kept is not None:
            if _is_of_later_attempt(kept.generation, current):
                return kept
            if kept.generation.covers(current) and is_plausible_clock(kept, self.seen.workload, self.now):
                return kept
        # Slots completed in an earlier generation start no clock: nodes may come late after a resume.
        if self.count.epoch < 0 or self.seen.workload.suspended:
            return None
        if (
            self.recorded is not None
            and self.recorded.generation.covers(current)
            and current != self.recorded.generation
        ):
            return None  # a newer verdict covers this epoch
        return WaitingSince(generation=current, at=max(self.seen.workload.created, min(self._first_starts())))

    def _first_starts(self) -> Iterable[float]:
        if self.count.first_start is not None:
            yield self.count.first_start + _WHOLE_SECOND
        if self.count.first_announced is not None:
            yield self.count.first_announced
        yield self.now

    def _deadline(self) -> float | None:
        timeout, clock = self.seen.workload.config.timeout, self.clock
        if timeout is None or clock is None or self.seen.workload.suspended:
            return None
        if _is_of_later_attempt(clock.generation, self.generation(self.epoch)):
            return None  # the clock of another attempt
        return clock.at + timeout


# --- The rules -------------------------------------------------------------------------------------------------------


def _not_managed(facts: Facts) -> Decision | None:
    workload = facts.seen.workload
    return Ignore() if workload.deleting or workload.finished or workload.managed_elsewhere else None


def _gate_missing(facts: Facts) -> Decision | None:
    targets = facts.seen.workload.targets
    if targets and all(target.has_barrier or not target.expected for target in targets):
        return None
    return Blocked(condition=messages.gate_missing(facts.seen))


def _config_map_conflict(facts: Facts) -> Decision | None:
    if not facts.seen.config_map_conflict:
        return None
    condition, is_decided = messages.config_map_conflict(facts.seen), facts.standing is not None
    return Blocked(condition=condition, requeue_after=CONFLICT_RECHECK_SECONDS, is_decided=is_decided)


def _suspended(facts: Facts) -> Decision | None:
    """No pod counts and no clock runs; an older verdict stays in the ConfigMap and binds no newer generation."""
    return _waiting(facts) if facts.seen.workload.suspended else None


def _decided(facts: Facts) -> Decision | None:
    """A verdict stands for its generation, whatever happens to single pods afterwards (A5)."""
    if facts.standing is None:
        return None
    return Enforce(verdict=facts.standing, clock=facts.clock, condition=messages.decided(facts.standing))


def _bypassed(facts: Facts) -> Decision | None:
    if not facts.seen.workload.bypass:
        return None
    epoch = max(facts.epoch, facts.seen.workload.epoch)
    message = f"gate opened by the annotation {names.BYPASS} with {messages.progress(facts.count)}"
    return _release(facts, epoch, names.REASON_BYPASSED, message)


def _bare_pod(facts: Facts) -> Decision | None:
    """A live pod has no barrier: a common start is no longer possible, and its slot never reports (K6)."""
    pod = facts.seen.workload.bare_pod
    if not pod:
        return None
    message = messages.bare_pod(pod, facts.count)
    return _release(facts, max(facts.epoch, facts.seen.workload.epoch), names.REASON_GATE_MISSING, message)


def _all_started(facts: Facts) -> Decision | None:
    """Before the timeout's rule: a gang whose last pod starts in the same instant is complete."""
    if not facts.count.complete:
        return None
    epoch = facts.count.epoch if facts.count.epoch >= 0 else facts.epoch
    return _release(facts, epoch, names.REASON_STARTED, f"all {facts.count.expected} pods started")


def _index_failed(facts: Facts) -> Decision | None:
    """At once, with or without a timeout: waiting cannot complete the gang any more (A7)."""
    return _give_up(facts, names.REASON_INDEX_FAILED) if facts.cannot_start else None


def _timed_out(facts: Facts) -> Decision | None:
    return _give_up(facts, names.REASON_TIMED_OUT) if facts.is_due else None


def _give_up(facts: Facts, cause: str) -> Decide:
    """The verdict on an incomplete gang; its kind is the user's on-timeout."""
    found, clock = missing_by_reason(facts.seen, facts.job_slots), facts.clock
    verdict = Verdict(
        kind=VerdictKind.RELEASE if facts.seen.workload.releases_on_timeout else VerdictKind.TIMEOUT,
        generation=facts.generation(facts.epoch if clock is None else max(facts.epoch, clock.generation.epoch)),
        cause=cause,
        message=messages.given_up(facts.seen.workload, cause, facts.count, found),
    )
    return Decide(verdict=verdict, clock=clock, condition=messages.decided(verdict))


Rule = Callable[[Facts], Decision | None]

NO_VERDICT: tuple[Rule, ...] = (
    _not_managed,
    _gate_missing,  # before the count: pods without a barrier are no gang
    _config_map_conflict,  # a verdict cannot be stored: stay closed and report it
)
"""Rules under which no verdict is possible."""

RULES: tuple[Rule, ...] = (
    *NO_VERDICT,
    _suspended,
    _decided,  # before every rule that decides
    _bypassed,
    _bare_pod,
    _all_started,
    _index_failed,  # before the timeout's rule: it says more
    _timed_out,
)


def decide_on(facts: Facts) -> Decision:
    """The decision on facts that were counted already."""
    for rule in RULES:
        decision = rule(facts)
        if decision is not None:
            return decision
    return _waiting(facts)


def _waiting(facts: Facts) -> Wait:
    found = () if facts.seen.workload.suspended else missing_by_reason(facts.seen, facts.job_slots)
    return Wait(
        condition=messages.waiting(facts.seen, facts.count, found),
        clock=facts.clock,
        requeue_after=None if facts.deadline is None else max(0.0, facts.deadline - facts.now),
        expected=facts.count.expected,
        started=facts.count.started,
        missing=found,
        verdict=facts.recorded,
    )


def _release(facts: Facts, epoch: int, cause: str, message: str) -> Decide:
    verdict = Verdict(kind=VerdictKind.RELEASE, generation=facts.generation(epoch), cause=cause, message=message)
    return Decide(verdict=verdict, clock=facts.clock, condition=messages.decided(verdict))


# --- Earlier verdicts ------------------------------------------------------------------------------------------------


def _is_current(verdict: Verdict, facts: Facts) -> bool:
    its, now = verdict.generation, facts.generation(facts.epoch)
    return its.covers(now) or _is_of_later_attempt(its, now)


def _is_of_later_attempt(its: Generation, now: Generation) -> bool:
    """True for an attempt that the cached workload does not show yet: the cache is stale, so change nothing."""
    return its.uid == now.uid and its.attempt > now.attempt


def recorded_verdict(seen: GangSnapshot) -> Verdict | None:
    """The newest verdict on this workload: the ConfigMap's, or one recorded elsewhere in the API (A10)."""
    best = seen.stored_verdict
    for proof in _recorded_elsewhere(seen):
        if best is None or _order(proof) > _order(best):
            best = proof
    return best


def _recorded_elsewhere(seen: GangSnapshot) -> Iterable[Verdict]:
    """Verdicts recorded in the condition, in this process, in pods' annotations, or implied by passed barriers."""
    uid, attempt = seen.workload.uid, seen.workload.attempt
    in_condition = messages.verdict_in_condition(seen.workload.condition, uid)
    # A start group's ConfigMap has its condition, too, which would bind any pod if the members were deleted there.
    last = seen.membership.attempt if seen.membership is not None and seen.membership.members else -1
    if in_condition is not None and (last >= in_condition.generation.attempt or not seen.workload.source.keeps_attempt):
        yield in_condition
    # A ConfigMap may be deleted right after the verdict, before a watch shows the verdict elsewhere.
    if seen.remembered is not None and seen.remembered.generation.uid == uid:
        yield seen.remembered
    passed = -1
    texts: set[str] = set()
    for pod in count.gang_pods(seen):
        if pod.verdict:
            texts.add(pod.verdict)
        if pod.alive and pod.stage is BarrierStage.PASSED:
            passed = max(passed, pod.epoch)
    for text in sorted(texts):  # the same order in every process
        verdict = verdict_codec.parse(text)
        if verdict is not None and verdict.generation.uid == uid and verdict.generation.attempt == attempt:
            yield verdict
    if passed >= 0:
        yield Verdict(
            kind=VerdictKind.RELEASE,
            generation=Generation(uid, attempt, passed),
            cause=names.REASON_STARTED,
            message="released earlier",
        )


def _order(verdict: Verdict) -> tuple[int, int]:
    return verdict.generation.attempt, verdict.generation.epoch
