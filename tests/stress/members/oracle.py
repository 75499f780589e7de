"""What must never happen to a gang whose pods are gated one by one (K5), and how all ends.

Each write of the ConfigMap is judged by what that controller had been shown. Of the product, only types are used.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from typing_extensions import override

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import BarrierStage, PodSeen, Verdict, VerdictKind
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from tests.fakes.memory_api import Api, Json, labels_of
from tests.stress.members.cluster import OWNER, LeaderCluster, MemberCluster, RingCluster, is_bare, size_of
from tests.stress.world.facts import notes_of
from tests.stress.world.objects import JOBSET
from tests.stress.world.oracle import Oracle

if TYPE_CHECKING:
    from tests.fakes.memory_client import Call
    from tests.stress.world.replica import Replica

KEYS = {names.KEY_VERDICT, names.KEY_WAITING_SINCE}
MOST_WRITES = 2
"""Of the members of one attempt: with its clock and with its verdict. A ConfigMap that is made again after a user has
deleted it repeats them once more, without either."""


class MemberOracle(Oracle):
    """Of either. The cluster tells it what happens to pods."""

    def __init__(self, api: Api, cluster: MemberCluster, now: Callable[[], float]) -> None:
        super().__init__(api, cluster, now)
        cluster.judge = self
        self.whose: dict[str, Hashable] = {}
        """The generation of each pod there ever was, by UID."""
        self._verdicts: defaultdict[Hashable, set[VerdictKind]] = defaultdict(set)
        """What was decided on a generation."""

    @override
    def sent(self, replica: Replica, call: Call) -> None:
        """What is written is judged."""

    @override
    def written(self, replica: Replica, old: Json | None, new: Json) -> None:
        try:
            self._judge(replica, old, new)
        except AssertionError as wrong:
            self.wrongs.append(wrong)

    def obeyed(self, uid: str, verdict: Verdict) -> None:
        """The barrier of this pod obeys a verdict on its gang."""
        if verdict.kind not in self._verdicts[self.whose[uid]]:
            self._wrong(f"stale: {uid} obeys {verdict}, decided on other pods than its generation's")

    def _judge(self, replica: Replica, old: Json | None, new: Json) -> None:
        raise NotImplementedError

    def _has_cause(self, verdict: Verdict, its: Hashable, live: list[PodSeen]) -> None:
        """But for AllPodsStarted: the pods of this generation bear it out."""
        if verdict.cause == "GateMissing":
            bare = [pod for pod in live if pod.member is not None and not pod.member.has_barrier]
            assert bare, f"early: {verdict}, and all pods have a barrier"
            return
        assert verdict.cause == "TimedOut", f"nobody asked for it: {verdict}"
        timeout, now = self._cluster.shape.timeout, self._now()
        ran = [int(at) for uid, at in self._cluster.ran.items() if self.whose[uid] == its]
        assert timeout is not None, f"early: {verdict}, without a timeout"
        assert now >= min(ran, default=math.inf) + timeout, f"early: {verdict} at {now}, the pods ran at {ran}"

    def _none_is_held(self, mine: list[Json], *, whole: bool) -> None:
        """These pods are all of a gang at its end; `whole`: nobody lacks."""
        held = [pod["metadata"]["name"] for pod in self._cluster.waiting() if pod in mine]
        if held and (whole or self._cluster.shape.timeout is not None):
            stored = self._api.get(CONFIGMAPS, self._cluster.gate)
            raise AssertionError(f"held for ever: {held} of {len(mine)}; {stored}")

    def _have_started(self, live: list[PodSeen]) -> list[PodSeen]:
        """Or announced."""
        return [
            pod
            for pod in live
            if pod.stage in (BarrierStage.RUNNING, BarrierStage.PASSED)
            or (pod.stage is BarrierStage.WAITING and pod.uid in self._cluster.ran)
        ]


def _new_verdict(old: Json | None, new: Json) -> Verdict | None:
    """The verdict in a ConfigMap that was not there before."""
    text = new["data"].get(names.KEY_VERDICT, "")
    stood = "" if old is None else (old.get("data") or {}).get(names.KEY_VERDICT, "")
    return None if text == stood else verdict_codec.parse(text)


class RingOracle(MemberOracle):
    """Of a start group.

    A generation here is what people see: the pods that follow each other without a moment in which none of them lives.
    All live pods are of one.
    """

    def __init__(self, api: Api, cluster: RingCluster, now: Callable[[], float]) -> None:
        super().__init__(api, cluster, now)
        self._ring = cluster
        self._heads: set[str] = set()
        """Of all verdicts that were written."""
        self._members: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        """By UID of the ConfigMap and attempt: what was written."""
        self._gate_was_lost = False
        self._last = 0
        self._exact: dict[tuple[Hashable, int], VerdictKind] = {}
        """What was decided, by generation and attempt."""

    @override
    def edited(self) -> None:
        self._gate_was_lost = True
        self._members.clear()

    def created(self, uid: str, *, alone: bool) -> None:
        """A pod is made; `alone`: no other pod lives."""
        self._last += alone
        self.whose[uid] = self._last

    @override
    def obeyed(self, uid: str, verdict: Verdict) -> None:
        super().obeyed(uid, verdict)
        exact = self._exact.get((self.whose[uid], verdict.generation.attempt))
        if exact not in (None, verdict.kind) and not self._gate_was_lost:
            self._wrong(f"contradicting: {uid} obeys {verdict}, and {exact} was decided")

    @override
    def removed(self, old: Json) -> None:
        self._wrong(f"a controller removed {old}")

    @override
    def check(self) -> None:
        """Verdicts that pods carry were written before."""
        for pod in map(self._ring.seen, self._api.all(PODS)):
            if pod.verdict and pod.verdict.partition("\n")[0] not in self._heads:
                self._wrong(f"delivered before it was written: {pod.verdict}")

    @override
    def _judge(self, replica: Replica, old: Json | None, new: Json) -> None:
        meta, data = new["metadata"], new["data"]
        assert set(data) <= KEYS | {names.KEY_ATTEMPT, names.KEY_MEMBERS}, f"not written whole: {new}"
        assert [it["uid"] for it in meta["ownerReferences"]] == [OWNER], f"not owned: {new}"
        assert labels_of(new)[names.START_GROUP] == JOBSET, f"not to be found: {new}"
        after = verdict_codec.parse_membership(data)
        assert after is not None, f"no attempt: {data}"
        self._judge_members(old, after, new)
        verdict = _new_verdict(old, new)
        if verdict is None:
            return
        self._heads.add(data[names.KEY_VERDICT].partition("\n")[0])
        pods = [self._ring.seen(pod) for pod in replica.view.raw.pods]
        bound = after.members.intersection(pod.uid for pod in pods if pod.live)
        if verdict.generation.attempt < after.attempt or not bound:
            return  # that of an earlier attempt comes back with the ConfigMap, and binds nobody
        # Of a barrier that has passed, whatever attempt had released it: it is no decision.
        if verdict.message != "released earlier":
            self._judge_decision(verdict, pods)

    def _judge_decision(self, verdict: Verdict, pods: list[PodSeen]) -> None:
        """A new verdict is written: was it possible, on these pods, as they were at one moment?"""
        live = [pod for pod in pods if pod.phase not in ("Failed", "Succeeded") and not pod.deleting]
        found = {self.whose[pod.uid] for pod in live}
        assert len(found) == 1, f"{verdict} is for pods of generations {found}"
        (its,) = found
        known = self._verdicts[its]
        if verdict.kind in known:
            pass  # what was lost with the ConfigMap comes back
        elif verdict.cause == "AllPodsStarted":
            # What succeeded in an earlier generation counts for no later one, but for a batch Job's pods.
            over = [pod for pod in pods if pod.phase == "Succeeded"]
            done = [pod for pod in over if self._ring.shape.of_job or self.whose[pod.uid] == its]
            count = len(self._have_started(live)) + len(done)
            assert count >= max(map(size_of, live)), f"early: {verdict} at {count} pods that started or succeeded"
        else:
            self._has_cause(verdict, its, live)
        stood = self._exact.setdefault((its, verdict.generation.attempt), verdict.kind)
        contradicts = stood is not verdict.kind and not self._gate_was_lost
        assert not contradicts, f"contradicting: {verdict}, and {stood} was decided"
        known.add(verdict.kind)

    def _judge_members(self, old: Json | None, after: Membership, new: Json) -> None:
        before = None if old is None else verdict_codec.parse_membership(old.get("data") or {})
        if before is not None:
            live = {pod.uid for pod in map(self._ring.seen, self._api.all(PODS)) if pod.live}
            lasting = sorted(before.members.intersection(live))
            assert after.attempt >= before.attempt, f"the attempt goes back from {before.attempt} to {after.attempt}"
            ends = after.attempt > before.attempt and not self._gate_was_lost
            assert not (ends and lasting), f"ended: attempt {before.attempt}, to which {lasting} belong, for {after}"
        if after.members and KEYS & set(new["data"]) and (before is None or after.members != before.members):
            writes = self._members[new["metadata"]["uid"], after.attempt]
            writes.append(new["data"][names.KEY_MEMBERS])
            assert len(writes) <= MOST_WRITES, f"the members of attempt {after.attempt} are written again: {writes}"

    @override
    def ended(self, *, all_start: bool) -> None:
        live = [pod for pod in self._api.all(PODS) if self._ring.seen(pod).live and not is_bare(pod)]
        self._none_is_held(live, whole=all_start)


class LeaderOracle(MemberOracle):
    """Of a group of a LeaderWorkerSet. A generation is a leader pod, by its UID."""

    def __init__(self, api: Api, cluster: LeaderCluster, now: Callable[[], float]) -> None:
        super().__init__(api, cluster, now)
        self._group = cluster
        self._decided: set[tuple[str, str]] = set()
        """UIDs of leaders and kinds of all verdicts that were written."""
        self.sizes: dict[str, int] = {}
        """Of all leaders, by UID."""
        self._lost_gates: set[str] = set()
        """Leaders whose ConfigMap a user has deleted or edited."""

    @override
    def edited(self) -> None:
        self._lost_gates.add(notes_of(self._api.known(CONFIGMAPS, self._group.gate))[names.JOBSET_UID])

    @override
    def removed(self, old: Json) -> None:
        """Only that of an earlier leader (A10)."""
        leader = self._group.leader
        if leader is not None and notes_of(old)[names.JOBSET_UID] == leader["metadata"]["uid"]:
            self._wrong(f"a controller removed {old}, whose leader is there")

    @override
    def check(self) -> None:
        """Verdicts that pods carry were written before, for the leader of that pod."""
        for pod in self._api.all(PODS):
            verdict, uid = verdict_codec.parse(notes_of(pod).get(names.VERDICT, "")), pod["metadata"]["uid"]
            if verdict is None:
                continue
            decided = (self.whose[uid], verdict.kind.value) in self._decided
            if not decided or verdict.generation.uid != uid:
                self._wrong(f"delivered to {uid} before it was written: {verdict}")

    @override
    def _judge(self, replica: Replica, old: Json | None, new: Json) -> None:
        leader = notes_of(new)[names.JOBSET_UID]
        owners = [(it["kind"], it["uid"]) for it in new["metadata"]["ownerReferences"]]
        assert set(new["data"]) <= KEYS, f"not written whole: {new}"
        assert owners == [("Pod", leader)], f"not owned: {new}"
        assert labels_of(new)[names.GATE] == names.GATE_VALUE, f"not to be found: {new}"
        assert old is None or notes_of(old)[names.JOBSET_UID] == leader, f"adopted: {old} became {new}"
        verdict = _new_verdict(old, new)
        if verdict is None:
            return
        assert verdict.generation.uid == leader, f"of another leader: {new}"
        self._judge_decision(verdict, [self._group.seen(pod) for pod in replica.view.raw.pods])
        self._decided.add((leader, verdict.kind.value))

    def _judge_decision(self, verdict: Verdict, pods: list[PodSeen]) -> None:
        leader = verdict.generation.uid
        mine = [pod for pod in pods if self.whose.get(pod.uid) == leader and pod.live]
        assert leader in {pod.uid for pod in mine}, f"{verdict} is for a leader that is not there"
        known = self._verdicts[leader]
        if verdict.kind in known:
            return  # what was lost with the ConfigMap comes back
        assert not known or leader in self._lost_gates, f"contradicting: {verdict}, and {known} was decided"
        assert verdict.message != "released earlier", f"nothing was released before: {verdict}"
        if verdict.cause == "AllPodsStarted":
            lacking = set(range(self.sizes[leader])) - {pod.index for pod in self._have_started(mine)}
            assert not lacking, f"early: {verdict}, and {lacking} have not started"
        else:
            self._has_cause(verdict, leader, mine)
        known.add(verdict.kind)

    @override
    def ended(self, *, all_start: bool) -> None:
        cluster, leader = self._group, self._group.leader
        if leader is None or not cluster.seen(leader).live:
            return
        uid = leader["metadata"]["uid"]
        live = [pod for pod in self._api.all(PODS) if cluster.seen(pod).live and not is_bare(pod)]
        mine = [pod for pod in live if self.whose[pod["metadata"]["uid"]] == uid]
        self._none_is_held(mine, whole=all_start and len(mine) >= self.sizes[uid])
