"""What must never happen, whatever the schedule: checked at each write of a gate and at each passage of a barrier.

What can be promised by a controller whose views are late:

* No early release. A release for AllPodsStarted is written only if in the view that it was decided on every slot had
  finished or had a started pod of that UID and attempt, and each of those pods had really started; a pod whose status
  did not show that held a request open on the gate stream. The verdict names no higher epoch than those pods carry, so
  a pod that was not counted and came after a suspension never passes on it.
* No stale release. A barrier never obeys a verdict that was written before its own generation began.
* No double verdict. For one generation all verdicts ever written are of one kind. Only when a user destroys the
  verdict before any trace of it has reached the controller (its condition, a pod's annotation, a barrier that passed)
  may it be taken again. It reads the condition from the API before it decides without a ConfigMap.
* The clock of a generation, once written, never moves, and a write never takes back a verdict.
* No timeout before its time, by the true clock as long as nobody has set a clock; and none without a closer look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.barrier import decode, verdict_codec, wire
from jobset_gate.barrier.model import (
    BarrierStage,
    GangSnapshot,
    Generation,
    JobSeen,
    PodSeen,
    Verdict,
    VerdictKind,
    WaitingSince,
)
from jobset_gate.kube.resources import JOBSETS, PODS
from tests.fakes.memory_api import Api, Json
from tests.stress.world.cluster import Cluster
from tests.stress.world.objects import JOBSET
from tests.stress.world.replica import Replica


class RuleBroken(AssertionError):
    """A promise was broken."""


class Referee:
    """Watches one gang's gate."""

    def __init__(self, api: Api, cluster: Cluster, now: Callable[[], float]) -> None:
        self._api, self._cluster, self._now = api, cluster, now
        self.verdicts: list[Verdict] = []
        """Every verdict that was written, in order, without repetitions."""
        self.lost: set[Generation] = set()
        """Generations whose verdict a user destroyed."""
        self.clocks: dict[Generation, WaitingSince] = {}
        self.edited_clocks: set[Generation] = set()
        """Of these a clock may be put right, or be believed where it can be so."""
        self.clocks_set = False
        """A user has set a clock: times are no longer to be trusted."""
        self._passages = 0

    # --- Writes ----------------------------------------------------------------------------------------------------

    def gate_written(self, replica: Replica, old: Json | None, new: Json) -> None:
        """A controller's compare-and-swap went through."""
        before, after = _gate(self._genuine(old)), _gate(new)
        assert after is not None
        assert after.canonical, f"a gate is written whole: {new}"
        if before is not None:
            _must(before.jobset_uid in ("", after.jobset_uid), f"{before} of another life was adopted")
            self._no_going_back(before.verdict, after.verdict)
            self._clock_stands(before.waiting_since, after)
        if after.verdict is not None and (before is None or before.verdict != after.verdict):
            self._verdict(replica, after.verdict, recall=before is None or not before.canonical)
        if after.waiting_since is not None and after.waiting_since.generation not in self.clocks:
            self.clocks[after.waiting_since.generation] = after.waiting_since
            self._clock_begins(replica, after.waiting_since)

    def gate_removed(self, old: Json) -> None:
        """A controller removed one: only what an earlier life left behind."""
        gate, jobset = _gate(old), self._api.get(JOBSETS, JOBSET)
        _must(gate is not None, f"an unrelated ConfigMap was removed: {old}")
        _must(jobset is None or jobset["metadata"]["uid"] != gate.jobset_uid, f"{gate} was removed while it was in use")

    def gate_destroyed(self, old: Json) -> None:
        """A user deletes or garbles the gate."""
        gate = _gate(old)
        if gate is not None and gate.verdict is not None:
            self.lost.add(gate.verdict.generation)
        if gate is not None and gate.waiting_since is not None:
            self.clocks.pop(gate.waiting_since.generation, None)

    def clock_edited(self, old: Json) -> None:
        """A user sets its clock to another time."""
        gate = _gate(old)
        if gate is not None and gate.waiting_since is not None:
            self.clocks.pop(gate.waiting_since.generation, None)
            self.edited_clocks.add(gate.waiting_since.generation)

    def _genuine(self, old: Json | None) -> Json | None:
        """Without what another client has written into it."""
        forged = old is not None and (old.get("data") or {}).get(names.KEY_VERDICT) in self._cluster.forged
        return {**old, "data": {}} if old is not None and forged else old

    def _no_going_back(self, old: Verdict | None, new: Verdict | None) -> None:
        if old is None or not old.generation.uid:
            return
        _must(new is not None, f"the verdict {old} was taken back")
        assert new is not None
        _must(_place(new.generation) >= _place(old.generation), f"from {old} back to {new}")
        if new.generation == old.generation:
            _must(new.kind is old.kind, f"from {old} to {new}")

    def _clock_stands(self, old: WaitingSince | None, after: Any) -> None:
        new: WaitingSince | None = after.waiting_since
        if old is None or new == old or old.generation in self.edited_clocks:
            return
        if new is None:
            decided: Verdict | None = after.verdict
            _must(decided is not None and _place(decided.generation) > _place(old.generation), f"{old} was dropped")
            return
        _must(_place(new.generation) > _place(old.generation), f"the clock moved from {old} to {new}")

    def _clock_begins(self, replica: Replica, clock: WaitingSince) -> None:
        """From the first started pod: one that ran on from before the generation began it only now."""
        if clock.generation in self.edited_clocks:
            return  # one that can be is believed: the pods that began it may have gone
        seen = replica.view.seen
        assert seen is not None
        jobs = {job.uid for job in seen.jobs if not job.suspended and job.attempt == seen.jobset.attempt}
        pods = [pod for pod in seen.pods if _has_started(seen, pod) and _mine(seen, pod) and pod.job_uid in jobs]
        _must(bool(pods), f"{clock} without a started pod: {seen}")
        _must(not seen.jobset.suspended, f"{clock} while suspended")
        if self.clocks_set:
            return
        _must(clock.at <= replica.now() + 0.001, f"{clock} is in the future: {replica.now()}")
        its_own = [self._cluster.ran[pod.uid] for pod in pods if pod.epoch == clock.generation.epoch]
        begin = min(its_own, default=replica.view.at)
        _must(clock.at >= begin - 0.001, f"{clock} before the first start of its generation at {begin}: {seen}")

    def _verdict(self, replica: Replica, verdict: Verdict, *, recall: bool) -> None:
        seen = replica.view.seen
        assert seen is not None, "a verdict out of nothing"
        self._generation_exists(verdict)
        again = any(one.kind is verdict.kind and one.generation.covers(verdict.generation) for one in self.verdicts)
        self._no_other_kind(verdict, seen)
        if not again:
            _must(replica.view.recalled or not recall, f"{verdict} in place of a gate that may have held another")
            self._fresh(replica, verdict, seen)
        self.verdicts.append(verdict)

    def _generation_exists(self, verdict: Verdict) -> None:
        its = verdict.generation
        _must(
            any(
                life.uid == its.uid and life.attempt == its.attempt and life.epoch >= its.epoch
                for life in self._cluster.began
            ),
            f"{verdict} is for a generation that has not begun: {sorted(self._cluster.began)}",
        )

    def _no_other_kind(self, verdict: Verdict, seen: GangSnapshot) -> None:
        its = verdict.generation
        others = [one for one in self.verdicts if one.generation == its and one.kind is not verdict.kind]
        if not others or any(one.generation.covers(its) and one.kind is verdict.kind for one in self.verdicts):
            return
        _must(its in self.lost, f"{verdict} after {others[-1]}")
        _must(not _traces(seen, others[-1]), f"{verdict}, though the view shows that {others[-1]} was taken: {seen}")

    def _fresh(self, replica: Replica, verdict: Verdict, seen: GangSnapshot) -> None:
        if verdict.cause == names.REASON_STARTED:
            self._all_started(replica, verdict, seen)
        elif verdict.cause == names.REASON_TIMED_OUT:
            self._timed_out(replica, verdict, seen)
        else:
            _must(verdict.cause == names.REASON_BYPASSED and seen.jobset.bypass, f"nobody asked for {verdict}")
        _must(not seen.jobset.suspended, f"{verdict} while suspended")

    def _all_started(self, replica: Replica, verdict: Verdict, seen: GangSnapshot) -> None:
        its = verdict.generation
        _must(its.uid == seen.jobset.uid and its.attempt == seen.jobset.attempt, f"{verdict} for {seen.jobset}")
        counted = _counted(seen)
        _must(counted is not None, f"early: {verdict} on {seen}")
        for pod in counted or ():
            _must(pod.uid in self._cluster.ran, f"early: {pod.name} never started")
            reported = _status_says_so(pod) or pod.uid in replica.view.held
            _must(reported, f"early: no status says that {pod.name} had started")
            _must(pod.epoch <= its.epoch, f"{verdict} does not bind {pod.name}")
        epochs = {pod.epoch for pod in counted or ()}
        _must(not epochs or its.epoch == max(epochs), f"{verdict} reaches beyond the pods it counted: {epochs}")

    def _timed_out(self, replica: Replica, verdict: Verdict, seen: GangSnapshot) -> None:
        timeout = seen.jobset.config.timeout
        assert timeout is not None, f"{verdict} without a timeout"
        _must(replica.view.closer, f"{verdict} without a closer look")
        lenient = seen.jobset.releases_on_timeout
        _must(
            verdict.kind is (VerdictKind.RELEASE if lenient else VerdictKind.TIMEOUT),
            f"{verdict} against the user's will",
        )
        _must(_counted(seen) is None, f"{verdict}, but all have started")
        its = verdict.generation
        first = min(
            (
                at
                for life, at in self._cluster.first_ran.items()
                if (life.uid, life.attempt) == (its.uid, its.attempt) and life.epoch <= its.epoch
            ),
            default=None,
        )
        _must(first is not None, f"{verdict}, but nothing ever started")
        if not self.clocks_set and not self.edited_clocks:
            _must(self._now() >= (first or 0.0) + timeout, f"{verdict} before its time: {self._now()} {first}")

    # --- Passages --------------------------------------------------------------------------------------------------

    def check_passages(self) -> None:
        """No barrier obeyed what does not bind it."""
        for passage in self._cluster.passages[self._passages :]:
            since = self._cluster.published.get(passage.text)
            _must(since is not None, f"{passage.pod} obeyed what no ConfigMap held: {passage.text}")
            began = self._cluster.began.get(passage.life)
            _must(began is not None and (since or 0) > began, f"stale: {passage}")
        self._passages = len(self._cluster.passages)

    def check_annotations(self) -> None:
        """News travels only after the decision (A6)."""
        for pod in self._api.all(PODS):
            text = (pod["metadata"].get("annotations") or {}).get(names.VERDICT)
            _must(not text or text in self._cluster.published, f"reported before it was decided: {text}")

    def check_condition(self) -> None:
        """The condition tells of no verdict that was not taken."""
        jobset = self._api.get(JOBSETS, JOBSET)
        if jobset is None:
            return
        uid = jobset["metadata"]["uid"]
        released = any(one.kind is VerdictKind.RELEASE and one.generation.uid == uid for one in self.verdicts)
        for condition in jobset["status"].get("conditions", []):
            if condition["type"] == names.CONDITION and condition["status"] == "True":
                _must(released, f"said before it was decided: {condition}")


