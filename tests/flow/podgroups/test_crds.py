"""The controller's care for the CRDs of pod groups, on a real API server (G5)."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from controllers.podgroups import crds
from controllers.podgroups.crds import PodGroupCrdOutcome
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups.model import Format
from tests.fakes.crds import remove_crds
from tests.fakes.eventually import eventually
from tests.fakes.object_view import ObjectView, is_true
from tests.fakes.podgroups import manifests
from tests.flow.podgroups.environment import GroupEnvironment, group_environment
from tests.plane.planes import Real

pytestmark = pytest.mark.real
Json = dict[str, Any]
ALL = tuple(crds.GROUPS)
PLUGINS, SIGS = crds.crd_name(names.PLUGINS_GROUP), crds.crd_name(names.SIGS_GROUP)


@pytest.fixture
def plane(real_plane: Real) -> Real:
    """No pod is scheduled here."""
    return real_plane


@pytest.fixture
async def stage(plane: Real, namespace: str) -> AsyncIterator[GroupEnvironment]:
    """On a plane where nobody has installed them, before and after; without a controller yet."""
    async with group_environment(plane, namespace, controller=False, webhook=False) as made:
        await remove_crds(made.client, *ALL)
        yield made
        await made.stop_controllers()
        await remove_crds(made.client, *ALL)


async def until_logged(logged: list[Any], name: str, *wanted: PodGroupCrdOutcome) -> str | None:
    """Until the controller's log says these of a CRD, one after the other, whatever lies between. Its last problem."""

    def of_it(key: str) -> list[str | None]:
        return [it.get(key) for it in logged if it.get("crd") == name]

    async def in_order() -> bool:
        seen = iter(of_it("outcome"))
        return all(any(one == it for it in seen) for one in wanted)

    await eventually(in_order, lambda: f"{name}: {of_it('outcome')}")
    return of_it("trouble")[-1]


async def served(client: Client, name: str) -> Json:
    """The CRD, once the API server serves its kind."""
    async with ObjectView(client, CRDS, field_selector=f"metadata.name={name}") as view:
        await view.until(lambda found: any(is_true(one, "Established") for one in found))
    return await client.get(CRDS, name)


async def test_missing_ones_are_made_and_take_what_the_designs_say(stage: GroupEnvironment) -> None:
    with capture_logs() as logged:
        stage.start_controller()
        for name in ALL:
            await until_logged(logged, name, PodGroupCrdOutcome.CREATED, PodGroupCrdOutcome.CURRENT)
            crd = await served(stage.client, name)
            refused = {it["type"] for it in crd["status"]["conditions"] if it["status"] == "False"}
            assert not refused & {"NamesAccepted", "Established"}
            assert not crds.why_unusable(crd)
    await stage.stop_controllers()
    everything = [
        manifests.pod_group("a", 3, Format.SCHEDULER_PLUGINS, wait=60, resources={"cpu": "3", "memory": "1Gi"}),
        manifests.pod_group(
            "a", 3, Format.KOORDINATOR_POD_GROUP, wait=600, annotations={names.KOORDINATOR_MODE: "Strict"}
        ),
        manifests.pod_group("a", 3, Format.KEP_24, resources={"cpu": "1500m"}),
    ]
    kubectl, where = stage.plane.kubectl, ("-n", stage.namespace)
    for one in everything:
        await kubectl("create", "--validate=strict", *where, "-f", "-", stdin=one)
        kind = f"podgroups.{one['apiVersion'].split('/')[0]}"
        condition = {"type": names.POD_GROUP_CONDITION, "status": "True", "reason": "x"}
        status = {"running": 2, "conditions": [condition]}
        merged = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
        await kubectl("patch", kind, "a", *where, *merged)
        seen = await kubectl("get", kind, "a", *where, "-o", "json")
        assert (seen.json["spec"], seen.json["status"]) == (one["spec"], status)


def written(crd: Json) -> Json:
    """What clients write of it: the API server itself goes on with the status."""
    meta = {key: crd["metadata"].get(key) for key in ("uid", "generation", "labels", "annotations")}
    return {"spec": crd["spec"], "metadata": meta}


async def test_a_foreign_crd_is_never_written_and_reported_if_it_cannot_be_used(stage: GroupEnvironment) -> None:
    theirs, strange = crds.manifest(names.PLUGINS_GROUP), crds.manifest(names.SIGS_GROUP)
    strange["spec"]["versions"][0]["name"] = "v1beta7"
    for crd in (theirs, strange):
        del crd["metadata"]["labels"]
        del crd["metadata"]["annotations"][names.POD_GROUP_CRD_REVISION]
        await stage.client.create(CRDS, crd, field_manager="helm")
    before = {name: await served(stage.client, name) for name in (PLUGINS, SIGS)}
    with capture_logs() as logged:
        stage.start_controller()
        await until_logged(logged, PLUGINS, PodGroupCrdOutcome.FOREIGN)
        unusable = await until_logged(logged, SIGS, PodGroupCrdOutcome.UNUSABLE)
        assert unusable == f"the CRD {SIGS} serves v1beta7, and only v1alpha1 is known here"
        for name, seen in before.items():
            assert written(await stage.client.get(CRDS, name)) == written(seen)
        # Its owner goes, and it is ours to make.
        await remove_crds(stage.client, SIGS)
        made = (PodGroupCrdOutcome.UNUSABLE, PodGroupCrdOutcome.CREATED, PodGroupCrdOutcome.CURRENT)
        assert await until_logged(logged, SIGS, *made) is None


async def test_only_fields_of_a_foreign_crd_are_written_and_the_rest_is_in_an_annotation(
    stage: GroupEnvironment,
) -> None:
    """As scheduler-plugins installs it: its status knows no conditions; this one does not count failures either."""
    theirs = crds.manifest(names.PLUGINS_GROUP)
    del theirs["metadata"]["labels"]
    fields = theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    del fields["conditions"], fields["failed"]
    await stage.client.create(CRDS, theirs, field_manager="helm")
    before = (await served(stage.client, PLUGINS))["spec"]
    stage.start_controller()
    await stage.make_group("ring", 2)
    await stage.create(manifests.held(manifests.pod("one", "ring"), stage.namespace, "ring"))
    wanted = "Pending: Gathering: 1/2 pods exist"

    def stated(group: Json) -> bool:
        return bool((group["metadata"].get("annotations") or {}).get(names.POD_GROUP_STATE) == wanted)

    found = await stage.until_group("ring", lambda it: stated(it) and bool(it.get("status")))
    assert found["status"] == {"phase": "Pending", "running": 0, "succeeded": 0}
    assert (await stage.client.get(CRDS, PLUGINS))["spec"] == before
