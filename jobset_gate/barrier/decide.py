"""decide(seen, now): what shall happen to a gang. The function the project exists for.

A list of rules, first match wins. Pure: the same facts and the same time give the same decision, whoever asks, so a
controller that was killed between any two writes is finished by its successor. Whether a decision becomes *the*
decision is settled by one compare-and-swap write on the ConfigMap (A6.1); who loses it looks again.
"""

from collections.abc import Callable, Iterable

from jobset_gate import names
from jobset_gate.barrier import count, messages, verdict_codec
from jobset_gate.barrier.missing import missing_by_reason
from jobset_gate.barrier.model import (
    BarrierStage,
    Blocked,
    Decide,
    Decision,
    Enforce,
    GangCount,
    GangSnapshot,
    Generation,
    Ignore,
    JobSetSeen,
    Verdict,
    VerdictKind,
    Wait,
    WaitingSince,
)

CONFLICT_RECHECK_SECONDS = 30.0
"""Seconds until a ConfigMap that is not ours is looked at again; nothing tells us that it went away."""

_MAX_CLOCK_SKEW = 600.0
"""Seconds by which another controller's clock may be ahead of ours (faults.md 12): one that is later is an edit."""

_WHOLE_SECOND = 1.0
"""Kubelets report whole seconds, rounded down: a pod started up to this much later than its status says."""


def decide(seen: GangSnapshot, now: float) -> Decision:
    """The decision on one gang. `now` in seconds since the epoch, by the controller's clock."""
    facts = _Input(seen, now)
    for rule in RULES:
        decision = rule(facts)
        if decision is not None:
            return decision
    return _waiting(facts)


def is_plausible_clock(clock: WaitingSince, jobset: JobSetSeen, now: float) -> bool:
    """Whether a clock of this JobSet can show this time; anything else is an edit.

    No nearer bounds: the pods that began it may be gone, and nodes' clocks may differ.
    """
    return jobset.created <= clock.at <= max(jobset.created, now + _MAX_CLOCK_SKEW)


class _Input:
    """What the rules ask for, counted once."""

    def __init__(self, seen: GangSnapshot, now: float) -> None:
        self.seen, self.now = seen, now
        self.shares = tuple(count.list_job_slots(seen))
        self.tally: GangCount = count.count_gang(seen, self.shares)
        self.epoch = self.tally.live_epoch if self.tally.live_epoch >= 0 else seen.jobset.epoch
        self.recorded = recorded_verdict(seen)
        self.clock = self._clock()
        self.deadline = self._deadline()

    def generation(self, epoch: int) -> Generation:
        return Generation(self.seen.jobset.uid, self.seen.jobset.attempt, epoch)

    def _clock(self) -> WaitingSince | None:
        """The generation's clock: the one kept, else from its first started pod (A7)."""
        kept = self.seen.config_map.waiting_since if self._gate_is_ours() and self.seen.config_map else None
        current = self.generation(self.epoch)
        if kept is not None:
            if _is_of_later_attempt(kept.generation, current):
                return kept
            if kept.generation.covers(current) and is_plausible_clock(kept, self.seen.jobset, self.now):
                return kept
        # What has finished in an earlier generation is no started pod: after a resume the nodes may take their time.
        if self.tally.epoch < 0 or self.seen.jobset.suspended:
            return None
        if (
            self.recorded is not None
            and self.recorded.generation.covers(current)
            and current != self.recorded.generation
        ):
            return None  # a pod of an epoch that a younger verdict has decided along
        return WaitingSince(generation=current, at=max(self.seen.jobset.created, min(self._first_starts())))

    def _first_starts(self) -> Iterable[float]:
        if self.tally.first_start is not None:
            yield self.tally.first_start + _WHOLE_SECOND
        if self.tally.first_announced is not None:
            yield self.tally.first_announced
        yield self.now

    def _deadline(self) -> float | None:
        timeout, clock = self.seen.jobset.config.timeout, self.clock
        if timeout is None or clock is None or self.seen.jobset.suspended:
            return None
        if _is_of_later_attempt(clock.generation, self.generation(self.epoch)):
            return None  # it times the pods of another attempt
        return clock.at + timeout

    def _gate_is_ours(self) -> bool:
        return self.seen.config_map is not None and self.seen.config_map.jobset_uid == self.seen.jobset.uid


# --- The rules -------------------------------------------------------------------------------------------------------


def _not_managed(facts: _Input) -> Decision | None:
    jobset = facts.seen.jobset
    return Ignore() if jobset.deleting or jobset.finished or jobset.managed_elsewhere else None


def _gate_missing(facts: _Input) -> Decision | None:
    targets = facts.seen.jobset.targets
    if targets and all(target.has_barrier or not target.expected for target in targets):
        return None
    return Blocked(condition=messages.gate_missing(facts.seen))


def _config_map_conflict(facts: _Input) -> Decision | None:
    if not facts.seen.config_map_conflict:
        return None
    return Blocked(condition=messages.config_map_conflict(facts.seen), requeue_after=CONFLICT_RECHECK_SECONDS)


