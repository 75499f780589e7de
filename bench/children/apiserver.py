"""The embedded API server in a process of its own, with gangs that appear and move at a word from the benchmark."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

from bench.children import talk
from bench.children.talk import Json
from bench.gangs import Plan, Pods, Step, job_as_stored, jobs, jobset, new_uid
from jobset_gate import names
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS
from jobset_gate.sim import jobset_crd
from jobset_gate.sim.apiserver import ApiServer
from jobset_gate.sim.objects import stamp

BEAT = 0.01
"""Seconds between two batches of changes."""


class Gang:
    """A gang in the store, without the detour over HTTP. Its pods are numbered through all its Jobs."""

    def __init__(self, server: ApiServer, plan: Plan, rng: random.Random) -> None:
        self._store, self._plan, self._rng = server.store, plan, rng
        self._uids = [new_uid(rng) for _ in range(plan.size)]
        self._pods: list[Pods] = []

    def make(self, step: Step) -> None:
        now = time.time()
        stored = jobset(self._plan)
        stored["metadata"] |= {"uid": new_uid(self._rng), "creationTimestamp": stamp(now), "generation": 1}
        self._store.put(JOBSETS, stored)
        for job in jobs(stored):
            made = self._store.put(JOBS, job_as_stored(job, self._rng, now))
            self._pods.append(Pods(made, now, lean=self._plan.lean))
        for number in range(self._plan.size):
            self.move(number, step)

    def move(self, number: int, step: Step) -> None:
        job, index = divmod(number, self._plan.pods)
        pods = self._pods[job]
        pod = pods.stored(index, step, self._uids[number])
        stands = self._store.get(PODS, pods.name(index), self._plan.namespace)
        if stands is not None:  # with what the controller has written on it
            pod["metadata"]["annotations"] |= stands["metadata"]["annotations"]
        self._store.put(PODS, pod)

    def drop(self) -> None:
        """First the JobSet, as a user would."""
        namespace = self._plan.namespace
        self._store.drop(JOBSETS, self._plan.name, namespace)
        for number in range(self._plan.size):
            job, index = divmod(number, self._plan.pods)
            self._store.drop(PODS, self._pods[job].name(index), namespace)
        for job in range(self._plan.jobs):
            self._store.drop(JOBS, self._pods[job].job, namespace)
        gate = names.config_map_name(self._plan.name)
        if self._store.get(CONFIGMAPS, gate, namespace) is not None:
            self._store.drop(CONFIGMAPS, gate, namespace)


class Server:
    """The commands."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._rng = random.Random(498)  # noqa: S311 - the same gangs in every run
        self._gangs: dict[str, Gang] = {}

    async def install(self) -> Json:
        """JobSet's CRD."""
        async with Client(Access(server=self._server.url)) as client:
            await jobset_crd.install(client)
        return {"url": self._server.url}

    async def make(self, plan: Json, step: str) -> Json:
        wanted = Plan(**plan)
        gang = self._gangs[wanted.name] = Gang(self._server, wanted, self._rng)
        gang.make(Step(step))
        return {}

    async def move(self, gangs: list[str], first: int, last: int, step: str, per_second: float) -> Json:
        """Pods `first` to `last` - 1 of each gang, gang by gang taking turns, evenly at that rate."""
        moves: Iterator[tuple[Gang, int]] = (
            (self._gangs[name], number) for number in range(first, last) for name in gangs
        )
        start, done = time.perf_counter(), 0
        for gang, number in moves:
            gang.move(number, Step(step))
            done += 1
            ahead = done / per_second - (time.perf_counter() - start)
            if ahead > BEAT:
                await asyncio.sleep(ahead)
            elif done % 20 == 0:
                await asyncio.sleep(0)  # watches are served meanwhile
        return {"moves": done, "seconds": time.perf_counter() - start}

    async def drop(self, gang: str) -> Json:
        self._gangs.pop(gang).drop()
        return {}

    async def usage(self) -> Json:
        return talk.usage()


async def main() -> None:
    """Serves until the parent goes."""
    async with ApiServer(garbage_collection=False) as server:
        its = Server(server)
        await talk.obey(
            {"install": its.install, "make": its.make, "move": its.move, "drop": its.drop, "usage": its.usage}
        )


if __name__ == "__main__":
    asyncio.run(main())
