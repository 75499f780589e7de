"""Pods of start groups as an API server sends them, and a controller of one group whose watches the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import msgspec
from typing_extensions import override

from jobset_gate import names
from jobset_gate.barrier import verdict_codec, wire
from jobset_gate.barrier.model import GangKey, GangSnapshot, Generation, PodSeen, Verdict
from jobset_gate.kube.resources import CONFIGMAPS, PODS, Resource
from jobset_gate.runtime.store import Store
from jobset_gate.sources import startgroup
from tests.fakes.controller_harness import ControllerHarness
from tests.fakes.memory_api import Json
from tests.fakes.wire_objects import BARRIER, decoded, status

SPACE = "team-a"
OWNER = "owner-uid"
RING = GangKey(SPACE, f"ring.{OWNER}", "startgroup")
NAME = f"ring.{OWNER}.start.group-scheduling"
RUNS = status(BARRIER, running="2026-08-01T10:00:30Z")
PASSED = status(BARRIER, exit=0)
STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "ring", "uid": OWNER, "controller": True}


def member(name: str, *init: Json, size: str = "2", phase: str = "Pending", **meta: Any) -> Json:
    """A pod of the group `ring` under a StatefulSet, with these statuses of init containers; its UID is its name."""
    more = {"barrier": meta.pop("init", (BARRIER,)), "phase": phase}
    notes = {names.START_SIZE: size, names.TOKEN: f"token-of-{name}"} | meta.pop("notes", {})
    meta = {"labels": {names.START_GROUP: "ring"}, "annotations": notes, "ownerReferences": [STATEFUL_SET]} | meta
    return pod_body(name, name, init, **more, **meta)


def pod_body(
    name: str, uid: str, init: Sequence[Json], *, barrier: Iterable[str], phase: str = "Pending", **meta: Any
) -> Json:
    """A pod with these init containers and their statuses."""
    containers = [{"name": it} for it in barrier]
    known = {"resourceVersion": "1", "creationTimestamp": "2026-08-01T10:00:00Z"}
    return {
        "metadata": {"name": name, "namespace": SPACE, "uid": uid} | known | meta,
        "spec": {"nodeName": "node-7", "initContainers": containers, "containers": [{"name": "main"}]},
        "status": {"phase": phase, "initContainerStatuses": list(init)},
    }


def addressed(uid: str, attempt: int = 0) -> Json:
    """Annotations of a pod that carries a release with this address."""
    return {names.VERDICT: f"release {uid} 0 {attempt} {names.REASON_STARTED}\n"}


def read_member(body: Json, read: Callable[[wire.MemberPod], PodSeen | None] = startgroup.pod) -> PodSeen:
    found = read(decoded(body, wire.MemberPod))
    assert found is not None
    return found


@dataclass
class StartGroupController(ControllerHarness):
    """`watch` shows its cache what the API holds, `reconcile` is one pass."""

    source: ClassVar[str] = "startgroup"
    key: ClassVar[GangKey] = RING

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.pods: Store[Any, PodSeen] = Store(self.read_pod)

    def read_pod(self, seen: wire.MemberPod) -> PodSeen | None:
        return startgroup.pod(seen)

    def successor(self) -> Self:
        """Another process, which has listed everything."""
        made = type(self)(self.api, self.memory, self.clock)
        made.watch()
        return made

    def watch(self, *kinds: Resource) -> None:
        """The watches of these kinds, or of both, catch up: deletions first."""
        if not kinds or PODS in kinds:
            self.catch_up(PODS, wire.MemberPod, self.pods, self.cache.on_pod)
        if not kinds or CONFIGMAPS in kinds:
            self.catch_up(CONFIGMAPS, wire.ConfigMap, self.config_maps, self.cache.on_config_map)

    def catch_up(self, kind: Resource, shape: Any, store: Store[Any, Any], handler: Callable[[Any], None]) -> None:
        items = [msgspec.convert(it, shape) for it in self.api.all(kind)]
        found = {(it.metadata.namespace, it.metadata.name): store.listed(it) for it in items}
        store.begin_list()
        for change in store.replace(found, str(self.api.version)):
            handler(change)

    def put(self, *bodies: Json) -> None:
        """These pods are in the API, and no watch has shown them."""
        for body in bodies:
            self.api.put(PODS, body)

    def show(self, *bodies: Json) -> None:
        """These pods are in the API, and the watches have shown all."""
        self.put(*bodies)
        self.watch()

    def remove(self, *names_: str) -> None:
        for name in names_:
            self.api.remove(PODS, name, namespace=SPACE)

    async def reconcile(self, *bodies: Json, key: GangKey | None = None) -> float | None:
        """These objects are shown, then one pass, and the write of the condition that it asked for."""
        if bodies:
            self.show(*bodies)
        key = key or self.key
        again = await self.reconciler.reconcile(key)
        await self.status.reconcile(key)
        return again

    @property
    def seen(self) -> GangSnapshot:
        found = self.cache.peek(self.key)
        assert found is not None
        return found

    @property
    def stored(self) -> Json:
        return self.api.known(CONFIGMAPS, NAME, SPACE)

    @property
    def attempt(self) -> int:
        return int(self.stored["data"][names.KEY_ATTEMPT])

    @property
    def members(self) -> set[str]:
        """As they are recorded."""
        return set(self.stored["data"].get(names.KEY_MEMBERS, "").split())

    @property
    def state(self) -> tuple[str, str]:
        """The condition, as annotations."""
        notes = self.stored["metadata"]["annotations"]
        return notes.get(names.GROUP_STARTED, ""), notes.get(names.GANG_STATE, "")

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the present attempt."""
        found = verdict_codec.parse(self.stored["data"].get(names.KEY_VERDICT, ""))
        return found if found is not None and found.generation == Generation(OWNER, self.attempt, 0) else None

    @property
    def decided(self) -> Verdict:
        """There is one."""
        assert self.verdict is not None
        return self.verdict
