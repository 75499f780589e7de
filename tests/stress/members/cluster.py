"""The truth of gangs whose pods are gated one by one: what owners, controllers, kubelets and people do to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import msgspec
from typing_extensions import override

from jobset_gate import names
from jobset_gate.barrier import verdict_codec, wire
from jobset_gate.barrier.model import GangKey, Generation, PodSeen, Verdict
from jobset_gate.kube.resources import CONFIGMAPS, PODS, STATEFUL_SETS
from jobset_gate.sources import lws, startgroup
from jobset_gate.sources.table import config_map_name
from tests.fakes.memory_api import Api, Json
from tests.fakes.wire_objects import decoded
from tests.stress.world.cluster import Cluster
from tests.stress.world.facts import notes_of
from tests.stress.world.objects import JOBSET, GangShape, stamp

if TYPE_CHECKING:
    from tests.stress.members.oracle import LeaderOracle, MemberOracle, RingOracle

OWNER = "owner-uid"
LEADER = f"{JOBSET}-0"


class MemberCluster(Cluster):
    """One gang. `kept`: pods whose barrier has its release on the volume of its state."""

    key: ClassVar[GangKey]
    judge: MemberOracle
    """Made for this cluster, and before its first pod."""

    def __init__(self, api: Api, now: Callable[[], float], shape: GangShape) -> None:
        super().__init__(api, now, shape)
        self.size = shape.width
        self.kept: set[str] = set()
        self._seen: dict[tuple[str, str], PodSeen] = {}
        """By UID and resourceVersion: to read pods takes half the time of a schedule."""

    @property
    @override
    def jobset(self) -> Json | None:
        """There is none."""
        return None

    @property
    @override
    def gate(self) -> str:
        return config_map_name(self.key)

    def seen(self, pod: Json) -> PodSeen:
        """As a controller reads it."""
        version = pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]
        found = self._seen.get(version)
        if found is None:
            found = self._decode(decoded(pod, wire.MemberPod))
            assert found is not None
            self._seen[version] = found
        return found

    def _decode(self, pod: wire.MemberPod) -> PodSeen | None:
        raise NotImplementedError

    def verdict_on_gang(self, pod: Json, verdict: Verdict) -> Verdict:
        """What a verdict that is addressed to this pod says of its gang."""
        return verdict

    def miss_webhook(self) -> None:
        """The webhook is not there when the next pod is made."""
        raise NotImplementedError

    # --- Owners and people -------------------------------------------------------------------------------------------

    @override
    def create(self, *, suspended: bool = False) -> None:
        self.sync_jobs()

    @override
    def sync_jobset(self) -> None:
        """There is none."""

    def _create_pod(self, name: str, labels: Json, notes: Json, owner: Json, *, bare: bool) -> str:
        """Its UID. `bare`: the webhook was not there."""
        self._pods += 1
        config = {} if self.shape.timeout is None else {names.TIMEOUT_FIELD: self.shape.timeout}
        notes = notes | {names.CONFIG: json.dumps(config)} | ({} if bare else {names.TOKEN: f"token-{self._pods}"})
        barrier = [] if bare else [{"name": names.BARRIER_CONTAINER}]
        meta = {
            "name": name,
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [owner | {"controller": True}],
            "creationTimestamp": stamp(self.now()),
        }
        spec = {"initContainers": barrier, "containers": [{"name": "main"}]}
        made = self.api.create(PODS, {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        return str(made["metadata"]["uid"])

    # --- Kubelets ----------------------------------------------------------------------------------------------------

    @override
    def unstarted(self) -> list[Json]:
        """Also those that have no barrier."""
        return [pod for pod in super().unstarted() if pod["status"]["phase"] == "Pending"]

    @override
    def first_slot(self, pod: Json) -> bool:
        """The oldest pod is late."""
        return bool(pod["metadata"]["name"] == min(it["metadata"]["name"] for it in self.pods()))

    @override
    def start(self, pod: Json, node_ahead: float = 0.0, *, tell: bool = True) -> None:
        """The barrier runs, for the first time or again."""
        if is_bare(pod):
            self._change_pod(pod, lambda body: body.update(status={"phase": "Running"}))
            return
        super().start(pod, node_ahead, tell=tell)
        uid = pod["metadata"]["uid"]
        if uid in self.kept:
            self._untold[uid] = "release"

    @override
    def look(self, pod: Json, text: str, *, tell: bool = True) -> bool:
        uid = pod["metadata"]["uid"]
        verdict = verdict_codec.parse(text)
        if verdict is None or not self._runs(pod) or (verdict.generation.uid, verdict.generation.attempt) != (uid, 0):
            return False
        self.judge.obeyed(uid, self.verdict_on_gang(pod, verdict))
        self._untold[uid] = verdict.kind.value
        if verdict.kind.value == "release":
            self.kept.add(uid)
        if tell:
            self.report(pod)
        return True

    @override
    def report(self, pod: Json) -> None:
        if not is_bare(pod):
            super().report(pod)

    @override
    def readable(self, pod: Json) -> list[str]:
        """The annotation alone: no pod mounts the ConfigMap."""
        return ["", notes_of(pod).get(names.VERDICT, "")]

    @override
    def request(self, pod: Json) -> tuple[GangKey, str, Generation]:
        uid = pod["metadata"]["uid"]
        return GangKey("default", "", "startgroup"), notes_of(pod).get(names.TOKEN, ""), Generation(uid, 0, 0)


class RingCluster(MemberCluster):
    """The start group `train` of one owner."""

    key = GangKey("default", startgroup.gang_name(JOBSET, OWNER), "startgroup")
    judge: RingOracle

    @override
    def _decode(self, pod: wire.MemberPod) -> PodSeen | None:
        return startgroup.pod(pod)

    @override
    def verdict_on_gang(self, pod: Json, verdict: Verdict) -> Verdict:
        return msgspec.structs.replace(verdict, generation=Generation(OWNER, verdict.generation.epoch, 0))

    @override
    def sync_jobs(self, *, tell: bool = True) -> None:
        """The owner makes the pods that it lacks; not `tell`: one of them."""
        pods = [self.seen(pod) for pod in self.pods()]
        live = [pod for pod in pods if pod.live]
        done = sum(pod.phase == "Succeeded" for pod in pods) if self.shape.of_job else 0
        lacking = max([self.size, *map(size_of, live)]) - done - len(live)
        for _ in range(lacking if tell else min(1, lacking)):
            self._make_member()

    @override
    def collect(self) -> None:
        """The owner stays."""

    @override
    def miss_webhook(self) -> None:
        self._make_member(bare=True)

    def _make_member(self, *, bare: bool = False) -> None:
        alone = not any(self.seen(pod).live for pod in self.pods())
        lenient = names.ON_TIMEOUT_RELEASE if self.shape.releases_on_timeout else names.ON_TIMEOUT_FAIL
        notes = {names.START_SIZE: str(self.size), names.ON_TIMEOUT: lenient}
        api_version, kind = ("batch/v1", "Job") if self.shape.of_job else ("apps/v1", "StatefulSet")
        owner = {"apiVersion": api_version, "kind": kind, "name": "ring", "uid": OWNER}
        name = f"ring-{self._pods + 1}"
        uid = self._create_pod(name, {names.START_GROUP: JOBSET}, notes, owner, bare=bare)
        self.judge.created(uid, alone=alone)


class LeaderCluster(MemberCluster):
    """Group 0 of the LeaderWorkerSet `train`.

    The leader is a pod of one StatefulSet, its workers are pods of another, which the leader owns. A name is free only
    when its last pod is gone; but a leader deleted in the background is followed by the next one before its workers
    end.
    """

    key = GangKey("default", LEADER, "lws")
    judge: LeaderOracle

    def __init__(self, api: Api, now: Callable[[], float], shape: GangShape) -> None:
        super().__init__(api, now, shape)
        self._next_is_bare = False

    @override
    def _decode(self, pod: wire.MemberPod) -> PodSeen | None:
        return lws.pod(pod)

    @property
    def leader(self) -> Json | None:
        return self.api.get(PODS, LEADER)

    @override
    def sync_jobs(self, *, tell: bool = True) -> None:
        """Both StatefulSets make the pods that they lack, and LWS that of the workers; not `tell`: the leader alone."""
        for pod in self.pods():
            if pod["status"]["phase"] == "Failed" and "deletionTimestamp" not in pod["metadata"]:
                self.vanish(pod)
        self._recreate_after_restarts()
        if self.leader is None:
            self._make(LEADER, 0, JOBSET, "leaders")
        leader = self.leader
        if leader is None or "deletionTimestamp" in leader["metadata"] or not tell:
            return
        uid = leader["metadata"]["uid"]
        if self.api.get(STATEFUL_SETS, LEADER) is None:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": LEADER, "uid": uid, "controller": True}
            meta = {"name": LEADER, "labels": self._labels(), "ownerReferences": [owner]}
            self.api.create(STATEFUL_SETS, {"metadata": meta, "spec": {"replicas": self.judge.sizes[uid] - 1}})
        self._make_workers()

    @override
    def miss_webhook(self) -> None:
        self._next_is_bare = True
        self.sync_jobs()

    @override
    def collect(self) -> None:
        """The garbage collector: what has lost its owner goes."""
        pods = {pod["metadata"]["uid"] for pod in self.pods()}
        self._collect(STATEFUL_SETS, pods)
        self._collect(CONFIGMAPS, pods)
        sets = {it["metadata"]["uid"] for it in self.api.all(STATEFUL_SETS)} | {"leaders"}
        for pod in self.pods():
            if pod["metadata"]["ownerReferences"][0]["uid"] not in sets:
                self.evict(pod)

    def _make_workers(self) -> None:
        """The StatefulSet of an earlier leader goes on until it is collected."""
        made = self.api.get(STATEFUL_SETS, LEADER)
        if made is None:
            return
        meta = made["metadata"]
        for index in range(1, made["spec"]["replicas"] + 1):
            if self.api.get(PODS, f"{LEADER}-{index}") is None:
                self._make(f"{LEADER}-{index}", index, LEADER, meta["uid"], meta["ownerReferences"][0]["uid"])

    def _recreate_after_restarts(self) -> None:
        """RecreateGroupOnPodRestart: the leader is deleted in the background."""
        leader = self.leader
        if leader is None or self.shape.releases_on_timeout:
            return
        mine = [pod for pod in self.pods() if self.judge.whose[pod["metadata"]["uid"]] == leader["metadata"]["uid"]]
        statuses = [it for pod in mine for it in pod["status"].get("initContainerStatuses", ())]
        if any(it.get("restartCount") for it in statuses):
            self.vanish(leader)

    def _make(self, name: str, index: int, owner_name: str, owner_uid: str, leader: str = "") -> None:
        """Of that leader; none: it is one."""
        bare, self._next_is_bare = self._next_is_bare, False
        labels = self._labels() | {names.LWS_WORKER_INDEX: str(index), names.GATED: names.GATED_LWS}
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner_name, "uid": owner_uid}
        uid = self._create_pod(name, labels, {names.LWS_SIZE: str(self.size)}, owner, bare=bare)
        self.judge.whose[uid] = leader or uid
        if not index:
            self.judge.sizes[uid] = self.size

    def _labels(self) -> dict[str, str]:
        return {names.LWS_NAME: JOBSET, names.LWS_GROUP_INDEX: "0"}


def size_of(pod: PodSeen) -> int:
    """How many pods this one waits for."""
    return 0 if pod.member is None else pod.member.size


def is_bare(pod: Json) -> bool:
    """It has no barrier and waits for nobody."""
    return not pod["spec"]["initContainers"]
