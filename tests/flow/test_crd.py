"""The controller keeps spec.groupSchedulingConfig in the JobSet CRD's schema, in peace with the CRD's owner (A2)."""

from jobset_gate import names
from jobset_gate.barrier.crd import is_extended, is_not_owner
from jobset_gate.fake import jobset_crd, manifests
from jobset_gate.fake.view import ObjectView
from jobset_gate.kube.resources import CRDS
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import PATIENCE, Environment, Json


async def until_extended(stage: Environment, crds: ObjectView, generation: int) -> Json:
    """The CRD, once it has the field at no older generation and nobody but its owner is written down for it."""
    while True:
        crd = await stage.client.get(CRDS, names.JOBSET_CRD)
        if is_extended(crd) and is_not_owner(crd) and crd["metadata"]["generation"] >= generation:
            return crd
        seen = crd["metadata"]["resourceVersion"]
        await _until_other(crds, seen)


async def _until_other(crds: ObjectView, version: str) -> None:
    """Until the watch shows another version than that one."""
    await crds.until(lambda all_: any(one["metadata"]["resourceVersion"] != version for one in all_), PATIENCE)


async def test_the_owners_next_apply_neither_conflicts_nor_takes_the_field_away_for_long(
    make_stage: MakeEnvironment,
) -> None:
    async with make_stage(controller=False) as stage:
        crd = {"apiVersion": CRDS.api_version, "kind": CRDS.kind, **jobset_crd.manifest()}
        apply = ("apply", "-f", "-", "--server-side", "--field-manager=jobset")
        await stage.plane.kubectl(*apply, "--force-conflicts", stdin=crd)
        stage.start_controller(extend_crd=True)
        only = f"metadata.name={names.JOBSET_CRD}"
        async with ObjectView(stage.client, CRDS, field_selector=only) as crds:
            extended = await until_extended(stage, crds, 0)
            for _ in range(2):
                # Without force: a conflict would fail here.
                await stage.plane.kubectl(*apply, stdin=crd)
                # One generation for the field's going, one for its coming back.
                extended = await until_extended(stage, crds, extended["metadata"]["generation"] + 2)
        await stage.apply(manifests.gang(jobs=1, pods=2))
        jobset = await stage.jobset("gang")
        assert jobset["spec"][names.CONFIG_FIELD] == {"timeoutAfterSeconds": 300}
