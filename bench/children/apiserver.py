"""The embedded API server in a process of its own, with gangs that appear and move at a word from the benchmark."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Iterator

from bench.children import command_loop
from bench.children.command_loop import Json
from bench.gangs import GangPlan, GangPods, PodStep, job_as_stored, jobs, lws_objects, new_uid, workload
from jobset_gate import names
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Resource
from jobset_gate.sources.table import LWS, POD_SOURCES, config_map_name
from jobset_gate_demo.fake import jobset_crd
from jobset_gate_demo.fake.apiserver import ApiServer
from jobset_gate_demo.fake.apiserver.kinds import ServedKind
from jobset_gate_demo.fake.apiserver.responses import copy
from jobset_gate_demo.fake.apiserver.store import Key, StoredObject, StoreEvent
from jobset_gate_demo.fake.cluster import SELDOM
from jobset_gate_demo.fake.objects import stamp
from tests.fakes.leader_worker_sets import install_lws_crd

BATCH_INTERVAL = 0.01
"""Seconds between two batches of changes."""
KUBELET_DELAY = 0.3
"""Seconds from a pod's patch to its main container."""
_LWS_KINDS = (LEADER_WORKER_SETS, STATEFUL_SETS)


class StoredGang:
    """A gang in the store, without the detour over HTTP. Its pods are numbered through all its Jobs."""

    def __init__(self, server: ApiServer, plan: GangPlan, rng: random.Random) -> None:
        self._store, self._plan, self._rng = server.store, plan, rng
        self._uids = [new_uid(rng) for _ in range(plan.size)]
        self._pods: list[GangPods] = []
        self._kind = self._kind_of(PODS)
        self._gone = False
        self._others: list[tuple[Resource, str]] = []
        """A LeaderWorkerSet and its StatefulSet."""
        self.uid = ""

    @property
    def uids(self) -> list[str]:
        """Of its pods."""
        return self._uids

    def make(self, step: PodStep) -> None:
        now = time.time()
        stored = workload(self._plan)
        if self._plan.resource == JOBSETS:
            stored["metadata"] |= {"uid": new_uid(self._rng), "creationTimestamp": stamp(now), "generation": 1}
            self._put(JOBSETS, stored)
        made = [job_as_stored(job, self._rng, now) for job in jobs(stored)]
        if self._plan.source not in POD_SOURCES:
            made = [self._put(JOBS, job) for job in made]
        self.uid = (stored if self._plan.resource == JOBSETS else made[0])["metadata"]["uid"]
        if self._plan.source == LWS.name:
            for resource, its in zip(_LWS_KINDS, lws_objects(self._plan, self._uids[0]), strict=True):
                self._others.append((resource, its["metadata"]["name"]))
                self._put(resource, its)
        self._pods = [GangPods(job, now, lean=self._plan.lean, source=self._plan.source) for job in made]
        for number in range(self._plan.size):
            self.move(number, step)

    def move(self, number: int, step: PodStep) -> None:
        job, index = divmod(number, self._plan.pods)
        pods = self._pods[job]
        pod = pods.stored(index, step, self._uids[number])
        stands = self._store.row(self._kind, self._plan.namespace, pods.name(index))
        if stands is not None:  # with what the controller has written on it
            pod["metadata"]["annotations"] |= stands.meta["annotations"]
        self._store.commit(self._kind, pod)

    def leave(self, number: int) -> None:
        """Its main container runs from now on, if the gang is still there."""
        if not self._gone:
            self.move(number, PodStep.RUNNING)

    def names(self) -> Iterator[str]:
        """Of its pods, in the order of their numbers."""
        return (pods.name(index) for pods in self._pods for index in range(self._plan.pods))

    def drop(self) -> None:
        """First the JobSet or Job, as a user would."""
        self._gone = True
        self._drop(self._plan.resource, self._plan.name)
        for resource, name in self._others:
            self._drop(resource, name)
        for name in self.names():
            self._drop(PODS, name)
        for job in range(self._plan.jobs):
            self._drop(JOBS, self._pods[job].job)
        self._drop(CONFIGMAPS, config_map_name(self._plan.key))

    # No admission, no defaults, no checks, no finalizers.

    def _kind_of(self, resource: Resource) -> ServedKind:
        kind = self._store.kinds.at(resource.group, resource.version, resource.plural)
        assert kind is not None
        return kind

    def _put(self, resource: Resource, stored: Json) -> Json:
        return self._store.commit(self._kind_of(resource), copy(stored)).fresh()

    def _drop(self, resource: Resource, name: str) -> None:
        kind = self._kind_of(resource)
        row = self._store.row(kind, self._plan.namespace, name)
        if row is not None:
            self._store.remove(kind, row.fresh())


class ApiServerProcess:
    """The commands."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._rng = random.Random(498)  # noqa: S311 - the same gangs in every run
        self._gangs: dict[str, StoredGang] = {}
        self._places: dict[Key, tuple[StoredGang, int]] = {}
        server.store.listeners.append(self._obey)

    async def install(self) -> Json:
        """The CRDs of JobSet and LeaderWorkerSet."""
        async with Client(Access(server=self._server.url)) as client:
            await jobset_crd.install(client)
            await install_lws_crd(client)
        return {"url": self._server.url}

    async def make(self, plan: Json, step: str) -> Json:
        wanted = GangPlan(**plan)
        gang = self._gangs[wanted.name] = StoredGang(self._server, wanted, self._rng)
        gang.make(PodStep(step))
        self._places |= {(wanted.namespace, name): (gang, number) for number, name in enumerate(gang.names())}
        return {}

    async def who(self, gang: str) -> Json:
        """The UIDs of a gang and of its pods."""
        its = self._gangs[gang]
        return {"uid": its.uid, "pods": its.uids}

    async def move(self, gangs: list[str], first: int, last: int, step: str, per_second: float) -> Json:
        """Pods `first` to `last` - 1 of each gang, gang by gang taking turns, evenly at that rate."""
        moves: Iterator[tuple[StoredGang, int]] = (
            (self._gangs[name], number) for number in range(first, last) for name in gangs
        )
        start, done = time.perf_counter(), 0
        for gang, number in moves:
            gang.move(number, PodStep(step))
            done += 1
            ahead = done / per_second - (time.perf_counter() - start)
            if ahead > BATCH_INTERVAL:
                await asyncio.sleep(ahead)
            elif done % 20 == 0:
                await asyncio.sleep(0)  # watches are served meanwhile
        return {"moves": done, "seconds": time.perf_counter() - start}

    async def drop(self, gang: str) -> Json:
        self._gangs.pop(gang).drop()
        return {}

    async def usage(self) -> Json:
        return command_loop.usage()

    def _obey(self, kind: ServedKind, change: StoreEvent) -> None:
        """A pod that got its verdict leaves the barrier soon, as with a kubelet."""
        if kind.plural != PODS.plural or change.deleted or not _patched(change.now) or _patched(change.old):
            return
        place = self._places.get(change.now.key)
        if place is not None:
            gang, number = place
            asyncio.get_running_loop().call_later(KUBELET_DELAY, gang.leave, number)


def _patched(pod: StoredObject | None) -> bool:
    return pod is not None and names.VERDICT in (pod.meta.get("annotations") or ())


async def main() -> None:
    """Serves until the parent goes."""
    gc.set_threshold(*SELDOM)
    async with ApiServer(garbage_collection=False) as server:
        its = ApiServerProcess(server)
        await command_loop.serve(
            {name: getattr(its, name) for name in ("install", "make", "who", "move", "drop", "usage")}
        )


if __name__ == "__main__":
    asyncio.run(main())
