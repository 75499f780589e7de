"""Groups of a LeaderWorkerSet as an API server sends them, and a controller of it whose watches the test moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from controllers.barrier.lws_condition import LwsConditionWriter
from jobset_gate import names
from jobset_gate.barrier import lws_wire, verdict_codec, wire
from jobset_gate.barrier.model import GangKey, PodSeen, Verdict
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Resource
from jobset_gate.runtime.store import Store
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate.sources import lws
from tests.fakes.memory_api import Json
from tests.fakes.start_group_controller import SPACE, STATEFUL_SET, StartGroupController, pod_body, read_member
from tests.fakes.wire_objects import BARRIER

LWS_UID = "lws-uid"
GROUP = GangKey(SPACE, "vllm-2", "lws")
PARENT = GangKey(SPACE, "vllm", "lws")


def leader_pod(uid: str = "A", *init: Json, group: int = 2, **more: Any) -> Json:
    """The leader pod of this group, by this UID."""
    return _pod(f"vllm-{group}", uid, ("vllm", "leaders"), (group, 0), init, **more)


def worker_pod(index: int, leader: str = "A", *init: Json, group: int = 2, uid: str = "", **more: Any) -> Json:
    """A worker under the StatefulSet of that leader; its UID is such as `A-1`."""
    owner = f"vllm-{group}"
    return _pod(f"{owner}-{index}", uid or f"{leader}-{index}", (owner, f"sts-{leader}"), (group, index), init, **more)


def _pod(
    name: str, uid: str, owner: tuple[str, str], place: tuple[int, int], init: tuple[Json, ...], **more: Any
) -> Json:
    notes = {names.LWS_SIZE: str(more.pop("size", 2)), names.CONFIG: "{}", names.TOKEN: f"token-of-{uid}"}
    group, index = map(str, place)
    labels = {names.GATED: names.GATED_LWS, names.LWS_NAME: "vllm", names.LWS_GROUP_INDEX: group}
    meta = {
        "labels": labels | {names.LWS_WORKER_INDEX: index},
        "annotations": notes | more.pop("notes", {}),
        "ownerReferences": [STATEFUL_SET | {"name": owner[0], "uid": owner[1]}],
    } | more.pop("meta", {})
    return pod_body(name, uid, init, **({"barrier": (BARRIER,)} | more), **meta)


def worker_set(leader: str = "A", group: int = 2) -> Json:
    """The StatefulSet of that leader's workers."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"vllm-{group}", "uid": leader, "controller": True}
    labels = {names.LWS_NAME: "vllm", names.LWS_GROUP_INDEX: str(group)}
    meta = {"name": f"vllm-{group}", "namespace": SPACE, "uid": f"sts-{leader}", "labels": labels}
    return {"metadata": meta | {"ownerReferences": [owner]}, "spec": {"replicas": 1}}


def leader_worker_set(replicas: int = 1, notes: Json | None = None, status: Json | None = None) -> Json:
    meta = {"name": "vllm", "namespace": SPACE, "uid": LWS_UID, "annotations": {names.CONFIG: "{}"} | (notes or {})}
    return {"metadata": meta, "spec": {"replicas": replicas}, "status": status or {}}


def read_pod(body: Json) -> PodSeen:
    return read_member(body, lws.pod)


@dataclass
class LwsController(StartGroupController):
    """A controller of the LeaderWorkerSet `vllm`, without workers."""

    source: ClassVar[str] = "lws"
    key: ClassVar[GangKey] = GROUP

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.worker_sets: Store[Any, lws.WorkerSetSeen] = Store(lws.worker_set)
        self.parents: Store[Any, lws.LeaderWorkerSetSeen] = Store(lws.leader_worker_set)

    @override
    def read_pod(self, seen: wire.MemberPod) -> PodSeen | None:
        return lws.pod(seen)

    @override
    def shared_condition(self) -> LwsConditionWriter:
        self.queue: WorkQueue[GangKey] = WorkQueue()
        self.conditions = LwsConditionWriter(self.memory.client, self.cache, self.queue, self.clock, interval=15.0)
        self.cache.on_parent = self.conditions.on_change
        return self.conditions

    @override
    def watch(self, *kinds: Resource) -> None:
        if not kinds or STATEFUL_SETS in kinds:
            self.catch_up(STATEFUL_SETS, lws_wire.WorkerSet, self.worker_sets, self.cache.on_worker_set)
        if not kinds or LEADER_WORKER_SETS in kinds:
            cache = self.cache
            self.catch_up(LEADER_WORKER_SETS, lws_wire.LeaderWorkerSet, self.parents, cache.on_leader_worker_set)
        super().watch(*kinds)

    @override
    def put(self, *bodies: Json) -> None:
        """These objects are in the API, and no watch has shown them."""
        for body in bodies:
            spec = body["spec"]
            kind = PODS if "containers" in spec else STATEFUL_SETS if "status" not in body else LEADER_WORKER_SETS
            self.api.put(kind, body)

    def start_group(self, leader: str = "A", *init: Json, group: int = 2) -> None:
        """A leader with its StatefulSet and its worker, both in this state."""
        pods = leader_pod(leader, *init, group=group), worker_pod(1, leader, *init, group=group)
        self.show(worker_set(leader, group), *pods)

    async def write_condition(self) -> tuple[str, str, str]:
        """What the LeaderWorkerSet says after the writer of its condition has worked."""
        self.watch()
        await self.conditions.reconcile(PARENT)
        found = self.api.known(LEADER_WORKER_SETS, "vllm", SPACE)["status"].get("conditions", [])
        ours = (it for it in found if it["type"] == names.CONDITION)
        return next(((it["status"], it["reason"], it["message"]) for it in ours), ("", "", ""))

    @property
    def kept(self) -> dict[str, Json]:
        """By the UID of the leader that they are of."""
        return {it["metadata"]["annotations"][names.JOBSET_UID]: it for it in self.api.all(CONFIGMAPS)}

    def verdict_on(self, leader: str = "A") -> Verdict | None:
        """The one that is stored for this leader."""
        stored = self.kept.get(leader, {"data": {}})
        return verdict_codec.parse(stored["data"].get(names.KEY_VERDICT, ""))

    def decided_on(self, leader: str = "A") -> Verdict:
        """There is one."""
        found = self.verdict_on(leader)
        assert found is not None
        return found

    @property
    def events(self) -> list[tuple[str, str, str, str]]:
        """(kind and UID of the object, reason, message)."""
        found = ((it["involvedObject"], it) for it in self.api.all(EVENTS))
        return [(about["kind"], about["uid"], it["reason"], it["message"]) for about, it in found]
