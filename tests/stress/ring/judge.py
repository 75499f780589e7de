"""What must never happen to a start group (K5).

A generation here is what people see: the pods that follow each other without a moment in which none of them lives. All
live pods are of one. Of the product, only the types of what is seen are used.
"""

from __future__ import annotations

from collections.abc import Collection

from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import BarrierStage, PodSeen, Verdict, VerdictKind
from tests.stress.world.cluster import GangShape


class GroupJudge:
    """Its methods are called at what happens; they raise AssertionError at what must not."""

    def __init__(self, shape: GangShape) -> None:
        self._shape = shape
        self.generations: dict[str, int] = {}
        """Of all pods there ever were, by UID."""
        self.gate_was_lost = False
        """A user has deleted the ConfigMap: what nobody remembers may be decided once more."""
        self._last = 0
        self._kinds: dict[int, set[VerdictKind]] = {}
        """What was decided on a generation."""
        self._exact: dict[tuple[int, int], VerdictKind] = {}
        """The same by generation and attempt."""
        self._first_ran: dict[int, float] = {}
        self._ran: set[str] = set()

    def created(self, uid: str, *, alone: bool) -> int:
        """A pod is made; `alone`: no other pod lives. Returns its generation."""
        self._last += alone
        self.generations[uid] = self._last
        return self._last

    def began(self, uid: str, now: float) -> None:
        """The barrier of this pod runs."""
        self._ran.add(uid)
        self._first_ran.setdefault(self.generations[uid], now)

    def moved(self, before: Membership, after: Membership, live: Collection[str]) -> None:
        """A controller writes the second over the first; `live`: UIDs of the pods that live."""
        if after.attempt < before.attempt:
            raise AssertionError(f"the attempt goes back from {before.attempt} to {after.attempt}")
        if after.attempt > before.attempt and not self.gate_was_lost:
            lasting = sorted(before.members.intersection(live))
            if lasting:
                raise AssertionError(f"ended: attempt {before.attempt}, to which {lasting} belong, for {after}")

    def decided(self, verdict: Verdict, pods: list[PodSeen], now: float) -> None:
        """A new verdict is written: was it possible, on these pods, as they were at one moment?"""
        live = [pod for pod in pods if pod.phase not in ("Failed", "Succeeded") and not pod.deleting]
        found = {self.generations[pod.uid] for pod in live}
        if len(found) != 1:
            raise AssertionError(f"{verdict} is for pods of generations {found}")
        (its,) = found
        known = self._kinds.setdefault(its, set())
        if verdict.kind in known:
            pass  # what was lost with the ConfigMap comes back
        elif verdict.cause == "AllPodsStarted":
            self._full(verdict, live, [pod for pod in pods if pod.phase == "Succeeded"])
        elif verdict.cause == "GateMissing":
            if all(pod.member is None or pod.member.has_barrier for pod in live):
                raise AssertionError(f"early: {verdict}, and all pods have a barrier")
        elif verdict.cause == "TimedOut":
            since = self._first_ran.get(its)
            if self._shape.timeout is None or since is None or now < int(since) + self._shape.timeout:
                raise AssertionError(f"early: {verdict} at {now}, the first pod ran at {since}")
        stood = self._exact.setdefault((its, verdict.generation.attempt), verdict.kind)
        if stood is not verdict.kind and not self.gate_was_lost:
            raise AssertionError(f"contradicting: {verdict}, and {stood} was decided")
        known.add(verdict.kind)

    def obeyed(self, uid: str, verdict: Verdict) -> None:
        """The barrier of this pod obeys a verdict on its gang."""
        its = self.generations[uid]
        if verdict.kind not in self._kinds.get(its, ()):
            raise AssertionError(f"stale: {uid} obeys {verdict}, decided on other pods than its generation's")
        exact = self._exact.get((its, verdict.generation.attempt))
        if exact not in (None, verdict.kind) and not self.gate_was_lost:
            raise AssertionError(f"contradicting: {uid} obeys {verdict}, and {exact} was decided")

    def _full(self, verdict: Verdict, live: list[PodSeen], over: list[PodSeen]) -> None:
        """What succeeded in an earlier generation counts for no later one, but for a batch Job's pods."""
        its = self.generations[live[0].uid]
        done = [pod for pod in over if self._shape.of_job or self.generations[pod.uid] == its]
        started = [pod for pod in live if pod.stage in (BarrierStage.RUNNING, BarrierStage.PASSED)]
        announced = [pod for pod in live if pod.stage is BarrierStage.WAITING and pod.uid in self._ran]
        if len(started) + len(announced) + len(done) < max(map(size_of, live)):
            raise AssertionError(f"early: {verdict} at {len(started)} started pods and {len(done)} that succeeded")


def size_of(pod: PodSeen) -> int:
    """How many pods this one waits for."""
    return 0 if pod.member is None else pod.member.size
