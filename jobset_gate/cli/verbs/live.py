"""The gangs of a namespace, live: JobSets, Jobs, pods and ConfigMaps, watched and joined as the controller does it."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

from jobset_gate import names, read, wire
from jobset_gate.cli.exits import Failed
from jobset_gate.cli.looking.rights import Rights, refused
from jobset_gate.kube.client import Client
from jobset_gate.kube.informer import Informer
from jobset_gate.kube.problems import Kind, Problem
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.model import GangSeen, GateSeen, JobSeen, JobSetSeen, PodSeen

GATED = f"{names.GATED}={names.GATED_VALUE}"
GATES = f"{names.GATE}={names.GATE_VALUE}"
_LOST = {
    JOBS: "what has finished is not known",
    PODS: "how many have started is not known",
    CONFIGMAPS: "what was decided is known from the JobSet's condition only",
}
_VERBS = {Kind.LIST_FAILED: "list", Kind.WATCH_FAILED: "watch"}
_ABSENT, _FORBIDDEN = "404 ", "403 "

T = TypeVar("T", JobSeen, PodSeen)


class Live:
    """`async with Live(...) as live`; `blind` where pods or Jobs may not be watched, so that nothing can be counted."""

    def __init__(self, client: Client, namespace: str | None, rights: Rights) -> None:
        self._client, self._namespace, self._rights = client, namespace, rights
        self._changed = asyncio.Event()
        self._failed = ""
        self._given_up: set[Resource] = set()
        self._jobsets: Informer[wire.JobSet, JobSetSeen] = self._informer(JOBSETS, wire.JobSet, read.jobset)
        self._jobs: Informer[wire.Job, JobSeen] = self._informer(JOBS, wire.Job, read.job, GATED)
        self._pods: Informer[wire.Pod, PodSeen] = self._informer(PODS, wire.Pod, read.pod, GATED)
        self._gates: Informer[wire.ConfigMap, GateSeen] = self._informer(CONFIGMAPS, wire.ConfigMap, read.gate, GATES)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for informer in self._all():
            synced = asyncio.create_task(informer.wait_synced())
            synced.add_done_callback(lambda _: self._changed.set())
            self._tasks += [asyncio.create_task(informer.run()), synced]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def blind(self) -> bool:
        """Whether nothing can be counted."""
        return bool(self._given_up & {PODS, JOBS})

    async def ready(self) -> None:
        """Once everything is there that may be read. Raises Failed where JobSets may not."""
        while not all(it.has_synced or it.resource in self._given_up for it in self._all()):
            await self.change()

    async def change(self) -> None:
        """Until anything is different. Raises Failed where JobSets may not be watched."""
        await self._changed.wait()
        self._changed.clear()
        if self._failed:
            raise Failed(self._failed)

    def now(self) -> float:
        """The time, in seconds since the epoch."""
        return time.time()

    def gangs(self) -> list[GangSeen]:
        """By namespace and name."""
        jobs, pods = _by_gang(self._jobs.cache.values()), _by_gang(self._pods.cache.values())
        return [
            GangSeen(
                jobset=jobset,
                jobs=tuple(jobs[namespace, name]),
                pods=tuple(pods[namespace, name]),
                gate=self._gates.cache.get((namespace, names.config_map_name(name))),
            )
            for (namespace, name), jobset in sorted(self._jobsets.cache.items())
        ]

    def _all(self) -> tuple[Informer[Any, Any], ...]:
        return (self._jobsets, self._jobs, self._pods, self._gates)

    def _informer(
        self, resource: Resource, shape: type[Any], convert: Callable[[Any], Any], labels: str = ""
    ) -> Informer[Any, Any]:
        return Informer(
            self._client,
            resource,
            wire=shape,
            convert=convert,
            handler=lambda _: self._changed.set(),
            namespace=self._namespace,
            label_selector=labels,
            on_problem=self._on_problem,
        )

    def _on_problem(self, problem: Problem) -> None:
        verb = _VERBS.get(problem.kind)
        if verb is None:
            return
        if problem.resource == JOBSETS:
            if problem.detail.startswith(_ABSENT):
                self._failed = "the cluster knows no JobSets: their CRD is not installed"
            if problem.detail.startswith(_FORBIDDEN):
                self._failed = refused(verb, JOBSETS, self._namespace)
        elif problem.detail.startswith(_FORBIDDEN):
            self._given_up.add(problem.resource)
            self._rights.lacks(verb, problem.resource, self._namespace, _LOST[problem.resource])
        self._changed.set()


def _by_gang(seen: Iterable[T]) -> defaultdict[tuple[str, str], list[T]]:
    found: defaultdict[tuple[str, str], list[T]] = defaultdict(list)
    for one in seen:
        found[one.namespace, one.gang].append(one)
    return found
