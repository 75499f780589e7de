"""Uninstalling with crds.keep=false on a real API server: the Job runs, the field is gone, and so is the hook."""

from collections.abc import AsyncIterator

import pytest

from controllers.barrier import crd_patcher
from jobset_gate.fake import jobset_crd
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS, JOBS
from jobset_gate.names import CONFIG_FIELD, JOBSET_CRD
from tests.chart.cluster import ChartRelease, fresh_release
from tests.chart.helm import Helm, at
from tests.chart.hook_pods import as_program
from tests.plane.planes import Real

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
async def release(real_plane: Real, helm4: Helm) -> AsyncIterator[ChartRelease]:
    async with fresh_release(real_plane, helm4) as made:
        yield made


async def has_field(client: Client) -> bool:
    return CONFIG_FIELD in str(await client.get(CRDS, JOBSET_CRD))


async def test_the_field_and_the_hook_are_gone_afterwards(release: ChartRelease) -> None:
    async with release.plane.client() as client:
        await jobset_crd.install(client)
        await crd_patcher.extend_crd(client)
        await release.install(at("crds.keep", False))
        assert await has_field(client)
        await release.uninstall(hooks=as_program(release.plane.kubeconfig))
        assert not await has_field(client)
        await release.until_nothing_is_left()
        assert (await client.list(JOBS, release.namespace))["items"] == []


async def test_by_default_the_field_stays(release: ChartRelease) -> None:
    async with release.plane.client() as client:
        await jobset_crd.install(client)
        await crd_patcher.extend_crd(client)
        await release.install()
        await release.uninstall()
        assert await has_field(client)
