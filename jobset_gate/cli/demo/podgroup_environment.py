"""The stage: an embedded cluster of its own for each part, and for the second one the real door and keepers."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.cli.demo.podgroup_scenario import BEHAVIOUR, GANGS, NAMESPACE, PodGroupPlan
from jobset_gate.cli.demo.podgroup_view import PodGroupWatcher
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.serve import registration
from jobset_gate.fake.cluster import EmbeddedCluster
from jobset_gate.fake.kubelet import PodMatch
from jobset_gate.fake.view import ObjectView
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS, POD_GROUPS, PODS
from jobset_gate.objects.unstructured import as_list, nested
from jobset_gate.settings import Settings
from webhook.certs import self_signed
from webhook.server import serve

_PATIENCE = 60.0
_POD_GROUPS = POD_GROUPS[names.PLUGINS_GROUP]
_CRD = f"{_POD_GROUPS.plural}.{_POD_GROUPS.group}"


@dataclass(frozen=True, slots=True)
class PodGroupEnvironment:
    """Everything set up."""

    cluster: EmbeddedCluster
    client: Client
    watcher: PodGroupWatcher
    plan: PodGroupPlan
    door: str
    """The webhook's URL; "" where there is none."""

    async def create_pods(self) -> None:
        """One after the other, as the gangs' creators would take turns."""
        for pod in self.plan.pods():
            await self.client.create(PODS, pod, NAMESPACE)

    async def play_work(self) -> None:
        """A gang works once all of its pods run, and then they end. For ever; nobody works with fewer."""
        await asyncio.gather(*(self._work(gang) for gang in GANGS))

    async def _work(self, gang: str) -> None:
        if await self.watcher.until(lambda: self.watcher.row(gang).complete, float("inf")):
            await asyncio.sleep(self.plan.work)
            self.cluster.kubelets.finish(PodMatch(f"{gang}-*"))


@contextlib.asynccontextmanager
async def pod_group_environment(plan: PodGroupPlan, *, ours: bool) -> AsyncIterator[PodGroupEnvironment]:
    """Set up, and taken down at the end whatever happens. `ours`: with webhook and controller, and PodGroups."""
    async with contextlib.AsyncExitStack() as stack:
        cluster = EmbeddedCluster(nodes=plan.machines, behaviour=BEHAVIOUR)
        await stack.enter_async_context(cluster)
        client = await stack.enter_async_context(Client(cluster.access, user_agent="demo"))
        door = ""
        if ours:
            door = await _with_us(cluster, client, stack)
            for gang in GANGS:
                await client.create(_POD_GROUPS, plan.pod_group(gang), NAMESPACE)
        pods = await stack.enter_async_context(ObjectView(client, PODS, NAMESPACE))
        groups = await stack.enter_async_context(ObjectView(client, _POD_GROUPS, NAMESPACE)) if ours else None
        made = PodGroupEnvironment(cluster, client, PodGroupWatcher(pods, groups, plan.size), plan, door)
        await stack.enter_async_context(_running(made.play_work(), "work"))
        stack.push_async_callback(cluster.actors.stop_controllers)
        yield made


async def _with_us(cluster: EmbeddedCluster, client: Client, stack: contextlib.AsyncExitStack) -> str:
    """The webhook registered, the controller leading, its CRDs in place. Gives the webhook's URL."""
    settings = Settings()
    options = ManagerOptions(namespace=NAMESPACE, identity="demo", clock=cluster.clock, groups=settings.groups)
    manager = Manager(cluster.access, options)
    work = await stack.enter_async_context(_running(manager.run(), "controller"))
    await _unless_ended(manager.leading.wait(), work)
    async with ObjectView(client, CRDS) as crds:
        await _unless_ended(crds.until(_established, _PATIENCE), work)
    bundle = self_signed.make()
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobset-gate-"))
    door = await serve(settings, tls=bundle.write(Path(folder)))
    stack.push_async_callback(door.stop)
    await registration.register(client, settings.groups, url=door.url, ca_bundle=bundle.ca_bundle)
    return door.url


def _established(crds: list[dict[str, Any]]) -> bool:
    conditions = [as_list(nested(it, "status", "conditions")) for it in crds if it["metadata"]["name"] == _CRD]
    return any(
        nested(it, "type") == "Established" and nested(it, "status") == "True" for each in conditions for it in each
    )


@contextlib.asynccontextmanager
async def _running(work: Any, name: str) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _unless_ended(wait: Any, work: "asyncio.Task[None]") -> None:
    waiting = asyncio.ensure_future(wait)
    await asyncio.wait((waiting, work), return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        raise CommandError("the controller did not start") from work.exception()
    await waiting
