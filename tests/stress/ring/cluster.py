"""The truth of one start group: what the pods' owner, kubelets and people do to it."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from jobset_gate import names
from jobset_gate.barrier import verdict_codec, wire
from jobset_gate.barrier.model import GangKey, Generation, PodSeen
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from jobset_gate.sources import startgroup
from jobset_gate.sources.table import config_map_name
from tests.fakes.memory_api import Api, Json
from tests.stress.ring.judge import GroupJudge, size_of
from tests.stress.world.cluster import Cluster, GangShape
from tests.stress.world.objects import JOBSET, notes_of, running, stamp

OWNER = "owner-uid"
RING = GangKey("default", startgroup.gang_name(JOBSET, OWNER), "startgroup")


def pod_seen(pod: Json) -> PodSeen:
    """As a controller reads it."""
    found = startgroup.pod(msgspec.json.decode(msgspec.json.encode(pod), type=wire.MemberPod))
    assert found is not None
    return found


class RingCluster(Cluster):
    """The pods of one owner. `kept`: those whose barrier has its release on the volume of its state."""

    def __init__(self, api: Api, now: Callable[[], float], shape: GangShape) -> None:
        super().__init__(api, now, shape)
        self.size = shape.width
        self.judge = GroupJudge(shape)
        self.wrongs: list[AssertionError] = []
        self.kept: set[str] = set()

    @property
    def jobset(self) -> Json | None:
        """There is none."""
        return None

    @property
    def gate(self) -> str:
        return config_map_name(RING)

    # --- The owner and people ----------------------------------------------------------------------------------------

    def create(self, *, suspended: bool = False) -> None:
        self.sync_jobs()

    def sync_jobset(self) -> None:
        """There is none."""

    def sync_jobs(self, *, tell: bool = True) -> None:
        """The owner makes the pods that it lacks; not `tell`: one of them."""
        pods = [pod_seen(pod) for pod in self.pods()]
        live = [pod for pod in pods if pod.live]
        done = sum(pod.phase == "Succeeded" for pod in pods) if self.shape.of_job else 0
        lacking = max([self.size, *map(size_of, live)]) - done - len(live)
        for _ in range(lacking if tell else min(1, lacking)):
            self.make_pod()

    def collect(self) -> None:
        """The owner stays."""

    def make_pod(self, *, bare: bool = False) -> None:
        """`bare`: the webhook was not there."""
        alone = not any(pod.live for pod in map(pod_seen, self.pods()))
        self._pods += 1
        config = {} if self.shape.timeout is None else {names.TIMEOUT_FIELD: self.shape.timeout}
        lenient = names.ON_TIMEOUT_RELEASE if self.shape.releases_on_timeout else names.ON_TIMEOUT_FAIL
        notes = {names.START_SIZE: str(self.size), names.CONFIG: json.dumps(config), names.ON_TIMEOUT: lenient}
        api_version, kind = ("batch/v1", "Job") if self.shape.of_job else ("apps/v1", "StatefulSet")
        owner = {"apiVersion": api_version, "kind": kind, "name": "ring", "uid": OWNER, "controller": True}
        barrier = [] if bare else [{"name": names.BARRIER_CONTAINER}]
        made = self.api.create(
            PODS,
            {
                "metadata": {
                    "name": f"ring-{self._pods}",
                    "labels": {names.START_GROUP: JOBSET},
                    "annotations": notes | ({} if bare else {names.TOKEN: f"token-{self._pods}"}),
                    "ownerReferences": [owner],
                    "creationTimestamp": stamp(self.now()),
                },
                "spec": {"initContainers": barrier, "containers": [{"name": "main"}]},
                "status": {"phase": "Pending"},
            },
        )
        self.judge.created(made["metadata"]["uid"], alone=alone)

    def lose_gate(self) -> None:
        """A user deletes the ConfigMap."""
        if self.api.get(CONFIGMAPS, self.gate) is not None:
            self.judge.gate_was_lost = True
            self.api.remove(CONFIGMAPS, self.gate)

    # --- Kubelets ----------------------------------------------------------------------------------------------------

    def unstarted(self) -> list[Json]:
        """Also those that have no barrier."""
        return [pod for pod in super().unstarted() if pod["status"]["phase"] == "Pending"]

    def first_slot(self, pod: Json) -> bool:
        """The oldest pod is late."""
        return bool(pod["metadata"]["name"] == min(it["metadata"]["name"] for it in self.pods()))

    def start(self, pod: Json, node_ahead: float = 0.0, *, tell: bool = True) -> None:
        """The barrier runs, for the first time or again."""
        uid, since = pod["metadata"]["uid"], stamp(float(int(self.now())))
        if is_bare(pod):
            self._change_pod(pod, lambda body: body.update(status={"phase": "Running"}))
            return
        self.ran.setdefault(uid, self.now())
        self.judge.began(uid, self.now())
        self._forget(pod)
        if uid in self.kept:
            self._untold[uid] = "release"
        if not tell:
            self._unreported[uid] = since

        def change(body: Json) -> None:
            body["spec"]["nodeName"] = "node"
            if tell:
                body["status"] = running(since)

        self._change_pod(pod, change)

    def look(self, pod: Json, text: str, *, tell: bool = True) -> bool:
        uid = pod["metadata"]["uid"]
        verdict = verdict_codec.parse(text)
        if verdict is None or not self._runs(pod) or (verdict.generation.uid, verdict.generation.attempt) != (uid, 0):
            return False
        on_gang = msgspec.structs.replace(verdict, generation=Generation(OWNER, verdict.generation.epoch, 0))
        try:
            self.judge.obeyed(uid, on_gang)
        except AssertionError as wrong:
            self.wrongs.append(wrong)
        self._untold[uid] = verdict.kind.value
        if verdict.kind.value == "release":
            self.kept.add(uid)
        if tell:
            self.report(pod)
        return True

    def report(self, pod: Json) -> None:
        if not is_bare(pod):
            super().report(pod)

    def readable(self, pod: Json) -> list[str]:
        """The annotation alone: no pod mounts the ConfigMap."""
        return ["", notes_of(pod).get(names.VERDICT, "")]

    def request(self, pod: Json) -> tuple[GangKey, str, Generation]:
        uid = pod["metadata"]["uid"]
        return GangKey("default", "", "startgroup"), notes_of(pod).get(names.TOKEN, ""), Generation(uid, 0, 0)


def is_bare(pod: Json) -> bool:
    """It has no barrier and waits for nobody."""
    return not pod["spec"]["initContainers"]
