"""The judge of the group: each write of its ConfigMap, by what that controller had been shown, and how all ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from tests.fakes.memory_api import Api, Json, labels_of
from tests.stress.leaders.cluster import LeaderCluster, pod_seen
from tests.stress.ring.cluster import is_bare
from tests.stress.world.objects import notes_of
from tests.stress.world.oracle import Oracle

if TYPE_CHECKING:
    from tests.fakes.memory_client import Call
    from tests.stress.world.replica import Replica

KEYS = {names.KEY_VERDICT, names.KEY_WAITING_SINCE}


class LeaderOracle(Oracle):
    """Of a group."""

    def __init__(self, api: Api, cluster: LeaderCluster, now: Callable[[], float]) -> None:
        super().__init__(api, cluster, now)
        self._group, self.wrongs = cluster, cluster.wrongs
        self._decided: set[tuple[str, str]] = set()
        """UIDs of leaders and kinds of all verdicts that were written."""

    def sent(self, replica: Replica, call: Call) -> None:
        """What is written is judged."""

    def written(self, replica: Replica, old: Json | None, new: Json) -> None:
        """A controller has put this into the ConfigMap, in the place of that."""
        try:
            self._judge(replica, old, new)
        except AssertionError as wrong:
            self.wrongs.append(wrong)

    def removed(self, old: Json) -> None:
        """Only that of an earlier leader (A10)."""
        leader = self._group.leader
        if leader is not None and notes_of(old)[names.JOBSET_UID] == leader["metadata"]["uid"]:
            self.wrongs.append(AssertionError(f"a controller removed {old}, whose leader is there"))

    def check(self) -> None:
        """Verdicts that pods carry were written before, for the leader of that pod."""
        for pod in self._api.all(PODS):
            verdict = verdict_codec.parse(notes_of(pod).get(names.VERDICT, ""))
            uid = pod["metadata"]["uid"]
            if verdict is None:
                continue
            its = verdict.generation
            if (self._group.judge.leader_of[uid], verdict.kind.value) not in self._decided or its.uid != uid:
                self.wrongs.append(AssertionError(f"delivered to {uid} before it was written: {verdict}"))

    def _judge(self, replica: Replica, old: Json | None, new: Json) -> None:
        meta, data = new["metadata"], new["data"]
        leader = notes_of(new)[names.JOBSET_UID]
        assert set(data) <= KEYS, f"not written whole: {new}"
        assert [(it["kind"], it["uid"]) for it in meta["ownerReferences"]] == [("Pod", leader)], f"not owned: {new}"
        assert labels_of(new)[names.GATE] == names.GATE_VALUE, f"not to be found: {new}"
        assert old is None or notes_of(old)[names.JOBSET_UID] == leader, f"adopted: {old} became {new}"
        text = data.get(names.KEY_VERDICT, "")
        verdict = verdict_codec.parse(text)
        stood = "" if old is None else (old.get("data") or {}).get(names.KEY_VERDICT, "")
        if verdict is None or text == stood:
            return
        assert verdict.generation.uid == leader, f"of another leader: {new}"
        self._group.judge.decided(verdict, [pod_seen(pod) for pod in replica.view.raw.pods], self._now())
        self._decided.add((leader, verdict.kind.value))

    def ended(self, *, all_start: bool) -> None:
        """Nothing disturbs the group any more, and a long time has passed: is anybody forgotten?"""
        cluster, leader = self._group, self._group.leader
        if leader is None or not pod_seen(leader).live:
            return
        uid = leader["metadata"]["uid"]
        live = [pod for pod in self._api.all(PODS) if pod_seen(pod).live and not is_bare(pod)]
        mine = [pod for pod in live if cluster.judge.leader_of[pod["metadata"]["uid"]] == uid]
        held = [pod["metadata"]["name"] for pod in mine if pod in cluster.waiting()]
        whole = len(mine) >= cluster.judge.sizes[uid] and all_start
        if held and (whole or cluster.shape.timeout is not None):
            stored = self._api.get(CONFIGMAPS, cluster.gate)
            raise AssertionError(f"held for ever: {held} of {len(mine)}; {stored}")
