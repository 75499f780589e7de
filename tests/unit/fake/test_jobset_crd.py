"""The JobSet CRD stand-in: strict about its fields, merging as the real one, and taken by the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from controllers.barrier import crd_patcher as extension
from jobset_gate.fake import jobset_crd, manifests
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Invalid
from jobset_gate.kube.resources import CRDS, JOBSETS
from tests.plane.planes import Plane
from tests.unit.fake.gates import plain
from tests.unit.fake.world import FakeClusterStory, Run


async def _schema(world: FakeClusterStory, *path: str) -> dict[str, Any]:
    found: dict[str, Any] = await world.client.get(CRDS, "jobsets.jobset.x-k8s.io")
    found = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        found = found["items"] if name == "[]" else found["properties"][name]
    return found


POD = ("spec", "replicatedJobs", "[]", "template", "spec", "template", "spec")


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        (("spec", "replicatedJobs"), ["name"]),
        (("status", "conditions"), ["type"]),
        ((*POD, "containers"), ["name"]),
        ((*POD, "initContainers"), ["name"]),
        ((*POD, "volumes"), ["name"]),
        ((*POD, "containers", "[]", "env"), ["name"]),
        ((*POD, "containers", "[]", "volumeMounts"), ["mountPath"]),
        ((*POD, "containers", "[]", "ports"), ["containerPort", "protocol"]),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_lists_merge_by_the_keys_of_the_real_crd(run: Run, path: tuple[str, ...], keys: list[str]) -> None:
    async def story(world: FakeClusterStory) -> None:
        found = await _schema(world, *path)
        assert found["x-kubernetes-list-type"] == "map"
        assert found["x-kubernetes-list-map-keys"] == keys

    run(story)


def test_two_appliers_share_the_containers_of_a_template(run: Run) -> None:
    """Server-side apply: who leaves a container out does not take away another's."""

    async def story(world: FakeClusterStory) -> None:
        async def apply(manager: str, *containers: dict[str, Any]) -> dict[str, Any]:
            body = manifests.jobset("set", world.namespace, suspend=True)
            job = body["spec"]["replicatedJobs"][0]
            job["template"]["spec"]["template"]["spec"]["containers"] = list(containers)
            return await world.client.patch(
                JOBSETS, "set", world.namespace, body=body, patch=PatchType.APPLY, field_manager=manager, dry_run=True
            )

        body = plain(suspend=True)
        template = body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        template["containers"].append(manifests.container("second"))
        await world.create(JOBSETS, body)
        applied = await apply("user", manifests.container())
        merged = applied["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
        assert [container["name"] for container in merged] == ["main", "second"]

    run(story)


def test_startup_order_and_dependencies_exclude_each_other(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        second = manifests.replicated_job("second", dependsOn=[{"name": "first", "status": "Ready"}])
        body = manifests.jobset(
            "set",
            replicated_jobs=[manifests.replicated_job("first"), second],
            startupPolicy={"startupPolicyOrder": "InOrder"},
        )
        with pytest.raises(Invalid, match="exclude each other"):
            await world.create(JOBSETS, body)

    run(story)


def test_a_replicated_job_needs_a_name(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        body = plain()
        del body["spec"]["replicatedJobs"][0]["name"]
        with pytest.raises(ApiError) as refused:
            await world.create(JOBSETS, body)
        assert refused.value.status in (400, 422)

    run(story)


@pytest.mark.parametrize("story", [manifests.story1, manifests.story2])
async def test_kubectl_takes_the_stories_once_the_field_is_there_and_not_before(
    plane: Plane, namespace: str, story: Callable[[], dict[str, Any]]
) -> None:
    """Strict validation, as kubectl asks for it by default: first refused, then applied twice, in both ways."""
    manifest = story()
    manifest["metadata"]["namespace"] = namespace
    async with plane.client() as client:
        await jobset_crd.install(client)
        await extension.retract_crd(client)
        said = await plane.kubectl.refused("apply", "-f", "-", stdin=manifest)
        assert 'unknown field "spec.groupSchedulingConfig"' in said
        assert "strict decoding error" in said
        await extension.extend_crd(client)
        await _until_taken(client, manifest)
        for _ in range(2):
            await plane.kubectl("apply", "-f", "-", stdin=manifest)
        await plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)
        stored = await client.get(JOBSETS, manifest["metadata"]["name"], namespace)
        assert stored["spec"]["groupSchedulingConfig"] == manifest["spec"]["groupSchedulingConfig"]
        await client.delete(JOBSETS, manifest["metadata"]["name"], namespace)
        await extension.retract_crd(client)


async def _until_taken(client: Client, manifest: dict[str, Any]) -> None:
    """The API server serves a changed schema a moment after it was stored, and tells nobody."""
    while True:
        made = await client.create(JOBSETS, manifest, dry_run=True)
        if "groupSchedulingConfig" in made["spec"]:
            return
        await asyncio.sleep(0)
