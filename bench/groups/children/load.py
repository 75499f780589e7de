"""Creates the pods: first all but one of each group, then, at the word of the parent, the last ones."""

from __future__ import annotations

import asyncio
import time

from bench.children import command_loop
from bench.children.command_loop import Json
from bench.groups import plan
from bench.groups.plan import LoadShape, Placer
from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODGROUPS_PLUGINS, PODS
from jobset_gate.runtime.decoder import PartialObjectMetadata

AT_ONCE = 64


class PodLoader:
    """The commands."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._client: Client | None = None

    async def run(self, kubeconfig: str) -> Json:
        self._client = Client(await from_kubeconfig(kubeconfig), user_agent="loader", connections=AT_ONCE)
        await self._client.__aenter__()
        return {}

    async def begin(self, namespace: str, way: str, groups: int, pods: int) -> Json:
        """PodGroups where the way has them, and all members but the last of each group."""
        if Placer(way) is Placer.OURS:
            bodies = [plan.pod_group(group, LoadShape(groups, pods)) for group in range(groups)]
            await asyncio.gather(*(self._its.create(PODGROUPS_PLUGINS, body, namespace) for body in bodies))
        began = time.time()
        await self._create(
            namespace, [plan.pod(Placer(way), group, one) for one in range(pods - 1) for group in range(groups)]
        )
        return {"began": began, "seconds": time.time() - began}

    async def finish(self, namespace: str, way: str, groups: int, pods: int) -> Json:
        """The last members: when the creation of each was answered, in the order of the groups."""
        return {
            "at": await self._create(namespace, [plan.pod(Placer(way), group, pods - 1) for group in range(groups)])
        }

    async def _create(self, namespace: str, bodies: list[Json]) -> list[float]:
        async def one(body: Json) -> float:
            async with self._turn:
                await self._its.create(PODS, body, namespace, type=PartialObjectMetadata)
                return time.time()

        return list(await asyncio.gather(*map(one, bodies)))

    async def stop(self) -> None:
        if self._client is not None:
            await self._client.__aexit__(None, None, None)

    @property
    def _its(self) -> Client:
        assert self._client is not None, "it does not run"
        return self._client


async def main() -> None:
    """Serves until the parent goes."""
    its = PodLoader()
    await command_loop.serve({"run": its.run, "begin": its.begin, "finish": its.finish})
    await its.stop()


if __name__ == "__main__":
    asyncio.run(main())
