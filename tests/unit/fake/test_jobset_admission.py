"""JobSet's own webhooks, called by the API server, on both control planes."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import JOBSETS, PODS
from tests.unit.fake.gates import plain
from tests.unit.fake.world import FakeClusterStory, Run, running

TEMPLATE = "/spec/replicatedJobs/0/template/spec/template"
SCHEDULING = {
    "annotations": ("metadata", {names.EPOCH: "1"}),
    "labels": ("metadata", {"pool": "x"}),
    "nodeSelector": ("spec", {"zone": "a"}),
    "tolerations": ("spec", [{"key": "spot", "operator": "Exists"}]),
    "schedulingGates": ("spec", [{"name": "example.com/wait"}]),
}


async def patch(world: FakeClusterStory, *operations: dict[str, Any]) -> dict[str, Any]:
    return await world.client.patch(JOBSETS, "set", world.namespace, body=list(operations), patch=PatchType.JSON)


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def change(field: str) -> dict[str, Any]:
    """An operation on the manifest of `suspended`, whose template has a metadata and a spec."""
    parent, value = SCHEDULING[field]
    return add(f"{TEMPLATE}/{parent}/{field}", value)


def set_with_metadata(**spec: Any) -> dict[str, Any]:
    job = manifests.replicated_job(pod_metadata={"labels": {"a": "b"}})
    return manifests.jobset("set", replicated_jobs=[job], **spec)


def test_defaults_are_filled_in_on_create(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        policy: dict[str, Any] = {"maxRestarts": 1, "rules": [{"action": "FailJobSet"}]}
        made = (await world.create(JOBSETS, plain(suspend=True, failurePolicy=policy)))["spec"]
        assert made["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"
        assert made["failurePolicy"]["restartStrategy"] == "Recreate"
        assert made["successPolicy"] == {"operator": "All"}
        assert made["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
        assert made["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
        job = made["replicatedJobs"][0]
        assert job["groupName"] == "default"
        assert job["template"]["spec"]["completionMode"] == "Indexed"
        assert job["template"]["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"

    run(story)


def test_what_is_given_stays_as_it_is(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        job = manifests.replicated_job(job={"completionMode": "NonIndexed"}, pod={"restartPolicy": "Never"})
        given = manifests.jobset("set", replicated_jobs=[job], network={"enableDNSHostnames": False}, suspend=True)
        made = (await world.create(JOBSETS, given))["spec"]
        assert made["network"] == {"enableDNSHostnames": False, "publishNotReadyAddresses": True}
        spec = made["replicatedJobs"][0]["template"]["spec"]
        assert spec["completionMode"] == "NonIndexed"
        assert spec["template"]["spec"]["restartPolicy"] == "Never"

    run(story)


def test_scheduling_fields_change_only_around_a_suspend(run: Run) -> None:
    """Refused while it runs; allowed in the suspending write, while suspended, and in the resuming write."""
    changes = [change(field) for field in SCHEDULING]
    removals = [{"op": "remove", "path": one["path"]} for one in changes]

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, set_with_metadata())
        await world.until(PODS, lambda pods: len(running(pods)) == 1)
        for one in changes:
            with pytest.raises(Invalid, match=r"spec\.replicatedJobs"):
                await patch(world, one)
        await patch(world, *changes, add("/spec/suspend", value=True))
        await patch(world, *removals)
        await patch(world, *changes, add("/spec/suspend", value=False))
        for one in removals:
            with pytest.raises(Invalid, match=r"spec\.replicatedJobs"):
                await patch(world, one)

    run(story)


def test_the_rest_of_a_replicated_job_never_changes(run: Run) -> None:
    operations = (
        add(f"{TEMPLATE}/spec/containers/0/image", "other"),
        add(f"{TEMPLATE}/spec/initContainers", [{"name": "late", "image": "busybox"}]),
        add("/spec/replicatedJobs/0/replicas", 7),
        add("/spec/replicatedJobs/-", manifests.replicated_job("more")),
        add("/spec/replicatedJobs/0/template/metadata", {"labels": {"late": "yes"}}),
    )

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, plain(suspend=True))
        for operation in operations:
            with pytest.raises(Invalid, match=r"vjobset\.kb\.io.*spec\.replicatedJobs: .*immutable"):
                await patch(world, operation)

    run(story)


def test_names_that_would_get_too_long_are_refused_also_when_they_are_generated(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        with pytest.raises(Invalid, match="pod names would exceed 63"):
            await world.create(JOBSETS, plain("x" * 50))
        generated = plain()
        generated["metadata"] = {"generateName": "y" * 50}
        with pytest.raises(Invalid, match="pod names would exceed 63"):
            await world.create(JOBSETS, generated)

    run(story)
