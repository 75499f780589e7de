"""The judge of the ring: each write of its ConfigMap, by what that controller had been shown, and how all ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.member import Membership
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from tests.fakes.memory_api import Api, Json, labels_of
from tests.stress.ring.cluster import OWNER, RingCluster, is_bare, pod_seen
from tests.stress.world.objects import JOBSET
from tests.stress.world.oracle import Oracle

if TYPE_CHECKING:
    from tests.fakes.memory_client import Call
    from tests.stress.world.replica import Replica

KEYS = {names.KEY_ATTEMPT, names.KEY_MEMBERS, names.KEY_VERDICT, names.KEY_WAITING_SINCE}
MOST_WRITES = 2
"""Of the members of one attempt: with its clock and with its verdict."""


class RingOracle(Oracle):
    """Of a start group."""

    def __init__(self, api: Api, cluster: RingCluster, now: Callable[[], float]) -> None:
        super().__init__(api, cluster, now)
        self._ring, self.wrongs = cluster, cluster.wrongs
        self._heads: set[str] = set()
        """Of all verdicts that were written."""
        self._members: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        """By UID of the ConfigMap and attempt: what was written."""

    def sent(self, replica: Replica, call: Call) -> None:
        """What is written is judged."""

    def written(self, replica: Replica, old: Json | None, new: Json) -> None:
        """A controller has put this into the ConfigMap, in the place of that."""
        try:
            self._judge(replica, old, new)
        except AssertionError as wrong:
            self.wrongs.append(wrong)

    def removed(self, old: Json) -> None:
        self.wrongs.append(AssertionError(f"a controller removed {old}"))

    def check(self) -> None:
        """Verdicts that pods carry were written before."""
        for pod in map(pod_seen, self._api.all(PODS)):
            if pod.verdict and pod.verdict.partition("\n")[0] not in self._heads:
                self.wrongs.append(AssertionError(f"delivered before it was written: {pod.verdict}"))

    def _judge(self, replica: Replica, old: Json | None, new: Json) -> None:
        meta, data = new["metadata"], new["data"]
        assert set(data) <= KEYS, f"not written whole: {new}"
        assert [it["uid"] for it in meta["ownerReferences"]] == [OWNER], f"not owned: {new}"
        assert labels_of(new)[names.START_GROUP] == JOBSET, f"not to be found: {new}"
        after = _membership(data)
        before = None if old is None else verdict_codec.parse_membership(old.get("data") or {})
        if before is not None:
            live = {pod.uid for pod in map(pod_seen, self._api.all(PODS)) if pod.live}
            self._ring.judge.moved(before, after, live)
        if before is None or after.members != before.members:
            writes = self._members[meta["uid"], after.attempt]
            writes += [data[names.KEY_MEMBERS]] if after.members else []
            assert len(writes) <= MOST_WRITES, f"the members of attempt {after.attempt} are written again: {writes}"
        text = data.get(names.KEY_VERDICT, "")
        verdict, head = verdict_codec.parse(text), text.partition("\n")[0]
        stood = "" if old is None else (old.get("data") or {}).get(names.KEY_VERDICT, "")
        if verdict is None or text == stood:
            return
        self._heads.add(head)
        pods = [pod_seen(pod) for pod in replica.view.raw.pods]
        bound = after.members.intersection(pod.uid for pod in pods if pod.live)
        if verdict.generation.attempt < after.attempt or not bound:
            return  # that of an earlier attempt comes back with the ConfigMap, and binds nobody
        # Of a barrier that has passed, whatever attempt had released it: it is no decision.
        if verdict.message != "released earlier":
            self._ring.judge.decided(verdict, pods, self._now())

    def ended(self, *, all_start: bool) -> None:
        """Nothing disturbs the group any more, and a long time has passed: is anybody forgotten?"""
        live = [pod for pod in self._api.all(PODS) if pod_seen(pod).live and not is_bare(pod)]
        held = [pod["metadata"]["name"] for pod in live if pod in self._cluster.waiting()]
        if held and (all_start or self._cluster.shape.timeout is not None):
            stored = self._api.get(CONFIGMAPS, self._cluster.gate)
            raise AssertionError(f"held for ever: {held} of {len(live)}; {stored}")


def _membership(data: Json) -> Membership:
    found = verdict_codec.parse_membership(data)
    assert found is not None, f"no attempt: {data}"
    return found
