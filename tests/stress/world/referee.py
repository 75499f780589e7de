"""Judges each write of a ConfigMap by what the controller had in view; the oracle judges the whole run by raw objects.

* A ConfigMap is written whole, one of another UID is never adopted, and only an earlier JobSet's is removed.
* A verdict is for a generation that has started, is never taken back, and of one generation all verdicts are of one
  kind; only if a user destroys a verdict before any trace of it has reached the controller (the condition, an
  annotation, a barrier that passed) may another be written.
* Before a first verdict in place of a missing or edited ConfigMap the controller has read the JobSet, and before a
  timeout Jobs and pods. A bypass was requested, and nothing is decided while the JobSet is suspended.
* A clock is dropped or replaced only with a later generation. No pod is annotated before the verdict is written.
"""

from __future__ import annotations

import msgspec

from jobset_gate import names
from jobset_gate.barrier import decode, verdict_codec, wire
from jobset_gate.barrier.model import (
    BarrierStage,
    ConfigMapSeen,
    GangSnapshot,
    Generation,
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
    """A write that the contract forbids."""


class Referee:
    """Watches one gang's ConfigMap."""

    def __init__(self, api: Api, cluster: Cluster) -> None:
        self._api, self._cluster = api, cluster
        self.verdicts: list[Verdict] = []
        """Every verdict written, in order, without repetitions."""
        self.lost: set[Generation] = set()
        """Generations whose verdict a user destroyed."""
        self.edited_clocks: set[Generation] = set()

    def gate_written(self, replica: Replica, old: Json | None, new: Json) -> None:
        """A controller's compare-and-swap succeeded."""
        before, after = _config_map(self._genuine(old)), _config_map(new)
        _must(after is not None and after.canonical, f"not written whole: {new}")
        assert after is not None
        if before is not None:
            _must(before.jobset_uid in ("", after.jobset_uid), f"{before} of another UID was adopted")
            self._no_going_back(before.verdict, after.verdict)
            self._clock_stands(before.waiting_since, after)
        if after.verdict is not None and (before is None or before.verdict != after.verdict):
            self._verdict(replica, after.verdict, doubtful=before is None or not before.canonical)

    def gate_removed(self, old: Json) -> None:
        """A controller removed a ConfigMap."""
        removed, jobset = _config_map(old), self._api.get(JOBSETS, JOBSET)
        _must(removed is not None, f"an unrelated ConfigMap was removed: {old}")
        in_use = jobset is not None and removed is not None and jobset["metadata"]["uid"] == removed.jobset_uid
        _must(not in_use, f"{removed} was removed while it was in use")

    def gate_destroyed(self, old: Json) -> None:
        """A user deletes or garbles the ConfigMap."""
        destroyed = _config_map(old)
        if destroyed is not None and destroyed.verdict is not None:
            self.lost.add(destroyed.verdict.generation)

    def clock_edited(self, old: Json) -> None:
        """A user changes the clock."""
        edited = _config_map(old)
        if edited is not None and edited.waiting_since is not None:
            self.edited_clocks.add(edited.waiting_since.generation)

    def check_annotations(self) -> None:
        """A verdict is delivered after it is written (A6)."""
        for pod in self._api.all(PODS):
            text = (pod["metadata"].get("annotations") or {}).get(names.VERDICT)
            _must(not text or text in self._cluster.published, f"delivered before it was written: {text}")

    def _genuine(self, old: Json | None) -> Json | None:
        """Without what another client has written into it."""
        forged = old is not None and (old.get("data") or {}).get(names.KEY_VERDICT) in self._cluster.forged
        return {**old, "data": {}} if old is not None and forged else old

    def _no_going_back(self, old: Verdict | None, new: Verdict | None) -> None:
        if old is None or not old.generation.uid:
            return
        _must(new is not None, f"the verdict {old} was taken back")
        assert new is not None
        _must(_order(new.generation) >= _order(old.generation), f"from {old} back to {new}")
        _must(new.generation != old.generation or new.kind is old.kind, f"from {old} to {new}")

    def _clock_stands(self, old: WaitingSince | None, after: ConfigMapSeen) -> None:
        new = after.waiting_since
        if old is None or new == old or old.generation in self.edited_clocks:
            return
        later = new.generation if new is not None else after.verdict.generation if after.verdict is not None else None
        _must(later is not None and _order(later) > _order(old.generation), f"the clock {old} became {new}")

    def _verdict(self, replica: Replica, verdict: Verdict, *, doubtful: bool) -> None:
        seen, its = replica.view.seen, verdict.generation
        assert seen is not None, "a verdict out of nothing"
        began = [one for one in self._cluster.began if (one.uid, one.attempt) == (its.uid, its.attempt)]
        _must(any(one.epoch >= its.epoch for one in began), f"{verdict} is for a generation that has not started")
        repeated = any(one.kind is verdict.kind and one.generation.covers(its) for one in self.verdicts)
        others = [one for one in self.verdicts if one.generation == its and one.kind is not verdict.kind]
        if others and not repeated:
            _must(its in self.lost, f"{verdict} after {others[-1]}")
            _must(not _traces(seen, others[-1]), f"{verdict}, though the view shows {others[-1]}: {seen}")
        if not repeated:
            _must(replica.view.recalled or not doubtful, f"{verdict} replaces a ConfigMap that nobody verified")
            _must(not seen.jobset.suspended, f"{verdict} while suspended")
            self._cause(replica, verdict, seen)
        self.verdicts.append(verdict)

    def _cause(self, replica: Replica, verdict: Verdict, seen: GangSnapshot) -> None:
        if verdict.cause == names.REASON_BYPASSED:
            _must(seen.jobset.bypass, f"{verdict} without a bypass")
        elif verdict.cause == names.REASON_TIMED_OUT:
            _must(replica.view.closer, f"{verdict} without a live read")
            kind = VerdictKind.RELEASE if seen.jobset.releases_on_timeout else VerdictKind.TIMEOUT
            _must(verdict.kind is kind, f"{verdict} against the JobSet's on-timeout")


def _mine(seen: GangSnapshot, pod: PodSeen) -> bool:
    return pod.jobset_uid == seen.jobset.uid and pod.attempt == seen.jobset.attempt


def _traces(seen: GangSnapshot, verdict: Verdict) -> bool:
    """True if the view shows that this verdict was written."""
    condition, its = seen.jobset.condition, verdict.generation
    mark = f"(uid {its.uid}, attempt {its.attempt}, epoch {its.epoch})"
    if condition is not None and condition.message.endswith(mark):
        return True
    text = verdict_codec.render(verdict)
    return any(
        pod.verdict == text or (verdict.kind is VerdictKind.RELEASE and _has_passed(seen, pod, its))
        for pod in seen.pods
    )


def _has_passed(seen: GangSnapshot, pod: PodSeen, its: Generation) -> bool:
    return _mine(seen, pod) and pod.epoch == its.epoch and pod.alive and pod.stage is BarrierStage.PASSED


def _config_map(stored: Json | None) -> ConfigMapSeen | None:
    return None if stored is None else decode.config_map(msgspec.convert(stored, wire.ConfigMap))


def _order(generation: Generation) -> tuple[int, int]:
    return generation.attempt, generation.epoch


def _must(fact: bool, otherwise: str) -> None:
    if not fact:
        raise RuleBroken(otherwise)
