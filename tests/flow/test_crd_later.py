"""jobset-gate first, JobSet afterwards: the controller waits for the CRD, is ready meanwhile, and puts the field in."""

import asyncio
from contextlib import suppress

import pytest

from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.barrier.crd import is_extended, is_not_owner
from jobset_gate.fake import jobset_crd
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CRDS
from tests.fakes.crds import remove_crds
from tests.fakes.service_process import until_ready
from tests.flow.environment import PATIENCE
from tests.plane.planes import Real

pytestmark = pytest.mark.real


async def until_extended(client: Client) -> None:
    """And nobody but JobSet is written down for the field: then the controller has done all that it will do."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NotFound):
                crd = await client.get(CRDS, names.JOBSET_CRD)
                if is_extended(crd) and is_not_owner(crd):
                    return
            await asyncio.sleep(0.05)  # watching a CRD that comes and goes would test the informer with itself


async def test_the_field_is_there_soon_after_jobset_is(real_plane: Real) -> None:
    """Also when JobSet is uninstalled and installed once more."""
    manager = Manager(real_plane.access, ManagerOptions(namespace="default", leader_elect=False, port=0))
    async with real_plane.client() as client:
        await remove_crds(client, names.JOBSET_CRD)
        controller = asyncio.create_task(manager.run())
        try:
            await asyncio.wait_for(manager.leading.wait(), PATIENCE)
            await until_ready(manager.url)
            await jobset_crd.install(client)
            await until_extended(client)
            await remove_crds(client, names.JOBSET_CRD)
            await jobset_crd.install(client)
            await until_extended(client)
            assert not controller.done()
        finally:
            controller.cancel()
            with suppress(asyncio.CancelledError):
                await controller