# --- Another count, slot by slot -----------------------------------------------------------------------------------


def _counted(seen: GangSnapshot) -> list[PodSeen] | None:
    """The pods that fill the gang's slots, None if one is empty. A4 again, as simply as possible."""
    if seen.jobset.suspended:
        return None
    counted: list[PodSeen] = []
    for target in seen.jobset.targets:
        for number in range(target.replicas):
            job = _job(seen, target.name, number)
            if job is None:
                return None
            if job.complete:
                continue
            own = (pod for pod in seen.pods if pod.job_uid == job.uid and _mine(seen, pod))
            fillers = [pod for pod in own if _has_started(seen, pod)]
            if not target.indexed:
                running = [pod for pod in fillers if pod.phase != "Succeeded"]
                finished = max(job.succeeded, len(fillers) - len(running))
                if len(running) < min(target.parallelism, (target.completions or 0) - finished):
                    return None
                counted += running
                continue
            for index in set(range(target.completions or 0)) - job.completed:
                here = [pod for pod in fillers if pod.index == index]
                if not here:
                    return None
                counted += here
    return counted


def _job(seen: GangSnapshot, replicated: str, number: int) -> JobSeen | None:
    for job in seen.jobs:
        mine = job.jobset_uid == seen.jobset.uid and job.attempt == seen.jobset.attempt
        counts = job.complete or not job.suspended
        if mine and (job.replicated_job, job.job_index) == (replicated, number) and counts:
            return job
    return None


