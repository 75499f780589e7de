"""The demo's stage: the embedded cluster with the real door and the real keepers in this process."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from controllers.barrier import crd_patcher
from controllers.manager import Manager, ManagerOptions
from jobset_gate.cli.demo.gang_scenario import BEHAVIOUR, NAMESPACE, STUCK, STUCK_NODES, TRAIN, TROUBLES
from jobset_gate.cli.demo.gang_view import GangWatcher
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.serve import process, registration
from jobset_gate.fake.cluster import EmbeddedCluster
from jobset_gate.kube.client import Client
from jobset_gate.settings import Barrier, Settings
from webhook.certs import self_signed
from webhook.server import serve


@dataclass(frozen=True, slots=True)
class GangEnvironment:
    """Everything set up."""

    cluster: EmbeddedCluster
    manager: Manager
    watcher: GangWatcher
    door: str
    """The webhook's URL."""


@contextlib.asynccontextmanager
async def gang_environment() -> AsyncIterator[GangEnvironment]:
    """Set up, and taken down at the end whatever happens: no port stays open."""
    process.raise_open_files_limit()  # a crowd of barriers holds its requests open, at both ends in this process
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(EmbeddedCluster(nodes=STUCK_NODES, behaviour=BEHAVIOUR))
        for trouble in TROUBLES:
            cluster.kubelets.inject_fault(trouble)
        client = await stack.enter_async_context(Client(cluster.access, user_agent="demo"))
        await crd_patcher.extend_crd(client)
        manager = Manager(cluster.access, ManagerOptions(namespace=NAMESPACE, identity="demo", port=0, stream_port=0))
        await stack.enter_async_context(_kept_running(manager))
        bundle = self_signed.make()
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobset-gate-"))
        told = Settings(barrier=Barrier(stream_url=manager.stream_url))
        door = await serve(told, tls=bundle.write(Path(folder)))
        stack.push_async_callback(door.stop)
        await registration.register(client, told.groups, url=door.url, ca_bundle=bundle.ca_bundle)
        watcher = await stack.enter_async_context(GangWatcher(client, (TRAIN, STUCK), NAMESPACE))
        # First of all the others come to rest: what a crowd of pods still has to say would delay everything else.
        stack.push_async_callback(cluster.actors.stop_controllers)
        yield GangEnvironment(cluster, manager, watcher, door.url)


@contextlib.asynccontextmanager
async def _kept_running(manager: Manager) -> AsyncIterator[None]:
    """The controller, leading and with its gate stream open. If it ends by itself, so does the demo."""
    work = asyncio.create_task(manager.run(), name="controller")
    streaming = asyncio.create_task(manager.streaming.wait())
    try:
        await asyncio.wait((work, streaming), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            raise CommandError("the controller did not start") from work.exception()
        yield
    finally:
        streaming.cancel()
        work.cancel()
        await asyncio.gather(work, streaming, return_exceptions=True)