def _suspended(facts: _Input) -> Decision | None:
    """Nothing counts, no clock runs; an older verdict stays where it is, and binds nobody younger."""
    return _waiting(facts) if facts.seen.jobset.suspended else None


def _decided(facts: _Input) -> Decision | None:
    """Once satisfied: a verdict stands for its generation, whatever happens to single pods afterwards (A5)."""
    verdict = facts.recorded
    if verdict is None or not _is_current(verdict, facts):
        return None
    return Enforce(verdict=verdict, clock=facts.clock, condition=messages.decided(verdict))


def _bypassed(facts: _Input) -> Decision | None:
    if not facts.seen.jobset.bypass:
        return None
    epoch = max(facts.epoch, facts.seen.jobset.epoch)
    return _release(facts, epoch, names.REASON_BYPASSED, messages.bypassed(facts.tally))


def _all_started(facts: _Input) -> Decision | None:
    """Before the timeout's rule: a gang whose last pod came in the same instant is complete (faults.md 11)."""
    if not facts.tally.complete:
        return None
    epoch = facts.tally.epoch if facts.tally.epoch >= 0 else facts.epoch
    return _release(facts, epoch, names.REASON_STARTED, messages.started(facts.tally))


def _timed_out(facts: _Input) -> Decision | None:
    timeout, clock = facts.seen.jobset.config.timeout, facts.clock
    if timeout is None or clock is None or facts.deadline is None or facts.now < facts.deadline:
        return None
    releases = facts.seen.jobset.releases_on_timeout
    verdict = Verdict(
        kind=VerdictKind.RELEASE if releases else VerdictKind.TIMEOUT,
        generation=facts.generation(max(facts.epoch, clock.generation.epoch)),
        cause=names.REASON_TIMED_OUT,
        message=messages.timed_out(
            facts.tally, timeout, missing_by_reason(facts.seen, facts.shares), releases=releases
        ),
    )
    return Decide(verdict=verdict, clock=clock, condition=messages.decided(verdict))


RULES: tuple[Callable[[_Input], Decision | None], ...] = (
    _not_managed,
    _gate_missing,  # before the count: pods that nothing holds are not a gang
    _config_map_conflict,  # no place for a durable decision: stay closed and say so
    _suspended,
    _decided,  # before everything that could decide again
    _bypassed,
    _all_started,
    _timed_out,
)


def _waiting(facts: _Input) -> Wait:
    found = () if facts.seen.jobset.suspended else missing_by_reason(facts.seen, facts.shares)
    return Wait(
        condition=messages.waiting(facts.seen, facts.tally, found),
        clock=facts.clock,
        requeue_after=None if facts.deadline is None else max(0.0, facts.deadline - facts.now),
        expected=facts.tally.expected,
        started=facts.tally.started,
        missing=found,
        verdict=facts.recorded,
    )


def _release(facts: _Input, epoch: int, cause: str, message: str) -> Decide:
    verdict = Verdict(kind=VerdictKind.RELEASE, generation=facts.generation(epoch), cause=cause, message=message)
    return Decide(verdict=verdict, clock=facts.clock, condition=messages.decided(verdict))


# --- What was decided before -----------------------------------------------------------------------------------------


def _is_current(verdict: Verdict, facts: _Input) -> bool:
    its, now = verdict.generation, facts.generation(facts.epoch)
    return its.covers(now) or _is_of_later_attempt(its, now)


def _is_of_later_attempt(its: Generation, now: Generation) -> bool:
    """A verdict or a clock of an attempt that the JobSet does not show yet: our view of it is old. Touch nothing."""
    return its.uid == now.uid and its.attempt > now.attempt


def recorded_verdict(seen: GangSnapshot) -> Verdict | None:
    """The youngest verdict on this life of the JobSet: the ConfigMap's, else what the API's other facts prove (A10)."""
    gate = seen.config_map
    kept = gate.verdict if gate is not None and gate.jobset_uid == seen.jobset.uid else None
    if kept is not None and kept.generation.uid != seen.jobset.uid:
        kept = None
    best = kept
    for proof in _recorded_elsewhere(seen):
        if best is None or _order(proof) > _order(best):
            best = proof
    return best


def _recorded_elsewhere(seen: GangSnapshot) -> Iterable[Verdict]:
    """Verdicts that left traces elsewhere: in our condition, on pods, in barriers that let their pod pass."""
    uid, attempt = seen.jobset.uid, seen.jobset.attempt
    told = messages.verdict_in_condition(seen.jobset.condition, uid)
    if told is not None:
        yield told
    # Whoever deletes the ConfigMap right after a decision may be quicker than the watches that show its traces.
    if seen.remembered is not None and seen.remembered.generation.uid == uid:
        yield seen.remembered
    passed = -1
    texts: set[str] = set()
    for pod in count.gang_pods(seen):
        if pod.verdict:
            texts.add(pod.verdict)
        if pod.alive and pod.stage is BarrierStage.PASSED:
            passed = max(passed, pod.epoch)
    for text in sorted(texts):  # of equals the same wins in every process
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
