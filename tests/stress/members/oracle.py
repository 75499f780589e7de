"""The judge: each write of the ConfigMap, by what that controller had been shown, and how all ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from typing_extensions import override

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import Verdict
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from tests.fakes.memory_api import Api, Json, labels_of
from tests.stress.members.cluster import OWNER, LeaderCluster, MemberCluster, RingCluster, is_bare
from tests.stress.world.objects import JOBSET, notes_of
from tests.stress.world.oracle import Oracle

if TYPE_CHECKING:
    from tests.fakes.memory_client import Call
    from tests.stress.world.replica import Replica

KEYS = {names.KEY_VERDICT, names.KEY_WAITING_SINCE}
MOST_WRITES = 2
"""Of the members of one attempt: with its clock and with its verdict. A ConfigMap that is made again after a user has
deleted it repeats them once more, without either."""


class MemberOracle(Oracle):
    """Of either."""

    def __init__(self, api: Api, cluster: MemberCluster, now: Callable[[], float]) -> None:
        super().__init__(api, cluster, now)
        self.wrongs = cluster.wrongs

    @override
    def sent(self, replica: Replica, call: Call) -> None:
        """What is written is judged."""

    @override
    def written(self, replica: Replica, old: Json | None, new: Json) -> None:
        try:
            self._judge(replica, old, new)
        except AssertionError as wrong:
            self.wrongs.append(wrong)

    def _judge(self, replica: Replica, old: Json | None, new: Json) -> None:
        raise NotImplementedError


def _new_verdict(old: Json | None, new: Json) -> Verdict | None:
    """The verdict in a ConfigMap that was not there before."""
    text = new["data"].get(names.KEY_VERDICT, "")
    stood = "" if old is None else (old.get("data") or {}).get(names.KEY_VERDICT, "")
    return None if text == stood else verdict_codec.parse(text)


class RingOracle(MemberOracle):
    """Of a start group."""

    def __init__(self, api: Api, cluster: RingCluster, now: Callable[[], float]) -> None:
        super().__init__(api, cluster, now)
        self._ring = cluster
        self._heads: set[str] = set()
        """Of all verdicts that were written."""
        self._members: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        """By UID of the ConfigMap and attempt: what was written."""

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
            self._ring.judge.decided(verdict, pods, self._now())

    def _judge_members(self, old: Json | None, after: Membership, new: Json) -> None:
        before = None if old is None else verdict_codec.parse_membership(old.get("data") or {})
        if before is not None:
            live = {pod.uid for pod in map(self._ring.seen, self._api.all(PODS)) if pod.live}
            self._ring.judge.moved(before, after, live)
        if after.members and KEYS & set(new["data"]) and (before is None or after.members != before.members):
            writes = self._members[new["metadata"]["uid"], after.attempt]
            writes.append(new["data"][names.KEY_MEMBERS])
            assert len(writes) <= MOST_WRITES, f"the members of attempt {after.attempt} are written again: {writes}"

    @override
    def ended(self, *, all_start: bool) -> None:
        live = [pod for pod in self._api.all(PODS) if self._ring.seen(pod).live and not is_bare(pod)]
        held = [pod["metadata"]["name"] for pod in live if pod in self._cluster.waiting()]
        if held and (all_start or self._cluster.shape.timeout is not None):
            stored = self._api.get(CONFIGMAPS, self._cluster.gate)
            raise AssertionError(f"held for ever: {held} of {len(live)}; {stored}")


class LeaderOracle(MemberOracle):
    """Of a group of a LeaderWorkerSet."""

    def __init__(self, api: Api, cluster: LeaderCluster, now: Callable[[], float]) -> None:
        super().__init__(api, cluster, now)
        self._group = cluster
        self._decided: set[tuple[str, str]] = set()
        """UIDs of leaders and kinds of all verdicts that were written."""

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
            decided = (self._group.judge.whose[uid], verdict.kind.value) in self._decided
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
        self._group.judge.decided(verdict, [self._group.seen(pod) for pod in replica.view.raw.pods], self._now())
        self._decided.add((leader, verdict.kind.value))

    @override
    def ended(self, *, all_start: bool) -> None:
        cluster, leader = self._group, self._group.leader
        if leader is None or not cluster.seen(leader).live:
            return
        uid = leader["metadata"]["uid"]
        live = [pod for pod in self._api.all(PODS) if cluster.seen(pod).live and not is_bare(pod)]
        mine = [pod for pod in live if cluster.judge.whose[pod["metadata"]["uid"]] == uid]
        held = [pod["metadata"]["name"] for pod in mine if pod in cluster.waiting()]
        whole = len(mine) >= cluster.judge.sizes[uid] and all_start
        if held and (whole or cluster.shape.timeout is not None):
            stored = self._api.get(CONFIGMAPS, cluster.gate)
            raise AssertionError(f"held for ever: {held} of {len(mine)}; {stored}")
