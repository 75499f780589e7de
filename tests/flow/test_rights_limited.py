"""examples/limit-controller.yaml holds the controller to its own annotations and ConfigMaps, and does not stop it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Invalid
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from tests.flow import story
from tests.flow.installed import CONTROLLER, LIVELY, Installed, eventually, installed
from tests.flow.stage import Stage, staged
from tests.flow.stage import in_force as asked
from tests.house.files import ROOT
from tests.support.planes import Real

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

Json = dict[str, Any]
FILE = ROOT / "examples" / "limit-controller.yaml"
NOT_THE_CONTROLLERS = "denied request: the controller "


@pytest.fixture
async def release(real_plane: Real, namespaces: tuple[str, str], tmp_path: Path) -> AsyncIterator[Installed]:
    """A release with the policies of the example, for its account."""
    own, gangs = namespaces
    text = FILE.read_text().replace("jobset-gate-system:jobset-gate-controller", f"{own}:{CONTROLLER}")
    assert own in text
    async with installed(real_plane, own, tmp_path, *LIVELY) as release:
        await real_plane.kubectl("apply", "-f", "-", stdin=text)
        try:
            async with release.client(CONTROLLER) as controller:
                await in_force(controller, gangs)
            yield release
        finally:
            await real_plane.kubectl("delete", "-f", "-", stdin=text)


async def in_force(controller: Client, namespace: str) -> None:
    """Nothing tells when an API server has read its policies."""

    async def refused() -> bool:
        try:
            await controller.create(CONFIGMAPS, config_map(namespace, "probe"), dry_run=True)
        except ApiError as error:
            return NOT_THE_CONTROLLERS in str(error)
        return False

    await eventually(refused)


def config_map(namespace: str, name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


def pod(namespace: str, name: str, **labels: str) -> Json:
    container = {"name": "main", "image": "busybox"}
    meta = {"name": name, "namespace": namespace, "labels": labels, "annotations": {"theirs": "1"}}
    return {"metadata": meta, "spec": {"containers": [container]}}


async def test_the_flow_goes_on_under_the_policies(
    real_plane: Real, release: Installed, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    """Also where a ConfigMap is put right, made anew, and taken away."""
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            staged(real_plane, namespaces[1], tmp_path, controller=False, webhook=False, stream=False)
        )
        await stack.enter_async_context(release.program("webhook"))
        await stack.enter_async_context(release.program("controller", "--stream-host=127.0.0.1", "--stream-port=0"))
        await asked(stage)
        await story.an_earlier_lifes_configmap_has_its_name(stage)
        await story.restarted(stage)
        await loses_its_owner(stage, "again")


async def loses_its_owner(stage: Stage, gang: str) -> None:
    """Somebody's edit of a ConfigMap is put right."""
    name = names.config_map_name(gang)
    body = {"metadata": {"ownerReferences": None}}
    await stage.client.patch(CONFIGMAPS, name, stage.namespace, body=body, patch=PatchType.MERGE)

    async def has_one() -> bool:
        return bool((await stage.gate(gang) or {})["metadata"].get("ownerReferences"))

    await eventually(has_one)


GATED = {names.GATED: names.GATED_VALUE}
DENIED: dict[str, tuple[dict[str, str], Json]] = {
    "another image": (GATED, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}),
    "a label": (GATED, {"metadata": {"labels": {"app": "somebody-elses"}}}),
    "a label less": (GATED, {"metadata": {"labels": {names.GATED: None}}}),
    "somebody else's annotation": (GATED, {"metadata": {"annotations": {"theirs": "2"}}}),
    "an annotation less": (GATED, {"metadata": {"annotations": {"theirs": None}}}),
    "another annotation": (GATED, {"metadata": {"annotations": {"more": "1"}}}),
    "a finalizer": (GATED, {"metadata": {"finalizers": ["example.com/stay"]}}),
    "a pod without a gate": ({}, {"metadata": {"annotations": {names.VERDICT: "release"}}}),
}


async def test_what_rbac_would_let_it_change_of_a_pod_is_denied(
    real_plane: Real, release: Installed, namespaces: tuple[str, str]
) -> None:
    _, gangs = namespaces
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(real_plane.client())
        controller = await stack.enter_async_context(release.client(CONTROLLER))
        for number, (what, (labels, change)) in enumerate(DENIED.items()):
            name = f"theirs-{number}"
            await admin.create(PODS, pod(gangs, name, **labels))
            with pytest.raises(Invalid) as denied:
                await controller.patch(PODS, name, gangs, body=change, patch=PatchType.STRATEGIC)
            assert NOT_THE_CONTROLLERS in str(denied.value), what
            # Somebody else may: the policies bind the controller alone.
            await admin.patch(PODS, name, gangs, body=change, patch=PatchType.STRATEGIC, dry_run=True)


async def test_configmaps_that_are_no_gangs_are_denied(
    real_plane: Real, release: Installed, namespaces: tuple[str, str]
) -> None:
    _, gangs = namespaces
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(real_plane.client())
        controller = await stack.enter_async_context(release.client(CONTROLLER))
        theirs = await admin.create(CONFIGMAPS, config_map(gangs, "theirs"))
        alike = await admin.create(CONFIGMAPS, config_map(gangs, names.config_map_name("alike")))
        refusals = [
            controller.create(CONFIGMAPS, config_map(gangs, "mine")),
            controller.replace(CONFIGMAPS, {**theirs, "data": {"a": "b"}}),
            controller.replace(CONFIGMAPS, {**alike, "data": {"a": "b"}}),
            controller.delete(CONFIGMAPS, "theirs", gangs),
            controller.delete(CONFIGMAPS, alike["metadata"]["name"], gangs),
        ]
        for refused in await asyncio.gather(*refusals, return_exceptions=True):
            assert isinstance(refused, Invalid), refused
            assert NOT_THE_CONTROLLERS in str(refused)
