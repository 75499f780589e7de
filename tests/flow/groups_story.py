"""All that is ever done about pod groups, one thing after the other: what tests of the chart's rights play."""

import asyncio
from typing import Any, Final

from controllers.podgroups import crds
from jobset_gate import names
from jobset_gate.kube.errors import ApiError
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, JOBS, JOBSETS, PODS
from jobset_gate.podgroups.model import Format
from tests.fakes.crds import remove_crds
from tests.fakes.eventually import PATIENCE
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated, runs
from tests.flow.podgroups.environment import GroupEnvironment

Json = dict[str, Any]
LIMIT: Final = 2
FAIL_JOB: Final = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}]}
"""A Job with it fails for whatever its pods end with, unless it is made to forget them."""
CPU: Final = 4
"""Of the one node."""


async def kinds_are_gone(stage: GroupEnvironment) -> None:
    """As in a cluster into which nobody has brought them."""
    await remove_crds(stage.client, *crds.GROUPS)


async def kinds_are_made(stage: GroupEnvironment) -> None:
    """By the controller, as ours."""
    for name in crds.GROUPS:
        await stage.plane.kubectl("wait", "--for=create", f"crd/{name}", f"--timeout={PATIENCE}s")
        await stage.plane.kubectl("wait", "--for=condition=Established", f"crd/{name}", f"--timeout={PATIENCE}s")
        assert crds.is_ours(await stage.client.get(CRDS, name))


async def pods_are_held(stage: GroupEnvironment) -> None:
    """The API server asks the webhook about them; nothing tells when it begins to."""
    probe = manifests.pod("probe", "probe")
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                if gated(await stage.client.create(PODS, probe, stage.namespace, dry_run=True)):
                    return
            except ApiError:
                pass  # its webhook does not answer yet
            await asyncio.sleep(0.1)


async def opened(stage: GroupEnvironment, way: Format) -> None:
    """A group of two waits for the second, runs, and is gone."""
    name = f"opened-{way.value}"
    minimum = 2 if way in manifests.MINIMUM_ON_POD else None
    if way in manifests.API_GROUP:
        await stage.make_group(name, 2, way)
    await stage.create(manifests.pod(f"{name}-0", name, way, minimum))
    await stage.until(lambda pods: any(map(gated, pods)))
    await stage.create(manifests.pod(f"{name}-1", name, way, minimum))
    await stage.until_bound(2, name, way)
    if way in manifests.API_GROUP:
        await stage.until_group(name, lambda it: bool(it.get("status")), way)
    else:
        await stage.until_record(name, way, '"satisfied":1')
    for number in range(2):
        await stage.delete_pod(f"{name}-{number}", grace_seconds=0)


async def waits_for_room(stage: GroupEnvironment) -> None:
    """A group that is too large is reported on its ConfigMap: there is nothing else."""
    big = [manifests.pod(f"big-{n}", "big", Format.ALIBABA, CPU + 1) for n in range(CPU + 1)]
    await stage.create(*big)
    await stage.until_event("big-0", names.REASON_WAITING_FOR_CAPACITY)
    for pod in big:
        await stage.delete_pod(pod["metadata"]["name"], grace_seconds=0)


async def taken_back(stage: GroupEnvironment, kind: str, **more: Any) -> None:
    """Two pods that shall not be on one node, whose there is one only. Anti-affinity is tried, not counted with."""
    name = f"back-{kind.lower()}" + ("-more" if more else "")
    await stage.make_group(name, 2, wait=LIMIT)
    owner = _owner(kind, name)
    await stage.apply({**owner, "spec": owner["spec"] | more})
    first = await stage.until(lambda pods: sum(map(runs, manifests.of_group(pods, name))) == 1)
    old = {one["metadata"]["uid"] for one in manifests.of_group(first, name)}

    def again(pods: list[Json]) -> bool:
        new = [one for one in manifests.of_group(pods, name) if one["metadata"]["uid"] not in old]
        return len(new) == 2 and all(map(gated, new)) and len(manifests.of_group(pods, name)) == 2

    await stage.until(again)
    await stage.plane.kubectl("delete", kind.lower(), name, "-n", stage.namespace, "--wait")


FEW: Final = ("StatefulSet", "ReplicaSet", "ReplicationController", "Job")


async def too_few_are_made(stage: GroupEnvironment) -> None:
    """By owners that never make so many pods."""
    for kind in FEW:
        name = f"few-{kind.lower()}"
        await stage.make_group(name, 3)
        await stage.apply(_owner(kind, name, spread=False))


async def their_owners_are_read(stage: GroupEnvironment) -> None:
    """When nothing has come for half a minute."""
    for kind in FEW:
        await stage.until_event(f"few-{kind.lower()}", names.REASON_CANNOT_GATHER)


async def left_alone(stage: GroupEnvironment) -> None:
    """What a controller leaves behind that goes for good in the middle of things."""
    await stage.create(*(manifests.pod(f"left-{n}", "left", Format.ALIBABA, 3) for n in range(2)))
    await stage.until(lambda pods: sum(map(gated, pods)) >= 2)
    mark = {names.POD_GROUP_SUSPENDED: f"{stage.label('left', Format.ALIBABA)}.1"}
    meta: Json = {"name": "left", "labels": mark, "annotations": mark}
    for manifest in (manifests.job("left", "", 2), _jobset(manifests.job("left", "", 2))):
        await stage.apply({**manifest, "metadata": meta, "spec": {**manifest["spec"], "suspend": True}})
    record = {names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE}
    await stage.client.create(CONFIGMAPS, {"metadata": {"name": "left", "labels": record}}, stage.namespace)
    for way in manifests.API_GROUP:
        await stage.make_group("left", 3, way, annotations={names.POD_GROUP_RECORD: "{}"})


async def nothing_is_left(stage: GroupEnvironment) -> None:
    """Afterwards."""
    pods = (await stage.client.list(PODS, stage.namespace))["items"]
    assert [pod["metadata"] for pod in pods if gated(pod) and not pod["metadata"].get("deletionTimestamp")] == []
    for resource in (JOBS, JOBSETS):
        found = await stage.client.get(resource, "left", stage.namespace)
        assert not found["spec"].get("suspend")
    maps = (await stage.client.list(CONFIGMAPS, stage.namespace))["items"]
    assert "left" not in [one["metadata"]["name"] for one in maps], "the record is still there"
    for way in manifests.API_GROUP:
        assert names.POD_GROUP_RECORD not in (await stage.group("left", way))["metadata"].get("annotations", {})


# --- Manifests -------------------------------------------------------------------------------------------------------


def _owner(kind: str, name: str, *, spread: bool = True) -> Json:
    """It makes two pods of the group that has its name; `spread`: no two of them on one node."""
    alike = {"matchLabels": manifests.membership_metadata(name)["labels"]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": alike}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    job = manifests.job(name, name, 2, template=apart if spread else {})
    if kind == "JobSet":
        return _jobset(job)
    return job if kind == "Job" else manifests.owner(kind, job)


def _jobset(job: Json) -> Json:
    spec = {"replicatedJobs": [{"name": "work", "replicas": 1, "template": {"spec": job["spec"]}}]}
    return {"apiVersion": names.JOBSET_API_VERSION, "kind": "JobSet", "metadata": job["metadata"], "spec": spec}
