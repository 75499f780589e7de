"""Uninstalling with crds.keep=false on a real API server: the Job runs, the field is gone, and so is the hook."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import pytest

from jobset_gate.kube import crd
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import CRDS, JOBS, PODS
from jobset_gate.names import CONFIG_FIELD, JOBSET_CRD
from jobset_gate.sim import jobset_crd
from jobset_gate.sim.until import View
from tests.charts.cluster import Release, fresh_release
from tests.charts.helm import Helm, Json, at
from tests.support.planes import Real

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
async def release(real_plane: Real, helm4: Helm) -> AsyncIterator[Release]:
    async with fresh_release(real_plane, helm4) as made:
        yield made


async def has_field(client: Client) -> bool:
    return CONFIG_FIELD in str(await client.get(CRDS, JOBSET_CRD))


def of_the_hook(pod: Json) -> bool:
    return any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences", []))


async def play_the_kubelet(client: Client, release: Release) -> None:
    """Runs the one pod of a Job in the namespace, and says that it has ended well."""
    async with View(client, PODS, release.namespace) as view:
        pods = await view.until(lambda all_: any(map(of_the_hook, all_)), 120)
    pod = next(filter(of_the_hook, pods))
    (container,) = pod["spec"]["containers"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "jobset_gate.cli", *container["args"]),
        env=os.environ | {"KUBECONFIG": str(release.plane.kubeconfig)},
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0
    ended = {"status": {"phase": "Succeeded"}}
    name = pod["metadata"]["name"]
    await client.patch(PODS, name, release.namespace, body=ended, patch=PatchType.MERGE, subresource="status")


async def test_the_field_and_the_hook_are_gone_afterwards(release: Release) -> None:
    async with release.plane.client() as client:
        await jobset_crd.install(client)
        await crd.extend(client)
        await release.install(at("crds.keep", False))
        assert await has_field(client)
        async with asyncio.TaskGroup() as both:
            both.create_task(play_the_kubelet(client, release))
            both.create_task(release.uninstall())
        assert not await has_field(client)
        await release.until_nothing_is_left()
        assert (await client.list(JOBS, release.namespace))["items"] == []


async def test_by_default_the_field_stays(release: Release) -> None:
    async with release.plane.client() as client:
        await jobset_crd.install(client)
        await crd.extend(client)
        await release.install()
        await release.uninstall()
        assert await has_field(client)
