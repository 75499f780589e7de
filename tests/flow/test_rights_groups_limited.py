"""examples/limit-controller.yaml holds the controller to members of groups, and does not stop it in what it does."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.groups.model import Way
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.errors import ApiError, Invalid
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, PODS
from tests.flow import groups_story as story
from tests.flow.groups import manifests
from tests.flow.groups.stage import group_stage
from tests.flow.installed import CONTROLLER, LIVELY, Installed, eventually, installed
from tests.house.files import ROOT
from tests.support.planes import Real, fresh_name

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

Json = dict[str, Any]
FILE = ROOT / "examples" / "limit-controller.yaml"
DENIED = "denied request: the controller "
GATE = [{"name": "example.com/theirs"}]
MEMBER = {"labels": {names.GANG: "0" * 32}}
STATUS = {"conditions": [{"type": "Ready", "status": "True"}]}
UNHOLD: Json = {"schedulingGates": [{"$patch": "delete", "name": "example.com/theirs"}]}


@pytest.fixture
async def places(scheduled_plane: Real) -> AsyncIterator[tuple[str, str]]:
    both = fresh_name(), fresh_name()
    for name in both:
        await scheduled_plane.make_namespace(name)
    yield both
    for name in both:
        await scheduled_plane.drop_namespace(name)


@pytest.fixture
async def release(scheduled_plane: Real, places: tuple[str, str], tmp_path: Path) -> AsyncIterator[Installed]:
    """A release with the policies of the example, for its account, in force."""
    own, theirs = places
    text = FILE.read_text().replace("jobset-gate-system:jobset-gate-controller", f"{own}:{CONTROLLER}")
    async with installed(scheduled_plane, own, tmp_path, *LIVELY) as made:
        await scheduled_plane.kubectl("apply", "-f", "-", stdin=text)
        try:
            async with made.client(CONTROLLER) as controller, scheduled_plane.client() as admin:
                await admin.create(PODS, pod("probe"), theirs)

                async def refused() -> bool:
                    body: Json = {"status": STATUS}
                    kind = PatchType.STRATEGIC
                    tried = [
                        controller.create(CONFIGMAPS, {"metadata": {"name": "probe"}}, theirs, dry_run=True),
                        controller.patch(
                            PODS, "probe", theirs, body=body, patch=kind, subresource="status", dry_run=True
                        ),
                    ]
                    return all([await _denied(one) for one in tried])

                await eventually(refused)
                await admin.delete(PODS, "probe", theirs, grace_seconds=0)
            yield made
        finally:
            await scheduled_plane.kubectl("delete", "-f", "-", stdin=text)


async def _denied(write: Any) -> bool:
    try:
        await write
    except ApiError as error:
        return DENIED in str(error)
    return False


def pod(name: str, meta: Json | None = None, gates: Json | None = None) -> Json:
    """Nobody schedules it."""
    spec: Json = {"containers": [{"name": "main", "image": "busybox"}], "schedulingGates": gates or GATE}
    return {"metadata": {"name": name, **(meta or {})}, "spec": spec}


async def test_groups_are_opened_and_taken_back_under_the_policies(
    scheduled_plane: Real, release: Installed, places: tuple[str, str], tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            group_stage(
                scheduled_plane, places[1], tmp_path, nodes={"n": str(story.CPU)},
                controller=False, webhook=False, jobsets=True,
            )
        )  # fmt: skip
        await stack.enter_async_context(release.program("webhook"))
        await stack.enter_async_context(release.program("controller", "--stream-host=127.0.0.1", "--stream-port=0"))
        await story.pods_are_held(stage)
        await story.opened(stage, Way.ALIBABA)
        await story.its_record_goes_with_its_last_member(stage, "opened-alibaba", Way.ALIBABA)
        for kind in ("JobSet", "ReplicaSet"):
            await story.taken_back(stage, kind)
        await story.taken_back(stage, "Job", podFailurePolicy=story.FAIL_JOB)


CHANGES: dict[str, tuple[Json | None, Json, str | None]] = {
    "a pod of no group": (None, {"metadata": {"annotations": {names.GANG_OPENED: "1"}}}, None),
    "somebody else's gate": (MEMBER, {"spec": UNHOLD}, None),
    "another image": (MEMBER, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}, None),
    "a label less": (MEMBER, {"metadata": {"labels": {names.GANG: None}}}, None),
    "another annotation": (MEMBER, {"metadata": {"annotations": {"more": "1"}}}, None),
    "a finalizer": (MEMBER, {"metadata": {"finalizers": ["example.com/stay"]}}, None),
    "released with a label more": (
        MEMBER,
        {"metadata": {"labels": {"app": "theirs"}, "annotations": {names.GANG_TAKEN_BACK: "x.1"}}},
        None,
    ),
    "another condition": (MEMBER, {"status": STATUS}, "status"),
    "another phase": (MEMBER, {"status": {"phase": "Failed"}}, "status"),
    "the status of a pod of no group": (None, {"status": STATUS}, "status"),
}


async def test_what_rbac_would_let_it_do_to_others_is_denied(
    scheduled_plane: Real, release: Installed, places: tuple[str, str]
) -> None:
    _, theirs = places
    async with scheduled_plane.client() as admin, release.client(CONTROLLER) as controller:
        for number, (what, (meta, change, sub)) in enumerate(CHANGES.items()):
            name = f"theirs-{number}"
            await admin.create(PODS, pod(name, meta), theirs)
            with pytest.raises(Invalid) as denied:
                await controller.patch(PODS, name, theirs, body=change, patch=PatchType.STRATEGIC, subresource=sub)
            assert DENIED in str(denied.value), what
            # Somebody else may: the policies bind the controller alone.
            await admin.patch(PODS, name, theirs, body=change, patch=PatchType.STRATEGIC, subresource=sub, dry_run=True)
        with pytest.raises(Invalid, match=DENIED):
            await controller.delete(PODS, "theirs-0", theirs)
        await controller.delete(PODS, "theirs-1", theirs, grace_seconds=0)
        job = manifests.job("theirs", "theirs", 1)
        job["spec"]["suspend"] = True
        await admin.create(JOBS, job, theirs)
        with pytest.raises(Invalid, match=DENIED):
            await controller.patch(JOBS, "theirs", theirs, body={"spec": {"parallelism": 5}}, patch=PatchType.MERGE)
        theirs_alone = await admin.create(CONFIGMAPS, {"metadata": {"name": "jobset-gate-gang-theirs"}}, theirs)
        with pytest.raises(Invalid, match=DENIED):
            await controller.delete(CONFIGMAPS, theirs_alone["metadata"]["name"], theirs)
