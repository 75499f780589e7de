"""The controller keeps spec.groupSchedulingConfig in the JobSet CRD's schema, in peace with the CRD's owner (A2)."""

from contextlib import suppress

import pytest

from jobset_gate import names
from jobset_gate.barrier.crd import is_extended, is_not_owner
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CRDS
from jobset_gate_demo.fake import jobset_crd, manifests
from tests.fakes.crds import remove_crds
from tests.fakes.eventually import eventually
from tests.fakes.service_process import until_ready
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import Json


async def until_extended(client: Client, generation: int = 0) -> Json:
    """The CRD, once it has the field at no older generation and nobody but its owner is written down for it."""
    found: Json = {}

    async def extended() -> bool:
        with suppress(NotFound):
            found.update(await client.get(CRDS, names.JOBSET_CRD))
            return is_extended(found) and is_not_owner(found) and found["metadata"]["generation"] >= generation
        return False

    await eventually(extended)
    return found


async def test_the_owners_next_apply_neither_conflicts_nor_takes_the_field_away_for_long(
    make_stage: MakeEnvironment,
) -> None:
    async with make_stage(controller=False) as stage:
        crd = {"apiVersion": CRDS.api_version, "kind": CRDS.kind, **jobset_crd.manifest()}
        apply = ("apply", "-f", "-", "--server-side", "--field-manager=jobset")
        await stage.plane.kubectl(*apply, "--force-conflicts", stdin=crd)
        stage.start_controller(extend_crd=True)
        extended = await until_extended(stage.client)
        for _ in range(2):
            # Without force: a conflict would fail here.
            await stage.plane.kubectl(*apply, stdin=crd)
            # One generation for the field's going, one for its coming back.
            extended = await until_extended(stage.client, extended["metadata"]["generation"] + 2)
        await stage.apply(manifests.gang(jobs=1, pods=2))
        jobset = await stage.jobset("gang")
        assert jobset["spec"][names.CONFIG_FIELD] == {"timeoutAfterSeconds": 300}


@pytest.mark.real
async def test_the_field_is_there_soon_after_jobset_is(make_stage: MakeEnvironment) -> None:
    """Also when JobSet is uninstalled and installed once more; the controller is ready meanwhile."""
    async with make_stage(controller=False, webhook=False) as stage:
        await remove_crds(stage.client, names.JOBSET_CRD)
        controller = stage.start_controller(extend_crd=True, port=0)
        await stage.actors.until(controller.leading.wait())
        await until_ready(controller.url)
        for _ in range(2):
            await jobset_crd.install(stage.client)
            await until_extended(stage.client)
            await remove_crds(stage.client, names.JOBSET_CRD)
        assert not stage.running[0].done()
        await jobset_crd.install(stage.client)
        await until_extended(stage.client)