def _has_started(seen: GangSnapshot, pod: PodSeen) -> bool:
    if _status_says_so(pod):
        return True
    waits = pod.stage is BarrierStage.WAITING and pod.bound and not pod.deleting and pod.phase != "Failed"
    return waits and pod.uid in seen.announced


def _status_says_so(pod: PodSeen) -> bool:
    in_barrier_or_past_it = pod.stage in (BarrierStage.RUNNING, BarrierStage.PASSED) or pod.phase == "Succeeded"
    return in_barrier_or_past_it and not pod.deleting and pod.phase != "Failed"


def _mine(seen: GangSnapshot, pod: PodSeen) -> bool:
    return pod.jobset_uid == seen.jobset.uid and pod.attempt == seen.jobset.attempt


def _traces(seen: GangSnapshot, verdict: Verdict) -> bool:
    """Whether a view shows that this verdict was taken."""
    text = verdict_codec.render(verdict)
    reported = seen.jobset.condition
    its = verdict.generation
    if reported is not None and reported.message.endswith(f"(uid {its.uid}, attempt {its.attempt}, epoch {its.epoch})"):
        return True
    for pod in seen.pods:
        passed = (
            _status_says_so(pod) and pod.stage is BarrierStage.PASSED and pod.epoch == its.epoch and _mine(seen, pod)
        )
        if pod.verdict == text or (passed and verdict.kind is VerdictKind.RELEASE):
            return True
    return False


def _gate(stored: Json | None) -> Any:
    if stored is None:
        return None
    return decode.config_map(_decode(stored))


def _decode(stored: Json) -> wire.ConfigMap:
    return msgspec.convert(stored, wire.ConfigMap)


def _place(generation: Generation) -> tuple[int, int]:
    return generation.attempt, generation.epoch


def _must(fact: bool, otherwise: str) -> None:
    if not fact:
        raise RuleBroken(otherwise)
