"""What must never happen to a group of a LeaderWorkerSet (K5).

A generation is a leader pod. The test knows of each pod whose it is; of the product, only the types of what is seen are
used.
"""

from __future__ import annotations

from jobset_gate.barrier.model import BarrierStage, PodSeen, Verdict, VerdictKind
from tests.stress.world.cluster import GangShape


class LeaderJudge:
    """Its methods are called at what happens; they raise AssertionError at what must not."""

    def __init__(self, shape: GangShape) -> None:
        self._shape = shape
        self.leader_of: dict[str, str] = {}
        """Of all pods there ever were, by UID."""
        self.sizes: dict[str, int] = {}
        """Of all leaders, by UID."""
        self.gate_was_lost: set[str] = set()
        """Leaders whose ConfigMap a user has deleted: what nobody remembers may be decided once more."""
        self._kinds: dict[str, set[VerdictKind]] = {}
        """What was decided on a leader."""
        self._first_ran: dict[str, float] = {}
        self._ran: set[str] = set()

    def created(self, uid: str, leader: str) -> None:
        """A pod of this leader is made."""
        self.leader_of[uid] = leader

    def began(self, uid: str, now: float) -> None:
        """The barrier of this pod runs."""
        self._ran.add(uid)
        self._first_ran.setdefault(self.leader_of[uid], now)

    def decided(self, verdict: Verdict, pods: list[PodSeen], now: float) -> None:
        """A new verdict is written: was it possible, on these pods, as they were at one moment?"""
        leader = verdict.generation.uid
        mine = [pod for pod in pods if self.leader_of.get(pod.uid) == leader and pod.live]
        if leader not in {pod.uid for pod in mine}:
            raise AssertionError(f"{verdict} is for a leader that is not there")
        known = self._kinds.setdefault(leader, set())
        if verdict.kind in known:
            return  # what was lost with the ConfigMap comes back
        if known and leader not in self.gate_was_lost:
            raise AssertionError(f"contradicting: {verdict}, and {known} was decided")
        if verdict.message == "released earlier":
            raise AssertionError(f"nothing was released before: {verdict}")
        if verdict.cause == "AllPodsStarted":
            self._full(verdict, mine)
        elif verdict.cause == "GateMissing":
            if all(pod.member is None or pod.member.has_barrier for pod in mine):
                raise AssertionError(f"early: {verdict}, and all pods have a barrier")
        elif verdict.cause == "TimedOut":
            since = self._first_ran.get(leader)
            if self._shape.timeout is None or since is None or now < int(since) + self._shape.timeout:
                raise AssertionError(f"early: {verdict} at {now}, the first pod ran at {since}")
        else:
            raise AssertionError(f"nobody asked for it: {verdict}")
        known.add(verdict.kind)

    def obeyed(self, uid: str, verdict: Verdict) -> None:
        """The barrier of this pod obeys a verdict."""
        leader = self.leader_of[uid]
        if verdict.kind not in self._kinds.get(leader, ()):
            raise AssertionError(f"stale: {uid} obeys {verdict}, which was not decided on its leader {leader}")

    def _full(self, verdict: Verdict, mine: list[PodSeen]) -> None:
        ready = {
            pod.index
            for pod in mine
            if pod.stage in (BarrierStage.RUNNING, BarrierStage.PASSED)
            or (pod.stage is BarrierStage.WAITING and pod.uid in self._ran)
        }
        wanted = set(range(self.sizes[verdict.generation.uid]))
        if not wanted <= ready:
            raise AssertionError(f"early: {verdict}, and {wanted - ready} have not started")
