"""Where gangs of the latency benchmark live: the embedded API server in a child process, or a real control plane."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import msgspec

from bench.child import Child
from bench.gangs import GangPlan, GangPods, PodStep, jobs, workload
from controllers.barrier import crd_patcher
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS
from jobset_gate.runtime.decoder import PartialObjectMetadata
from jobset_gate.sources.table import POD_SOURCES
from jobset_gate_demo.fake import jobset_crd
from jobset_gate_demo.fake.objects import Json

AT_ONCE = 32
"""Requests under way while a gang is made on a real API server."""


class BenchCluster(Protocol):
    """Gangs can be made there, their pods can start, and a controller can be sent there."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def reach(self) -> dict[str, Any]:
        """What the controller's process needs to know."""

    async def make(self, plan: GangPlan) -> None:
        """The JobSet or Job, its Jobs and its pods; none has started."""

    async def start(self, plan: GangPlan, first: int, last: int) -> None:
        """The barriers of pods `first` to `last` - 1 of the gang run from now on."""

    async def drop(self, plan: GangPlan) -> None:
        """The JobSet or Job goes, as far as the controller is concerned; pods that are gated alone may stay."""


class EmbeddedBenchCluster:
    """Gangs are put into the store directly: only the watch and the controller's writes go over HTTP."""

    name = "embedded"
    namespace = "default"
    per_second = 5000.0

    def __init__(self, server: Child, url: str) -> None:
        self._server = server
        self.reach: dict[str, Any] = {"server": url, "namespace": self.namespace}

    async def make(self, plan: GangPlan) -> None:
        await self._server.call("make", plan=asdict(plan), step=PodStep.PULLING)

    async def start(self, plan: GangPlan, first: int, last: int) -> None:
        await self._server.call(
            "move", gangs=[plan.name], first=first, last=last, step=PodStep.HELD, per_second=self.per_second
        )

    async def drop(self, plan: GangPlan) -> None:
        await self._server.call("drop", gang=plan.name)


class RealBenchCluster:
    """Everything by HTTP. Jobs and pods are made by hand, so that nobody's controller is measured but ours."""

    name = "real"

    def __init__(self, client: Client, kubeconfig: Path, namespace: str) -> None:
        self._client, self.namespace = client, namespace
        self._pods: list[GangPods] = []
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._uids: dict[str, str] = {}
        self.reach: dict[str, Any] = {"kubeconfig": str(kubeconfig), "namespace": namespace, "only": namespace}

    async def install(self) -> None:
        """JobSet's CRD, with our field in it."""
        await jobset_crd.install(self._client)
        await crd_patcher.extend_crd(self._client)

    async def make(self, plan: GangPlan) -> None:
        made = [workload(plan)]
        if plan.source not in POD_SOURCES:
            made = [await self._client.create(plan.resource, made[0])]
        if plan.resource == JOBSETS:
            made = [await self._client.create(JOBS, _not_yours(job)) for job in jobs(made[0])]
        self._pods = [GangPods(job, time.time(), lean=plan.lean, source=plan.source) for job in made]
        await self._each(plan, range(plan.size), self._create)

    async def start(self, plan: GangPlan, first: int, last: int) -> None:
        await self._each(plan, range(first, last), self._run)

    async def drop(self, plan: GangPlan) -> None:
        if plan.source not in POD_SOURCES:
            await self._client.delete(plan.resource, plan.name, plan.namespace)

    async def _each(
        self, plan: GangPlan, numbers: Iterable[int], do: Callable[[GangPods, int], Awaitable[None]]
    ) -> None:
        async def one(number: int) -> None:
            job, index = divmod(number, plan.pods)
            async with self._turn:
                await do(self._pods[job], index)

        async with asyncio.TaskGroup() as tasks:
            for number in numbers:
                tasks.create_task(one(number))

    async def _create(self, pods: GangPods, index: int) -> None:
        made = await self._client.create(PODS, pods.fresh(index), self.namespace, type=PartialObjectMetadata)
        self._uids[made.metadata.name] = made.metadata.uid

    async def _run(self, pods: GangPods, index: int) -> None:
        name = pods.name(index)
        status = {"status": pods.status(index, PodStep.HELD, self._uids[name])}
        await self._client.patch(
            PODS, name, self.namespace, body=status, patch=PatchType.MERGE, subresource="status", type=msgspec.Raw
        )


def _not_yours(job: Json) -> Json:
    """A Job that the Job controller, should one run there, leaves alone."""
    return {**job, "spec": {**job["spec"], "managedBy": "example.com/benchmark"}}
