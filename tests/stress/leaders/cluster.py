"""The truth of one group of a LeaderWorkerSet: what its controllers, the garbage collector, kubelets and people do.

The leader is a pod of one StatefulSet, its workers are pods of another, which the leader owns. A name is free only when
its last pod is gone; but a leader deleted in the background is followed by the next one before its workers end.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import GangKey, PodSeen
from jobset_gate.kube.resources import CONFIGMAPS, PODS, STATEFUL_SETS
from jobset_gate.sources import lws
from jobset_gate.sources.table import config_map_name
from tests.fakes.memory_api import Api, Json
from tests.stress.leaders.judge import LeaderJudge
from tests.stress.ring.cluster import RingCluster
from tests.stress.world.cluster import GangShape
from tests.stress.world.objects import JOBSET, stamp

LEADER = f"{JOBSET}-0"
GROUP = GangKey("default", LEADER, "lws")


def pod_seen(pod: Json) -> PodSeen:
    """As a controller reads it."""
    found = lws.pod(msgspec.json.decode(msgspec.json.encode(pod), type=wire.MemberPod))
    assert found is not None
    return found


class LeaderCluster(RingCluster):
    """Group 0 of the LeaderWorkerSet `train`."""

    def __init__(self, api: Api, now: Callable[[], float], shape: GangShape) -> None:
        super().__init__(api, now, shape)
        self.judge: LeaderJudge = LeaderJudge(shape)  # type: ignore[assignment]
        self.next_is_bare = False
        """The webhook is not there when the next pod is made."""

    @property
    def gate(self) -> str:
        return config_map_name(GROUP)

    @property
    def leader(self) -> Json | None:
        return self.api.get(PODS, LEADER)

    # --- Controllers and people --------------------------------------------------------------------------------------

    def sync_jobs(self, *, tell: bool = True) -> None:
        """Both StatefulSets make the pods that they lack, and LWS that of the workers; not `tell`: the leader alone."""
        for pod in self.pods():
            if pod["status"]["phase"] == "Failed" and "deletionTimestamp" not in pod["metadata"]:
                self.vanish(pod)
        self._recreate_after_restarts()
        if self.leader is None:
            self._make(LEADER, 0, {"name": JOBSET, "uid": "leaders"}, self.size)
        leader = self.leader
        if leader is None or "deletionTimestamp" in leader["metadata"] or not tell:
            return
        uid = leader["metadata"]["uid"]
        if self.api.get(STATEFUL_SETS, LEADER) is None:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": LEADER, "uid": uid, "controller": True}
            meta = {"name": LEADER, "labels": self._labels(), "ownerReferences": [owner]}
            self.api.create(STATEFUL_SETS, {"metadata": meta, "spec": {"replicas": self.judge.sizes[uid] - 1}})
        self._make_workers()

    def _make_workers(self) -> None:
        """The StatefulSet of an earlier leader goes on until it is collected."""
        made = self.api.get(STATEFUL_SETS, LEADER)
        if made is None:
            return
        meta = made["metadata"]
        for index in range(1, made["spec"]["replicas"] + 1):
            if self.api.get(PODS, f"{LEADER}-{index}") is None:
                owner = {"name": LEADER, "uid": meta["uid"], "leader": meta["ownerReferences"][0]["uid"]}
                self._make(f"{LEADER}-{index}", index, owner, self.size)

    def _recreate_after_restarts(self) -> None:
        """RecreateGroupOnPodRestart: the leader is deleted in the background."""
        leader = self.leader
        if leader is None or self.shape.releases_on_timeout:
            return
        mine = [pod for pod in self.pods() if self.judge.leader_of[pod["metadata"]["uid"]] == leader["metadata"]["uid"]]
        statuses = [it for pod in mine for it in pod["status"].get("initContainerStatuses", ())]
        if any(it.get("restartCount") for it in statuses):
            self.vanish(leader)

    def collect(self) -> None:
        """The garbage collector: what has lost its owner goes."""
        pods = {pod["metadata"]["uid"] for pod in self.pods()}
        self._collect(STATEFUL_SETS, pods)
        self._collect(CONFIGMAPS, pods)
        sets = {it["metadata"]["uid"] for it in self.api.all(STATEFUL_SETS)} | {"leaders"}
        for pod in self.pods():
            if pod["metadata"]["ownerReferences"][0]["uid"] not in sets:
                self._terminate(pod)

    def lose_gate(self) -> None:
        """A user deletes the ConfigMap."""
        stored = self.api.get(CONFIGMAPS, self.gate)
        if stored is not None:
            self.judge.gate_was_lost.add(stored["metadata"]["annotations"][names.JOBSET_UID])
            self.api.remove(CONFIGMAPS, self.gate)

    def _make(self, name: str, index: int, owner: Json, size: int) -> None:
        self._pods += 1
        bare, self.next_is_bare = self.next_is_bare, False
        config = {} if self.shape.timeout is None else {names.TIMEOUT_FIELD: self.shape.timeout}
        notes = {names.LWS_SIZE: str(size), names.CONFIG: json.dumps(config)}
        made_by = {"apiVersion": "apps/v1", "kind": "StatefulSet", "controller": True}
        made = self.api.create(
            PODS,
            {
                "metadata": {
                    "name": name,
                    "labels": self._labels() | {names.LWS_WORKER_INDEX: str(index), names.GATED: names.GATED_LWS},
                    "annotations": notes | ({} if bare else {names.TOKEN: f"token-{self._pods}"}),
                    "ownerReferences": [made_by | {"name": owner["name"], "uid": owner["uid"]}],
                    "creationTimestamp": stamp(self.now()),
                },
                "spec": {
                    "initContainers": [] if bare else [{"name": names.BARRIER_CONTAINER}],
                    "containers": [{"name": "main"}],
                },
                "status": {"phase": "Pending"},
            },
        )
        uid = made["metadata"]["uid"]
        self.judge.created(uid, owner.get("leader", uid))
        if not index:
            self.judge.sizes[uid] = size

    def _labels(self) -> dict[str, str]:
        return {names.LWS_NAME: JOBSET, names.LWS_GROUP_INDEX: "0"}
