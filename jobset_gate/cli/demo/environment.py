"""The embedded cluster with the shipped webhook and controller in this process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from controllers.manager import Manager, ManagerOptions
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.serve import registration
from jobset_gate.fake.cluster import EmbeddedCluster
from jobset_gate.kube.client import Client
from jobset_gate.settings import Barrier, Settings
from webhook.certs.serving import self_signed
from webhook.server import serve


@dataclass(frozen=True, slots=True)
class DemoEnvironment:
    """`background`: runs a coroutine until the environment is torn down, and gives its task."""

    cluster: EmbeddedCluster
    client: Client
    stack: contextlib.AsyncExitStack

    async def background(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        return await self.stack.enter_async_context(_running(work, name))

    async def start_jobset_gate(
        self, options: ManagerOptions, settings: Settings, ready: Callable[[Manager], Awaitable[object]]
    ) -> str:
        """Controller and webhook, registered; the webhook's URL. Errors: CommandError if the controller ends first."""
        manager = Manager(self.cluster.access, options)
        work = await self.background(manager.run(), "controller")
        await _unless_ended(ready(manager), work)
        if options.stream_port is not None:
            settings = settings.model_copy(update={"barrier": Barrier(stream_url=manager.stream_url)})
        bundle = self_signed()
        server = await serve(settings, tls=bundle.serving)
        self.stack.push_async_callback(server.stop)
        await registration.register(self.client, settings.groups, url=server.url, ca_bundle=bundle.ca_bundle)
        return server.url

    def stop_cluster_first(self) -> None:
        """At the end the played controllers stop before all that was started so far: a crowd of pods would delay it."""
        self.stack.push_async_callback(self.cluster.actors.stop_controllers)


@contextlib.asynccontextmanager
async def environment(cluster: EmbeddedCluster) -> AsyncIterator[DemoEnvironment]:
    """Torn down at the end whatever happens: no port stays open."""
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        client = await stack.enter_async_context(Client(cluster.access, user_agent="demo"))
        yield DemoEnvironment(cluster, client, stack)


@contextlib.asynccontextmanager
async def _running(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _unless_ended(wait: Awaitable[object], work: "asyncio.Task[None]") -> None:
    waiting = asyncio.ensure_future(wait)
    try:
        await asyncio.wait((waiting, work), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            raise CommandError("the controller did not start") from work.exception()
        await waiting
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
