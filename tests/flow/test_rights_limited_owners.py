"""The chart's policies let the controller's account suspend Jobs and JobSets, and change nothing else of them."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import CRDS, JOBS, JOBSETS, Resource
from tests.fakes.podgroups import manifests as groups
from tests.flow.environment import environment, in_force
from tests.flow.installed import CONTROLLER, installed
from tests.flow.policies import refused
from tests.plane.planes import Real

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

Json = dict[str, Any]
OWNER: Json = {"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "none"}
TEMPLATE = "/spec/replicatedJobs/0/template"
MANY = 250
"""About as many gated replicatedJobs as an API server stores in one JobSet."""


def put(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


ANY: list[Json] = [
    # With the first the object is gone when it has ended, with the second at once.
    put("/spec/ttlSecondsAfterFinished", 0),
    put("/metadata/ownerReferences", [OWNER]),
    put("/metadata/finalizers", ["example.com/stay"]),
    put("/metadata/labels", {"app": "other-client"}),
    put("/metadata/annotations", {"theirs": "2"}),
]
OF_JOBS: list[Json] = [
    put("/spec/parallelism", 5),
    put("/spec/backoffLimit", 50),
    put("/spec/activeDeadlineSeconds", 1),
    put("/spec/template/spec/tolerations", [{"operator": "Exists"}]),
]
OF_JOBSETS: list[Json] = [
    put(f"{TEMPLATE}/spec/parallelism", 5),
    put(f"{TEMPLATE}/spec/template/spec/containers/0/image", "evil"),
    put(f"{TEMPLATE}/spec/template/spec/nodeSelector", {"theirs": "1"}),
    put(f"{TEMPLATE}/spec/template/metadata/labels/theirs", "1"),
    put(f"{TEMPLATE}/spec/template/metadata/annotations/theirs", "1"),
    put(f"{TEMPLATE}/metadata", {"labels": {"theirs": "1"}}),
    put("/spec/replicatedJobs/0/replicas", 5),
    put("/spec/failurePolicy", {"maxRestarts": 5}),
]


def mark(*, suspend: bool = True) -> Json:
    marks = {names.POD_GROUP_SUSPENDED: "0.1" if suspend else None}
    return {"metadata": {"labels": marks, "annotations": marks}, "spec": {"suspend": suspend}}


async def test_they_are_suspended_and_resumed_and_no_more(
    real_plane: Real, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    """The webhook counts the suspension in a gated JobSet's templates, in the same request."""
    own, gangs = namespaces
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            environment(real_plane, gangs, tmp_path, controller=False, webhook=False, stream=False)
        )
        release = await stack.enter_async_context(installed(real_plane, own, tmp_path))
        await stack.enter_async_context(release.program("webhook"))
        await in_force(stage)
        controller = await stack.enter_async_context(release.client(CONTROLLER))
        nobody: Json = {"suspend": True, "managedBy": "example.com/nobody"}
        job = groups.job("theirs", "theirs", 1, **nobody)
        many = [manifests.replicated_job(f"w{n}") for n in range(MANY)]
        made: list[tuple[Resource, Json, list[Json]]] = [
            (JOBS, job, ANY + OF_JOBS),
            (JOBSETS, manifests.gang("gated", gangs, jobs=1, pods=1, **nobody), ANY + OF_JOBSETS),
            (JOBSETS, manifests.jobset("many", gangs, replicated_jobs=many, config={}, **nobody), []),
        ]
        for resource, manifest, changes in made:
            name = manifest["metadata"]["name"]
            await stage.client.create(resource, manifest, gangs)
            for change in changes:
                with refused():
                    await controller.patch(resource, name, gangs, body=[change], patch=PatchType.JSON)
            for suspend in (False, True, False):
                body = mark(suspend=suspend)
                stored = await controller.patch(resource, name, gangs, body=body, patch=PatchType.MERGE)
                assert stored["spec"]["suspend"] is suspend
        stored = await stage.client.get(JOBSETS, "many", gangs)
        notes = stored["spec"]["replicatedJobs"][MANY - 1]["template"]["spec"]["template"]["metadata"]["annotations"]
        assert notes[names.EPOCH] == "1"


def condition(kind: str) -> Json:
    return {
        "type": kind,
        "status": "True",
        "reason": "Because",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


async def test_a_jobset_has_the_condition_of_its_gang_alone(
    real_plane: Real, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    own, gangs = namespaces
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            environment(real_plane, gangs, tmp_path, controller=False, webhook=False, stream=False)
        )
        release = await stack.enter_async_context(installed(real_plane, own, tmp_path))
        controller = await stack.enter_async_context(release.client(CONTROLLER))
        await stage.client.create(JOBSETS, manifests.jobset("theirs", gangs, suspend=True))
        for status in ({"conditions": [condition("Completed")]}, {"terminalState": "Failed"}, {"restarts": 7}):
            with refused():
                await controller.patch(
                    JOBSETS, "theirs", gangs, body={"status": status}, patch=PatchType.MERGE, subresource="status"
                )
        ours = {"metadata": {"name": "theirs"}, "status": {"conditions": [condition(names.CONDITION)]}}
        await controller.patch(
            JOBSETS, "theirs", gangs, body=ours, patch=PatchType.APPLY, subresource="status", field_manager="x"
        )


CONVERTED = {
    "strategy": "Webhook",
    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://outside.example/"}},
}
"""With it a user sees and changes every JobSet of the cluster."""
PROPERTIES = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"


async def test_jobset_s_kind_gets_one_field(real_plane: Real, namespaces: tuple[str, str], tmp_path: Path) -> None:
    own, gangs = namespaces
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            environment(real_plane, gangs, tmp_path, controller=False, webhook=False, stream=False)
        )
        release = await stack.enter_async_context(installed(real_plane, own, tmp_path))
        controller = await stack.enter_async_context(release.client(CONTROLLER))
        for change in (
            put("/spec/conversion", CONVERTED),
            put(f"{PROPERTIES}/theirs", {"type": "string"}),
            put(f"{PROPERTIES}/suspend/description", "theirs"),
            {"op": "remove", "path": f"{PROPERTIES}/suspend"},
            put("/spec/versions/0/additionalPrinterColumns", [{"name": "A", "type": "string", "jsonPath": ".a"}]),
            put("/metadata/labels", {"theirs": "1"}),
        ):
            with refused():
                await controller.patch(CRDS, names.JOBSET_CRD, body=[change], patch=PatchType.JSON, dry_run=True)
            await stage.client.patch(CRDS, names.JOBSET_CRD, body=[change], patch=PatchType.JSON, dry_run=True)
        field = put(f"{PROPERTIES}/{names.CONFIG_FIELD}", {"type": "object", "description": "ours"})
        await controller.patch(CRDS, names.JOBSET_CRD, body=[field], patch=PatchType.JSON, dry_run=True)
