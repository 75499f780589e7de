"""Puts the simulation together: the actors alone, for any API server, and the whole embedded cluster."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Self

from jobset_gate.fake import jobset_crd
from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.clock import VirtualClock, VirtualLoop
from jobset_gate.fake.faults import Faults
from jobset_gate.fake.job.controller import JobController
from jobset_gate.fake.jobset.admission import JobSetAdmission
from jobset_gate.fake.jobset.controller import JobSetController
from jobset_gate.fake.kubelet import Behaviour, FakeNode, Kubelets
from jobset_gate.fake.objects import Clock
from jobset_gate.fake.tasks import BackgroundTasks
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client

ONE_NODE = (FakeNode("node-0", pods=100_000),)
CONNECTIONS = 64
SELDOM = (100_000, 50, 100)  # thresholds of Python's collector, which finds next to nothing in all these objects


class Actors:
    """Everything but the API server, for one cluster or (with `namespace`) for one namespace of it.

    `async with Actors(access, ...) as actors`. Each actor has its own client, whose user agent is its name:
    `jobset-controller`, `job-controller`, `kubelets`, `simulation`. `with_jobs`: play the Job controller too.
    `install`: the JobSet CRD and JobSet's webhooks, which are cluster-wide. `clean_up`: take the webhooks and the nodes
    away again at the end; the CRD stays, since JobSets depend on it and kube-controller-manager's garbage collector
    takes half a minute to learn of a new one. An actor that fails ends nothing by itself: `until` raises its error, and
    so does leaving.
    """

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock | None = None,
        namespace: str | None = None,
        nodes: Sequence[FakeNode] = ONE_NODE,
        behaviour: Behaviour | None = None,
        reaction_seconds: float = 0.0,
        with_jobs: bool = False,
        install: bool = True,
        clean_up: bool = True,
        heartbeat: bool = False,
        autoscaler: bool = False,
        schedule: bool = True,
        pod_backoff: float = 10.0,
        seed: int = 0,
    ) -> None:
        self.access = access
        self.clock = clock or current_clock()
        self.namespace = namespace
        self.admission = JobSetAdmission()
        self._install = install
        self._clean_up = clean_up
        self._crew = BackgroundTasks()
        self._stack = AsyncExitStack()
        self.client = _client(access, "simulation")
        self._clients = {name: _client(access, name) for name in ("jobset-controller", "job-controller", "kubelets")}
        self.jobsets = JobSetController(
            self._clients["jobset-controller"], self.clock, reaction_seconds=reaction_seconds, namespace=namespace
        )
        self.kubelets = Kubelets(
            self._clients["kubelets"],
            self.clock,
            nodes,
            behaviour,
            namespace=namespace,
            heartbeat=heartbeat,
            autoscaler=autoscaler,
            schedule=schedule,
            seed=seed,
        )
        self.jobs: JobController | None = None
        if with_jobs:
            self.jobs = JobController(
                self._clients["job-controller"], self.clock, pod_backoff=pod_backoff, namespace=namespace
            )

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for client in (self.client, *self._clients.values()):
                await stack.enter_async_context(client)
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def until(self, what: Coroutine[Any, Any, object]) -> None:
        """Wait for `what`; the error of an actor that fails meanwhile is raised at once."""
        await self._crew.until(what)

    async def stop_controllers(self) -> None:
        """All actors stop; the API server stays as it is. Raises the error of one that failed."""
        await self._crew.stop()

    async def _start(self, stack: AsyncExitStack) -> None:
        if self._install:
            await self._install_jobset(stack)
        if self._clean_up:
            stack.push_async_callback(self.kubelets.clean_up)
        stack.push_async_callback(self._crew.stop)
        actors: list[tuple[str, JobSetController | JobController | Kubelets]] = [
            ("jobset-controller", self.jobsets),
            ("kubelets", self.kubelets),
        ]
        if self.jobs is not None:
            actors.append(("job-controller", self.jobs))
        for name, actor in actors:
            self._crew.start(name, actor.run())
        await self._crew.until(_all(actor.wait_synced for _, actor in actors))

    async def _install_jobset(self, stack: AsyncExitStack) -> None:
        await jobset_crd.install(self.client)
        await self.admission.start()
        stack.push_async_callback(self.admission.stop)
        if self._clean_up:
            stack.push_async_callback(self.admission.uninstall, self.client)
        await self.admission.install(self.client)
        await self.admission.wait_in_force(self.client, self.namespace or "default")


class EmbeddedCluster:
    """A whole cluster in this process: `async with EmbeddedCluster(...) as cluster`.

    The clock is the running loop's if that is virtual, else the wall's. What Actors takes may be given here, too.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        faults: Faults | None = None,
        nodes: Sequence[FakeNode] = ONE_NODE,
        behaviour: Behaviour | None = None,
        **actors: Any,
    ) -> None:
        self.clock = clock or current_clock()
        self.faults = faults or Faults()
        self.server = ApiServer(faults=self.faults, clock=self.clock)
        self._thresholds = gc.get_threshold()
        self._settings = {"nodes": nodes, "behaviour": behaviour, "with_jobs": True, "clean_up": False, **actors}
        self._actors: Actors | None = None

    @property
    def access(self) -> Access:
        return Access(server=self.server.url)

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def actors(self) -> Actors:
        """Errors: RuntimeError before the cluster is started."""
        if self._actors is None:
            raise RuntimeError("the cluster has not been started")
        return self._actors

    @property
    def client(self) -> Client:
        """One that is open, for whoever uses the cluster."""
        return self.actors.client

    @property
    def kubelets(self) -> Kubelets:
        return self.actors.kubelets

    @property
    def jobsets(self) -> JobSetController:
        return self.actors.jobsets

    @property
    def jobs(self) -> JobController:
        jobs = self.actors.jobs
        assert jobs is not None  # noqa: S101  # made with_jobs
        return jobs

    async def __aenter__(self) -> Self:
        gc.set_threshold(*SELDOM)
        try:
            await self.server.start()
            self._actors = await Actors(self.access, clock=self.clock, **self._settings).__aenter__()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.actors.__aexit__(None, None, None)
        finally:
            await self._stop()

    async def _stop(self) -> None:
        await self.server.stop()
        gc.set_threshold(*self._thresholds)

    async def until(self, what: Coroutine[Any, Any, object]) -> None:
        """As Actors.until."""
        await self.actors.until(what)


def actors_for(access: Access, **settings: Any) -> Actors:
    """The actors for a real control plane, which has a Job controller of its own; see Actors for the settings."""
    return Actors(access, **{"with_jobs": False, "heartbeat": True, **settings})


def current_clock() -> Clock:
    """The running loop's clock if its time is virtual, else the wall's."""
    loop = asyncio.get_running_loop()
    return VirtualClock(loop) if isinstance(loop, VirtualLoop) else time.time


def spread(
    count: int, pods: int = 110, *, name: str = "node", every: float = 0.0, first: float = 0.0
) -> list[FakeNode]:
    """`count` nodes of that size; the first joins after `first` seconds, each next one `every` seconds later."""
    return [replace(FakeNode(f"{name}-{number}", pods), ready_at=first + every * number) for number in range(count)]


def _client(access: Access, name: str) -> Client:
    return Client(access, user_agent=name, connections=CONNECTIONS)


async def _all(waits: Iterable[Callable[[], Awaitable[None]]]) -> None:
    await asyncio.gather(*(wait() for wait in waits))
