"""What must never happen to a gang whose pods are gated one by one (K5). Of the product, only types are used."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from typing_extensions import override

from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import BarrierStage, PodSeen, Verdict, VerdictKind
from tests.stress.world.objects import GangShape


class MemberJudge:
    """Its methods are called at what happens; they raise AssertionError at what must not."""

    def __init__(self, shape: GangShape) -> None:
        self._shape = shape
        self.whose: dict[str, Hashable] = {}
        """The generation of each pod there ever was, by UID."""
        self._kinds: dict[Hashable, set[VerdictKind]] = {}
        """What was decided on a generation."""
        self._first_ran: dict[Hashable, float] = {}
        self._ran: set[str] = set()

    def gate_lost(self, uid: str) -> None:
        """A user has deleted this gang's ConfigMap: what nobody remembers may be decided once more."""
        raise NotImplementedError

    def began(self, uid: str, now: float) -> None:
        """The barrier of this pod runs."""
        self._ran.add(uid)
        self._first_ran.setdefault(self.whose[uid], now)

    def decided(self, verdict: Verdict, pods: list[PodSeen], now: float) -> None:
        """A new verdict is written: was it possible, on these pods, as they were at one moment?"""
        raise NotImplementedError

    def obeyed(self, uid: str, verdict: Verdict) -> None:
        """The barrier of this pod obeys a verdict on its gang."""
        if verdict.kind not in self._kinds.get(self.whose[uid], ()):
            raise AssertionError(f"stale: {uid} obeys {verdict}, decided on other pods than its generation's")

    def _has_cause(self, verdict: Verdict, its: Hashable, live: list[PodSeen], now: float) -> None:
        """But for AllPodsStarted: the pods of this generation bear it out."""
        if verdict.cause == "GateMissing":
            if all(pod.member is None or pod.member.has_barrier for pod in live):
                raise AssertionError(f"early: {verdict}, and all pods have a barrier")
        elif verdict.cause == "TimedOut":
            since = self._first_ran.get(its)
            if self._shape.timeout is None or since is None or now < int(since) + self._shape.timeout:
                raise AssertionError(f"early: {verdict} at {now}, the first pod ran at {since}")
        else:
            raise AssertionError(f"nobody asked for it: {verdict}")

    def _started(self, live: list[PodSeen]) -> list[PodSeen]:
        """Or announced."""
        return [
            pod
            for pod in live
            if pod.stage in (BarrierStage.RUNNING, BarrierStage.PASSED)
            or (pod.stage is BarrierStage.WAITING and pod.uid in self._ran)
        ]


class GroupJudge(MemberJudge):
    """Of a start group.

    A generation here is what people see: the pods that follow each other without a moment in which none of them lives.
    All live pods are of one.
    """

    def __init__(self, shape: GangShape) -> None:
        super().__init__(shape)
        self.gate_was_lost = False
        self._last = 0
        self._exact: dict[tuple[Hashable, int], VerdictKind] = {}
        """What was decided, by generation and attempt."""

    @override
    def gate_lost(self, uid: str) -> None:
        self.gate_was_lost = True

    def created(self, uid: str, *, alone: bool) -> None:
        """A pod is made; `alone`: no other pod lives."""
        self._last += alone
        self.whose[uid] = self._last

    def moved(self, before: Membership, after: Membership, live: Collection[str]) -> None:
        """A controller writes the second over the first; `live`: UIDs of the pods that live."""
        if after.attempt < before.attempt:
            raise AssertionError(f"the attempt goes back from {before.attempt} to {after.attempt}")
        if after.attempt > before.attempt and not self.gate_was_lost:
            lasting = sorted(before.members.intersection(live))
            if lasting:
                raise AssertionError(f"ended: attempt {before.attempt}, to which {lasting} belong, for {after}")

    @override
    def decided(self, verdict: Verdict, pods: list[PodSeen], now: float) -> None:
        live = [pod for pod in pods if pod.phase not in ("Failed", "Succeeded") and not pod.deleting]
        found = {self.whose[pod.uid] for pod in live}
        if len(found) != 1:
            raise AssertionError(f"{verdict} is for pods of generations {found}")
        (its,) = found
        known = self._kinds.setdefault(its, set())
        if verdict.kind in known:
            pass  # what was lost with the ConfigMap comes back
        elif verdict.cause == "AllPodsStarted":
            self._full(verdict, live, [pod for pod in pods if pod.phase == "Succeeded"])
        else:
            self._has_cause(verdict, its, live, now)
        stood = self._exact.setdefault((its, verdict.generation.attempt), verdict.kind)
        if stood is not verdict.kind and not self.gate_was_lost:
            raise AssertionError(f"contradicting: {verdict}, and {stood} was decided")
        known.add(verdict.kind)

    @override
    def obeyed(self, uid: str, verdict: Verdict) -> None:
        super().obeyed(uid, verdict)
        exact = self._exact.get((self.whose[uid], verdict.generation.attempt))
        if exact not in (None, verdict.kind) and not self.gate_was_lost:
            raise AssertionError(f"contradicting: {uid} obeys {verdict}, and {exact} was decided")

    def _full(self, verdict: Verdict, live: list[PodSeen], over: list[PodSeen]) -> None:
        """What succeeded in an earlier generation counts for no later one, but for a batch Job's pods."""
        its = self.whose[live[0].uid]
        done = [pod for pod in over if self._shape.of_job or self.whose[pod.uid] == its]
        started = self._started(live)
        if len(started) + len(done) < max(map(size_of, live)):
            raise AssertionError(f"early: {verdict} at {len(started)} started pods and {len(done)} that succeeded")


class LeaderJudge(MemberJudge):
    """Of a group of a LeaderWorkerSet. A generation is a leader pod, by its UID."""

    def __init__(self, shape: GangShape) -> None:
        super().__init__(shape)
        self.sizes: dict[str, int] = {}
        """Of all leaders, by UID."""
        self._lost: set[str] = set()
        """Leaders whose ConfigMap a user has deleted."""

    @override
    def gate_lost(self, uid: str) -> None:
        self._lost.add(uid)

    @override
    def decided(self, verdict: Verdict, pods: list[PodSeen], now: float) -> None:
        leader = verdict.generation.uid
        mine = [pod for pod in pods if self.whose.get(pod.uid) == leader and pod.live]
        if leader not in {pod.uid for pod in mine}:
            raise AssertionError(f"{verdict} is for a leader that is not there")
        known = self._kinds.setdefault(leader, set())
        if verdict.kind in known:
            return  # what was lost with the ConfigMap comes back
        if known and leader not in self._lost:
            raise AssertionError(f"contradicting: {verdict}, and {known} was decided")
        if verdict.message == "released earlier":
            raise AssertionError(f"nothing was released before: {verdict}")
        if verdict.cause == "AllPodsStarted":
            lacking = set(range(self.sizes[leader])) - {pod.index for pod in self._started(mine)}
            if lacking:
                raise AssertionError(f"early: {verdict}, and {lacking} have not started")
        else:
            self._has_cause(verdict, leader, mine, now)
        known.add(verdict.kind)


def size_of(pod: PodSeen) -> int:
    """How many pods this one waits for."""
    return 0 if pod.member is None else pod.member.size
