"""The installed controllers, for scenarios that are alone: run otherwise, killed, or not there at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from e2e import gate, predicates
from e2e.nodes import Nodes
from e2e.timeouts import TIMEOUT
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import LEASES, PODS, Resource
from tests.fakes.object_view import ObjectView

Json = dict[str, Any]
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
REPLICAS: Final = 2
NO_PATCHES: Final = "--patch-concurrency=0"
NO_STREAM: Final = "--stream-host=127.0.0.1"
"""It listens where no pod can reach it."""
_KILL: Final = (
    "for it in /proc/[0-9]*; do grep -qzx HOSTNAME=$0 $it/environ && grep -qzx controller $it/cmdline"
    " && kill -KILL ${it#/proc/}; done 2>/dev/null; true"
)


class InstalledControllers:
    """Replicas of the Deployment; one leads."""

    def __init__(self, client: Client, nodes: Nodes) -> None:
        self._client, self._nodes = client, nodes

    async def pods(self) -> list[Json]:
        """Those that are not on their way out."""
        found = (await self._client.list(PODS, gate.NAMESPACE, label_selector=gate.CONTROLLERS))["items"]
        return [pod for pod in found if pod["metadata"].get("deletionTimestamp") is None]

    async def leader(self) -> str:
        """The pod that holds the Lease, "" if nobody does."""
        try:
            lease = await self._client.get(LEASES, names.LEASE, gate.NAMESPACE)
        except NotFound:
            return ""
        return str(lease["spec"].get("holderIdentity") or "").rpartition("_")[0]

    async def until_led(self, but: str = "") -> str:
        """Until one of the pods leads, another than `but`. Returns its name."""
        async with asyncio.timeout(TIMEOUT), ObjectView(self._client, LEASES, gate.NAMESPACE) as leases:
            while True:
                present = {predicates.name_of(pod) for pod in await self.pods()}
                found = await self.leader()
                if found in present - {but}:
                    return found
                before = leases.all()
                await leases.until(lambda now, before=before: now != before, TIMEOUT)  # type: ignore[misc]

    @asynccontextmanager
    async def running_with(self, *args: str) -> AsyncIterator[None]:
        """They run with these arguments added to their own meanwhile."""
        before = await self._client.get(DEPLOYMENTS, gate.CONTROLLER, gate.NAMESPACE)
        own = _container(before)["args"]
        try:
            await self._run([*own, *args])
            yield
        finally:
            await self._run(own)
            await self._give_back(before)

    @asynccontextmanager
    async def gone(self) -> AsyncIterator[None]:
        """Killed without a word, and none started again meanwhile."""
        there = await self.pods()
        before = await self._client.get(DEPLOYMENTS, gate.CONTROLLER, gate.NAMESPACE)
        await self._patch({"replicas": 0})
        try:
            await self.kill(*there)
            await self._until_pods(lambda pods: not pods)
            yield
        finally:
            await self._patch({"replicas": REPLICAS})
            await self._give_back(before)
            await self._rolled_out()

    async def kill(self, *pods: Json) -> None:
        """SIGKILL to their processes: no lease is given back, no connection closed in order."""
        for pod in pods:
            await self._nodes.run(pod["spec"]["nodeName"], "sh", "-c", _KILL, predicates.name_of(pod))

    async def remove(self, pod: Json) -> None:
        """Killed, and its pod with it: another takes its place under another name."""
        await self.kill(pod)
        meta = pod["metadata"]
        await self._client.delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"], grace_seconds=0)

    async def _run(self, args: list[str]) -> None:
        container = {"name": "controller", "args": args}
        await self._patch({"template": {"spec": {"containers": [container]}}})
        await self._rolled_out()

    async def _give_back(self, before: Json) -> None:
        """The fields to their owner: Helm's next upgrade would else find a change by another manager."""
        owners = {"metadata": {"managedFields": before["metadata"]["managedFields"]}}
        await self._client.patch(DEPLOYMENTS, gate.CONTROLLER, gate.NAMESPACE, body=owners, patch=PatchType.MERGE)

    async def _patch(self, spec: Json) -> None:
        await self._client.patch(
            DEPLOYMENTS, gate.CONTROLLER, gate.NAMESPACE, body={"spec": spec}, patch=PatchType.STRATEGIC
        )

    async def _rolled_out(self) -> None:
        """Until only the new ones are there and one of them leads."""

        def done(found: list[Json]) -> bool:
            (it,) = [one for one in found if predicates.name_of(one) == gate.CONTROLLER]
            status, wanted = it["status"], it["spec"]["replicas"]
            counts = (status.get("updatedReplicas"), status.get("replicas"), status.get("readyReplicas"))
            return status.get("observedGeneration") == it["metadata"]["generation"] and counts == (wanted,) * 3

        async with ObjectView(self._client, DEPLOYMENTS, gate.NAMESPACE) as deployments:
            await deployments.until(done, TIMEOUT)
        await self._until_pods(lambda pods: len(pods) == REPLICAS)
        await self.until_led()

    async def _until_pods(self, holds: Any) -> None:
        async with ObjectView(self._client, PODS, gate.NAMESPACE, label_selector=gate.CONTROLLERS) as pods:
            await pods.until(holds, TIMEOUT)


def _container(deployment: Json) -> Json:
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)
