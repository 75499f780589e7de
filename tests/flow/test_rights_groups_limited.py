"""The chart's policies hold the controller's account to members of groups and to its own words about groups."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from controllers.podgroups import crds
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, JOBS, POD_GROUPS, PODS
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups import manifests
from tests.flow.installed import CONTROLLER, LIVELY, Installed, installed
from tests.flow.policies import refused
from tests.plane.planes import Real, fresh_name

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]
THEIRS: Json = {"name": "example.com/theirs"}
GATES = [THEIRS, {"name": names.POD_GROUP_GATE}]
NOBODY: Json = {"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "none"}
MEMBER: Json = {
    "labels": {names.POD_GROUP_LABEL: "0" * 32, "app": "theirs"},
    "finalizers": ["example.com/theirs", names.JOB_TRACKING_FINALIZER],
    "ownerReferences": [],
}
"""Of a Job, and of another client, by the time that it is made: owners that are not there would take it with them."""
STATUS = {"conditions": [{"type": "Ready", "status": "True"}]}
BACK: Json = {names.POD_GROUP_TAKEN_BACK: "x.1"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def release(scheduled_plane: Real) -> AsyncIterator[Installed]:
    """With its policies in force. All tests share it: none changes it."""
    async with installed(scheduled_plane, *LIVELY) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def theirs(scheduled_plane: Real) -> AsyncIterator[str]:
    """A namespace for groups."""
    name = fresh_name()
    await scheduled_plane.make_namespace(name)
    yield name
    await scheduled_plane.drop_namespace(name)


def pod(name: str, meta: Json | None = None) -> Json:
    """Nobody schedules it."""
    spec: Json = {"containers": [{"name": "main", "image": "busybox"}], "schedulingGates": GATES}
    return {"metadata": {"name": name, **(meta or {})}, "spec": spec}


CHANGES: list[tuple[Json | None, Json, str | None]] = [
    (None, {"metadata": {"annotations": {names.POD_GROUP_OPENED: "1"}}}, None),
    (None, {"spec": {"schedulingGates": [{"$patch": "delete", "name": names.POD_GROUP_GATE}]}}, None),
    (MEMBER, {"spec": {"schedulingGates": [{"$patch": "delete", **THEIRS}]}}, None),
    (MEMBER, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}, None),
    (MEMBER, {"spec": {"nodeSelector": {"theirs": "1"}}}, None),
    (MEMBER, {"metadata": {"labels": {names.POD_GROUP_LABEL: None}}}, None),
    (MEMBER, {"metadata": {"labels": {"app": None}}}, None),
    (MEMBER, {"metadata": {"annotations": {"more": "1"}}}, None),
    (MEMBER, {"metadata": {"annotations": {names.VERDICT: "release"}}}, None),
    (MEMBER, {"metadata": {"finalizers": ["example.com/stay"]}}, None),
    # With the mark that its Job forgets it:
    (MEMBER, {"metadata": {"labels": {"more": "1"}, "annotations": BACK}}, None),
    (MEMBER, {"metadata": {"labels": {names.POD_GROUP_LABEL: None}, "annotations": BACK}}, None),
    (MEMBER, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/theirs"], "annotations": BACK}}, None),
    (MEMBER, {"status": STATUS}, "status"),
    (MEMBER, {"status": {"phase": "Failed"}}, "status"),
    (MEMBER, {"metadata": {"labels": {"more": "1"}}, "status": {"phase": "Pending"}}, "status"),
    (None, {"status": {"conditions": [{"type": names.DISRUPTION_TARGET, "status": "True"}]}}, "status"),
]
"""The metadata of a pod, and what its account would do to it; whose subresource."""


async def owner_references(client: Client, namespace: str) -> list[Json]:
    """Of the members in a namespace: to an object of another client, and to their Job."""
    found = []
    job = manifests.job("theirs", "theirs", 1, suspend=True)
    for resource, body in ((CONFIGMAPS, {"metadata": {"name": "theirs"}}), (JOBS, job)):
        uid = (await client.create(resource, body, namespace))["metadata"]["uid"]
        found.append({"apiVersion": resource.api_version, "kind": resource.kind, "name": "theirs", "uid": uid})
    return found


def without_owner(uid: str) -> Json:
    """With the mark that its Job forgets it."""
    return {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": uid}], "annotations": BACK}}


async def test_members_are_opened_and_taken_back_and_no_more(
    scheduled_plane: Real, release: Installed, theirs: str
) -> None:
    async with scheduled_plane.client() as admin, release.client(CONTROLLER) as controller:
        owners = await owner_references(admin, theirs)
        their_uid, job_uid = [it["uid"] for it in owners]
        for number, (meta, change, sub) in enumerate([*CHANGES, (MEMBER, without_owner(their_uid), None)]):
            name = f"theirs-{number}"
            await admin.create(PODS, pod(name, meta and {**meta, "ownerReferences": owners}), theirs)
            with refused():
                await controller.patch(PODS, name, theirs, body=change, patch=PatchType.STRATEGIC, subresource=sub)
            # Another client may: the policies bind the controller alone.
            await admin.patch(PODS, name, theirs, body=change, patch=PatchType.STRATEGIC, subresource=sub, dry_run=True)
        await admin.create(PODS, pod("bare", {"labels": MEMBER["labels"]}), theirs)
        for name in ("theirs-0", "bare"):  # of no group; of nobody who would make it again
            with refused():
                await controller.delete(PODS, name, theirs)
        ungated: Json = {"spec": {"schedulingGates": [{"$patch": "delete", "name": names.POD_GROUP_GATE}]}}
        forgotten = without_owner(job_uid)
        forgotten["metadata"] |= {
            "labels": {"app": None},
            "$deleteFromPrimitiveList/finalizers": [names.JOB_TRACKING_FINALIZER],
        }
        for change in (ungated, forgotten):
            await controller.patch(PODS, "theirs-2", theirs, body=change, patch=PatchType.STRATEGIC, dry_run=True)
        await controller.delete(PODS, "theirs-2", theirs, grace_seconds=0)


@pytest.mark.parametrize("way", manifests.API_GROUP)
async def test_podgroups_show_what_was_decided_and_how_far_they_are(
    scheduled_plane: Real, release: Installed, theirs: str, way: Format
) -> None:
    resource = POD_GROUPS[manifests.API_GROUP[way]]
    async with scheduled_plane.client() as admin, release.client(CONTROLLER) as controller:
        await admin.create(resource, manifests.pod_group("theirs", 2, way), theirs)
        crd = crds.crd_name(manifests.API_GROUP[way])

        async def put(body: Json, sub: str | None = None) -> None:
            await controller.patch(resource, "theirs", theirs, body=body, patch=PatchType.MERGE, subresource=sub)

        for body, sub in (
            ({"spec": {crds.MINIMUM_FIELD[manifests.API_GROUP[way]]: 1}}, None),
            ({"metadata": {"annotations": {"more": "1"}}}, None),
            ({"metadata": {"labels": {"more": "1"}}}, None),
            ({"metadata": {"finalizers": ["example.com/stay"]}}, None),
            ({"metadata": {"ownerReferences": [NOBODY]}}, None),
            ({"status": {"conditions": STATUS["conditions"]}}, "status"),
        ):
            with refused():
                await put(body, sub)
        await put({"metadata": {"annotations": {names.POD_GROUP_RECORD: "{}", names.POD_GROUP_STATE: "x"}}})
        ours = [{"type": names.POD_GROUP_CONDITION, "status": "False"}]
        await put({"status": {"running": 1, "conditions": ours}}, "status")
        converted = {"spec": {"conversion": {"strategy": "Webhook"}}}
        labels = {"metadata": {"labels": {names.MANAGED_BY_LABEL: names.PROGRAM}}}
        kind = await admin.get(CRDS, crd)
        if not crds.is_ours(kind):
            for body in (converted, labels):
                with refused():
                    await controller.patch(CRDS, crd, body=body, patch=PatchType.MERGE, dry_run=True)
