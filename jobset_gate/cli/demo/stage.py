"""The demo's stage: the embedded cluster with the real door and the real keepers in this process."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from controllers.manager import Manager, Options
from jobset_gate.cli.demo.scenario import BEHAVIOUR, NAMESPACE, STUCK, STUCK_NODES, TRAIN, TROUBLES
from jobset_gate.cli.demo.watching import Watcher
from jobset_gate.cli.exits import Failed
from jobset_gate.cli.serving import registration
from jobset_gate.kube import crd
from jobset_gate.kube.client import Client
from jobset_gate.settings import Settings
from jobset_gate.sim.cluster import EmbeddedCluster
from webhook import selfsigned
from webhook.server import serve


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything set up."""

    cluster: EmbeddedCluster
    manager: Manager
    watcher: Watcher
    door: str
    """The webhook's URL."""


@contextlib.asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Set up, and taken down at the end whatever happens: no port stays open."""
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(EmbeddedCluster(nodes=STUCK_NODES, behaviour=BEHAVIOUR))
        for trouble in TROUBLES:
            cluster.kubelets.trouble(trouble)
        client = await stack.enter_async_context(Client(cluster.access, user_agent="demo"))
        await crd.extend(client)
        bundle = selfsigned.make()
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobset-gate-"))
        door = await serve(Settings(), tls=bundle.write(Path(folder)))
        stack.push_async_callback(door.stop)
        await registration.register(client, url=door.url, ca_bundle=bundle.ca_bundle)
        manager = Manager(cluster.access, Options(namespace=NAMESPACE, identity="demo", port=0))
        await stack.enter_async_context(_kept_running(manager))
        watcher = await stack.enter_async_context(Watcher(client, (TRAIN, STUCK), NAMESPACE))
        yield Stage(cluster, manager, watcher, door.url)


@contextlib.asynccontextmanager
async def _kept_running(manager: Manager) -> AsyncIterator[None]:
    """The controller, leading. If it ends by itself, so does the demo."""
    work = asyncio.create_task(manager.run(), name="controller")
    leading = asyncio.create_task(manager.leading.wait())
    try:
        await asyncio.wait((work, leading), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            raise Failed("the controller did not start") from work.exception()
        yield
    finally:
        leading.cancel()
        work.cancel()
        await asyncio.gather(work, leading, return_exceptions=True)
