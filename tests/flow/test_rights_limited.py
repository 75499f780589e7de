"""The chart's policies hold the controller's account to its own annotations and ConfigMaps, and do not stop it.

All else that it does goes on under them in test_rights.py, test_rights_groups.py and test_rights_native.py.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from tests.flow import stories
from tests.flow.environment import Environment, environment, in_force
from tests.flow.installed import CONTROLLER, LIVELY, Installed, eventually, installed
from tests.flow.policies import refused
from tests.plane.planes import Real

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

Json = dict[str, Any]


@pytest.fixture
async def release(real_plane: Real, namespaces: tuple[str, str], tmp_path: Path) -> AsyncIterator[Installed]:
    """With its policies in force."""
    async with installed(real_plane, namespaces[0], tmp_path, *LIVELY) as made:
        yield made


def config_map(namespace: str, name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


def pod(namespace: str, name: str, **labels: str) -> Json:
    container = {"name": "main", "image": "busybox"}
    meta = {"name": name, "namespace": namespace, "labels": labels, "annotations": {"theirs": "1"}}
    return {"metadata": meta, "spec": {"containers": [container]}}


async def test_a_configmap_is_put_right_created_again_and_taken_away_under_the_policies(
    real_plane: Real, release: Installed, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            environment(real_plane, namespaces[1], tmp_path, controller=False, webhook=False, stream=False)
        )
        await stack.enter_async_context(release.program("webhook"))
        await stack.enter_async_context(release.program("controller", "--stream-host=127.0.0.1", "--stream-port=0"))
        await in_force(stage)
        await stories.an_earlier_lifes_configmap_has_its_name(stage)
        await stories.restarted(stage)
        await loses_its_owner(stage, "again")


async def loses_its_owner(stage: Environment, gang: str) -> None:
    """A user's edit of a ConfigMap is put right."""
    name = names.config_map_name(gang)
    body = {"metadata": {"ownerReferences": None}}
    await stage.client.patch(CONFIGMAPS, name, stage.namespace, body=body, patch=PatchType.MERGE)

    async def has_one() -> bool:
        return bool((await stage.config_map(gang) or {})["metadata"].get("ownerReferences"))

    await eventually(has_one)


GATED = {names.GATED: names.GATED_VALUE}
DENIED: list[tuple[dict[str, str], Json]] = [
    (GATED, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}),
    (GATED, {"spec": {"activeDeadlineSeconds": 1}}),
    (GATED, {"metadata": {"labels": {"app": "other-client"}}}),
    (GATED, {"metadata": {"labels": {names.GATED: None}}}),
    (GATED, {"metadata": {"annotations": {"theirs": "2"}}}),
    (GATED, {"metadata": {"annotations": {"theirs": None}}}),
    (GATED, {"metadata": {"annotations": {"more": "1"}}}),
    (GATED, {"metadata": {"annotations": {names.POD_GROUP_TAKEN_BACK: "x.1"}}}),
    (GATED, {"metadata": {"finalizers": ["example.com/stay"]}}),
    (GATED, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "none"}]}}),
    ({}, {"metadata": {"annotations": {names.VERDICT: "release"}}}),
    ({}, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}),
]
"""The labels of a pod, and what its account would do to it."""


async def test_a_pod_s_verdict_and_nothing_else_of_it(
    real_plane: Real, release: Installed, namespaces: tuple[str, str]
) -> None:
    _, gangs = namespaces
    async with real_plane.client() as admin, release.client(CONTROLLER) as controller:
        for number, (labels, change) in enumerate(DENIED):
            name = f"theirs-{number}"
            await admin.create(PODS, pod(gangs, name, **labels))
            with refused():
                await controller.patch(PODS, name, gangs, body=change, patch=PatchType.STRATEGIC)
            # Another client may: the policies bind the controller alone.
            await admin.patch(PODS, name, gangs, body=change, patch=PatchType.STRATEGIC, dry_run=True)
            with refused():
                await controller.delete(PODS, name, gangs)
        verdict = {"metadata": {"annotations": {names.VERDICT: "release", names.NUDGE: "1"}}}
        await controller.patch(PODS, "theirs-0", gangs, body=verdict, patch=PatchType.MERGE)


async def test_its_own_configmaps_and_no_other(
    real_plane: Real, release: Installed, namespaces: tuple[str, str]
) -> None:
    """On some clusters aws-auth says who is an administrator, and coredns leads everybody's names."""
    _, gangs = namespaces
    async with real_plane.client() as admin, release.client(CONTROLLER) as controller:
        theirs = await admin.create(CONFIGMAPS, config_map(gangs, "theirs"))
        alike = await admin.create(CONFIGMAPS, config_map(gangs, names.config_map_name("alike")))
        record = await admin.create(CONFIGMAPS, config_map(gangs, f"{names.POD_GROUP_CONFIG_MAP_PREFIX}alike"))
        login = await admin.get(CONFIGMAPS, "extension-apiserver-authentication", "kube-system")
        for name in ("aws-auth", "coredns"):
            with refused():
                await controller.create(CONFIGMAPS, config_map("kube-system", name))
        for name in ("mine", names.config_map_name("mine"), f"{names.POD_GROUP_CONFIG_MAP_PREFIX}mine"):
            with refused():
                await controller.create(CONFIGMAPS, config_map(gangs, name))
        for one in (theirs, alike, record, login):
            with refused():
                await controller.replace(CONFIGMAPS, {**one, "data": {"a": "b"}})
            with refused():
                await controller.delete(CONFIGMAPS, one["metadata"]["name"], one["metadata"]["namespace"])
            labels = {"labels": {names.GATE: names.GATE_VALUE, names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE}}
            with refused():
                await controller.replace(CONFIGMAPS, {**one, "metadata": one["metadata"] | labels})
        ours = await controller.create(
            CONFIGMAPS, config_map(gangs, names.config_map_name("ours"), **{names.GATE: names.GATE_VALUE})
        )
        await controller.replace(CONFIGMAPS, {**ours, "data": {names.KEY_VERDICT: "release"}})
        await controller.delete(CONFIGMAPS, ours["metadata"]["name"], gangs)
