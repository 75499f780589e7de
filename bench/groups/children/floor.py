"""The floor: counts the pods of each group, and removes the gates of one that is complete. Nothing else."""

from __future__ import annotations

import asyncio

import msgspec

from bench.children import command_loop
from bench.children.command_loop import Json
from bench.groups.children import pods
from bench.groups.children.pods import BenchPod
from bench.groups.plan import FLOOR_GATE
from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import PODS

AT_ONCE = 32
"""Patches under way, as many as jobset-gate has by default."""


class FloorController:
    """The commands."""

    def __init__(self) -> None:
        self._work: asyncio.Task[None] | None = None

    async def run(self, kubeconfig: str, namespace: str, quorum: int) -> Json:
        ready = asyncio.Event()
        self._work = asyncio.create_task(self._loop(kubeconfig, namespace, quorum, ready))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait((waiting, self._work), return_when=asyncio.FIRST_COMPLETED)
        if self._work.done():
            self._work.result()
        return {}

    async def figures(self) -> Json:
        """What it has used; raises why it ended, if it has."""
        assert self._work is not None, "it does not run"
        if self._work.done():
            self._work.result()
        return command_loop.usage()

    async def _loop(self, kubeconfig: str, namespace: str, quorum: int, ready: asyncio.Event) -> None:
        held: dict[str, list[BenchPod]] = {}
        queue: asyncio.Queue[BenchPod] = asyncio.Queue()
        async with (
            Client(await from_kubeconfig(kubeconfig), user_agent="floor", connections=AT_ONCE + 1) as client,
            asyncio.TaskGroup() as tasks,
        ):
            version = await pods.begin(client, namespace)
            for _ in range(AT_ONCE):
                tasks.create_task(_patch(client, namespace, queue))
            ready.set()
            async for pod in pods.follow(client, namespace, version):
                members = held.setdefault(pod.group, [])
                members.append(pod)
                if len(members) == quorum:
                    for member in members:
                        queue.put_nowait(member)


async def _patch(client: Client, namespace: str, queue: asyncio.Queue[BenchPod]) -> None:
    spec = {"schedulingGates": [{"$patch": "delete", "name": FLOOR_GATE}]}
    while True:
        meta = (await queue.get()).metadata
        body = {"metadata": {"uid": meta.uid}, "spec": spec}
        await client.patch(PODS, meta.name, namespace, body=body, patch=PatchType.STRATEGIC, type=msgspec.Raw)


async def main() -> None:
    """Serves until the parent goes."""
    its = FloorController()
    await command_loop.serve({"run": its.run, "figures": its.figures})


if __name__ == "__main__":
    asyncio.run(main())
