"""The embedded cluster: the played controllers and kubelets for any API server, and all of it with one in memory."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate_demo.fake import jobset_crd
from jobset_gate_demo.fake.apiserver.server import ApiServer, RequestHooks
from jobset_gate_demo.fake.clock import current_clock
from jobset_gate_demo.fake.job_controller import JobController
from jobset_gate_demo.fake.jobset_controller import JobSetController
from jobset_gate_demo.fake.kubelet import Behaviour, FakeNode, Kubelets
from jobset_gate_demo.fake.tasks import BackgroundTasks

ONE_NODE = (FakeNode("node-0", pods=100_000),)
CONNECTIONS = 64
SELDOM = (100_000, 50, 100)
"""Thresholds of Python's garbage collector, which finds next to nothing in all these objects."""


class Actors:
    """Everything but the API server, for one cluster or (with `namespace`) for one namespace of it.

    `async with Actors(access, ...) as actors`. Each controller has its own client, whose user agent is its name:
    `jobset-controller`, `job-controller`, `kubelets`, `simulation`. `with_jobs`: play the Job controller, too.
    `clean_up`: delete the nodes at the end; the JobSet CRD stays. `kubelets`: further settings of Kubelets. The failure
    of one controller ends nothing at once: `until` raises it, and so does leaving.
    """

    def __init__(
        self,
        access: Access,
        *,
        namespace: str | None = None,
        nodes: Sequence[FakeNode] = ONE_NODE,
        behaviour: Behaviour | None = None,
        with_jobs: bool = False,
        clean_up: bool = True,
        **kubelets: Any,
    ) -> None:
        self.access = access
        self.clock = current_clock()
        self._clean_up = clean_up
        self._tasks = BackgroundTasks()
        self._stack = AsyncExitStack()
        self._clients = {name: Client(access, user_agent=name, connections=CONNECTIONS) for name in _NAMES}
        self.client = self._clients["simulation"]
        own = self._clients.__getitem__
        self.jobsets = JobSetController(own("jobset-controller"), self.clock, namespace)
        self.kubelets = Kubelets(own("kubelets"), self.clock, nodes, behaviour, namespace=namespace, **kubelets)
        self._started: dict[str, JobSetController | JobController | Kubelets] = {
            "jobset-controller": self.jobsets,
            "kubelets": self.kubelets,
        }
        if with_jobs:
            self._started["job-controller"] = JobController(own("job-controller"), self.clock, namespace)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for client in self._clients.values():
                await stack.enter_async_context(client)
            await jobset_crd.install(self.client)
            if self._clean_up:
                stack.push_async_callback(self.kubelets.clean_up)
            stack.push_async_callback(self._tasks.stop)
            for name, one in self._started.items():
                self._tasks.start(name, one.run())
            for one in self._started.values():
                await self._tasks.until(one.wait_synced())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def until(self, what: Awaitable[object]) -> None:
        """Wait for `what`; the error of a controller that fails meanwhile is raised at once."""
        await self._tasks.until(what)

    async def stop_controllers(self) -> None:
        """Stop all of them; the API server stays as it is. Raises the error of one that failed."""
        await self._tasks.stop()


_NAMES = ("simulation", "jobset-controller", "job-controller", "kubelets")


@asynccontextmanager
async def embedded_cluster(*, hooks: RequestHooks | None = None, **actors: Any) -> AsyncIterator[Actors]:
    """A whole cluster in this process. `actors`: settings of Actors."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        async with (
            ApiServer(hooks=hooks, clock=current_clock()) as server,
            Actors(Access(server=server.url), with_jobs=True, clean_up=False, **actors) as cluster,
        ):
            yield cluster
    finally:
        gc.set_threshold(*thresholds)
