"""The pods of a release's hooks on a control plane without nodes: each is run as a program, and said to have ended."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import PODS
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView
from tests.fakes.service_process import run_once

Json = dict[str, Any]
Run = Callable[[Json], Awaitable[None]]
"""Does what a pod would do."""


async def nothing(_: Json) -> None:
    """For tests of other things."""


def as_program(kubeconfig: Path) -> Run:
    """The pod's own command, by an administrator."""

    async def run(pod: Json) -> None:
        (container,) = pod["spec"]["containers"]
        code, said = await run_once(kubeconfig, "-m", "jobset_gate.cli", *container["args"])
        assert code == 0, said

    return run


@asynccontextmanager
async def played(client: Client, namespace: str, run: Run) -> AsyncIterator[None]:
    """Meanwhile pods that a Job has made in the namespace run and end well, one after the other."""
    async with asyncio.TaskGroup() as group:
        player = group.create_task(_play(client, namespace, run))
        yield
        player.cancel()


async def _play(client: Client, namespace: str, run: Run) -> None:
    ended: set[str] = set()

    def next_one(pods: list[Json]) -> Json | None:
        return next((pod for pod in pods if _of_a_job(pod) and pod["metadata"]["uid"] not in ended), None)

    async with ObjectView(client, PODS, namespace) as view:
        while True:
            pod = next_one(await view.until(lambda pods: next_one(pods) is not None, PATIENCE))
            assert pod is not None
            await run(pod)
            ended.add(pod["metadata"]["uid"])
            status = {"status": {"phase": "Succeeded"}}
            name = pod["metadata"]["name"]
            await client.patch(PODS, name, namespace, body=status, patch=PatchType.MERGE, subresource="status")


def _of_a_job(pod: Json) -> bool:
    return any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences", []))
