"""What the chart gives for pod groups is enough for all that is ever done about them, and nothing of it is needless."""

from contextlib import AsyncExitStack
from typing import Any, Final

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import MUTATING_WEBHOOKS
from jobset_gate.podgroups.model import Format
from tests.flow import groups_story as story
from tests.flow import rights
from tests.flow.installed import CONTROLLER, LIVELY, RELEASE, WEBHOOK, Installed, installed, rendered
from tests.flow.podgroups.environment import group_environment
from tests.flow.rights import Right
from tests.plane.planes import Real

pytestmark = [pytest.mark.real, pytest.mark.parametrize("plane", ["scheduled"], indirect=True)]

UNGATE: Final = f"{RELEASE}-ungate"
ON_CONFLICT: Final = frozenset(
    # Asked for only where another client writes the same object in the same moment: what stands there now?
    {Right(group, "podgroups", "get") for group in ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")}
    | {Right("incubator.scheduling.k8s.io", "podgroups", "get"), Right("", "pods", "get")}
)
RESUMED_AGAIN: Final = frozenset({Right("batch", "jobs", "get"), Right("jobset.x-k8s.io", "jobsets", "get")})
"""The same of the Job that ungates."""


async def test_the_whole_life_of_groups_takes_exactly_the_rights_that_are_given_for_it(
    plane: Real, namespace: str
) -> None:
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            group_environment(
                plane, namespace, nodes={"n": str(story.CPU)},
                controller=False, webhook=False, jobsets=True,
            )
        )  # fmt: skip
        await story.kinds_are_gone(stage)
        release = await stack.enter_async_context(installed(plane, *LIVELY))
        await stack.enter_async_context(release.program("webhook"))
        options = ("--stream-host=127.0.0.1", "--stream-port=0")
        controller = await stack.enter_async_context(release.program("controller", *options))
        await story.kinds_are_made(stage)
        await story.pods_are_held(stage)
        await story.too_few_are_made(stage)
        for way in Format:
            await story.opened(stage, way)
        await stage.until_forgotten("opened-alibaba", Format.ALIBABA)
        await story.waits_for_room(stage)
        for kind in ("Job", "JobSet", "ReplicaSet"):
            await story.taken_back(stage, kind)
        await story.taken_back(stage, "Job", podFailurePolicy=story.FAIL_JOB)
        await story.their_owners_are_read(stage)
        await story.left_alone(stage)
        assert await controller.stop() == 0
        # As `helm uninstall` does, first of all: a pod that its owner creates later is not held any more.
        await stage.client.delete(MUTATING_WEBHOOKS, names.POD_WEBHOOK)
        code, said = await release.once(UNGATE, "-m", "jobset_gate.cli", *arguments(release))
        assert code == 0, said
        await story.nothing_is_left(stage)
    without = await rendered(release.namespace, "groups.enabled=false", *LIVELY)
    for account, spared in ((CONTROLLER, ON_CONFLICT), (WEBHOOK, frozenset()), (UNGATE, RESUMED_AGAIN)):
        rights.check(release, account, without, spared)


def arguments(release: Installed) -> list[str]:
    """Of the Job that runs after uninstalling."""
    (job,) = [one for one in release.manifests if (one["kind"], one["metadata"]["name"]) == ("Job", UNGATE)]
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == UNGATE
    return [str(one) for one in spec["containers"][0]["args"]]
