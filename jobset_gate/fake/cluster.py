"""The embedded cluster: the played controllers and kubelets for any API server, and all of it with one in memory."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from jobset_gate.fake import jobset_crd
from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.clock import VirtualClock, VirtualLoop
from jobset_gate.fake.faults import Faults
from jobset_gate.fake.job_controller import JobController
from jobset_gate.fake.jobset_admission import JobSetAdmission
from jobset_gate.fake.jobset_controller import JobSetController
from jobset_gate.fake.kubelet import Behaviour, FakeNode, Kubelets
from jobset_gate.fake.objects import Clock
from jobset_gate.fake.tasks import BackgroundTasks
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client

ONE_NODE = (FakeNode("node-0", pods=100_000),)
CONNECTIONS = 64
SELDOM = (100_000, 50, 100)
"""Thresholds of Python's garbage collector, which finds next to nothing in all these objects."""


class Actors:
    """Everything but the API server, for one cluster or (with `namespace`) for one namespace of it.

    `async with Actors(access, ...) as actors`. Each controller has its own client, whose user agent is its name:
    `jobset-controller`, `job-controller`, `kubelets`, `simulation`. `with_jobs`: play the Job controller, too.
    The JobSet CRD and JobSet's webhooks are installed cluster-wide. `clean_up`: delete the webhooks and the nodes at
    the end; the CRD stays, since JobSets depend on it and kube-controller-manager's garbage collector takes half a
    minute to learn of a new one. `kubelets`: further settings of Kubelets. The failure of one controller ends nothing
    by itself: `until` raises it, and so does leaving.
    """

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock | None = None,
        namespace: str | None = None,
        nodes: Sequence[FakeNode] = ONE_NODE,
        behaviour: Behaviour | None = None,
        with_jobs: bool = False,
        clean_up: bool = True,
        pod_backoff: float = 10.0,
        **kubelets: Any,
    ) -> None:
        self.access = access
        self.clock = clock or current_clock()
        self._namespace = namespace
        self._clean_up = clean_up
        self._admission = JobSetAdmission(only=namespace)
        self._tasks = BackgroundTasks()
        self._stack = AsyncExitStack()
        self._clients = {name: Client(access, user_agent=name, connections=CONNECTIONS) for name in _NAMES}
        self.client = self._clients["simulation"]
        own = self._clients.__getitem__
        self.jobsets = JobSetController(own("jobset-controller"), self.clock, namespace)
        self.kubelets = Kubelets(own("kubelets"), self.clock, nodes, behaviour, namespace=namespace, **kubelets)
        self.jobs: JobController | None = None
        if with_jobs:
            self.jobs = JobController(own("job-controller"), self.clock, namespace, pod_backoff=pod_backoff)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for client in self._clients.values():
                await stack.enter_async_context(client)
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def until(self, what: Coroutine[Any, Any, object]) -> None:
        """Wait for `what`; the error of a controller that fails meanwhile is raised at once."""
        await self._tasks.until(what)

    async def stop_controllers(self) -> None:
        """Stop all of them; the API server stays as it is. Raises the error of one that failed."""
        await self._tasks.stop()

    async def _start(self, stack: AsyncExitStack) -> None:
        await self._install_jobset(stack)
        if self._clean_up:
            stack.push_async_callback(self.kubelets.clean_up)
        stack.push_async_callback(self._tasks.stop)
        started: list[tuple[str, JobSetController | JobController | Kubelets]] = [
            ("jobset-controller", self.jobsets),
            ("kubelets", self.kubelets),
        ]
        if self.jobs is not None:
            started.append(("job-controller", self.jobs))
        for name, one in started:
            self._tasks.start(name, one.run())
        for _, one in started:
            await self._tasks.until(one.wait_synced())

    async def _install_jobset(self, stack: AsyncExitStack) -> None:
        await jobset_crd.install(self.client)
        await self._admission.start()
        stack.push_async_callback(self._admission.stop)
        if self._clean_up:
            stack.push_async_callback(self._admission.uninstall, self.client)
        await self._admission.install(self.client)
        await self._admission.wait_in_force(self.client, self._namespace or "default")


_NAMES = ("simulation", "jobset-controller", "job-controller", "kubelets")


class EmbeddedCluster:
    """A whole cluster in this process: `async with EmbeddedCluster(...) as cluster`.

    The clock is the running loop's if that is virtual, else the wall's. `actors`: settings of Actors.
    """

    def __init__(self, *, clock: Clock | None = None, faults: Faults | None = None, **actors: Any) -> None:
        self.clock = clock or current_clock()
        self.faults = faults or Faults()
        self.server = ApiServer(faults=self.faults, clock=self.clock)
        self._thresholds = gc.get_threshold()
        self._settings = {"with_jobs": True, "clean_up": False, **actors}
        self._actors: Actors | None = None

    @property
    def access(self) -> Access:
        return Access(server=self.server.url)

    @property
    def actors(self) -> Actors:
        """Errors: RuntimeError before the cluster is started."""
        if self._actors is None:
            raise RuntimeError("the cluster has not been started")
        return self._actors

    @property
    def client(self) -> Client:
        """An open client, for the cluster's user."""
        return self.actors.client

    @property
    def kubelets(self) -> Kubelets:
        return self.actors.kubelets

    @property
    def jobsets(self) -> JobSetController:
        return self.actors.jobsets

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


def current_clock() -> Clock:
    """The running loop's clock if its time is virtual, else the wall's."""
    loop = asyncio.get_running_loop()
    return VirtualClock(loop) if isinstance(loop, VirtualLoop) else time.time
