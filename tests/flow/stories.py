"""All that jobset-gate ever does in a cluster, one step after the other: what its rights have to be enough for."""

from collections.abc import Callable

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import (
    CONFIGMAPS,
    CRDS,
    JOBS,
    LEADER_WORKER_SETS,
    MUTATING_WEBHOOKS,
    SECRETS,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from jobset_gate_demo.fake import jobset_crd, manifests
from jobset_gate_demo.fake.kubelet import FakeNode, PodFault, PodMatch
from tests.fakes import lws_standin, start_groups
from tests.fakes.eventually import PATIENCE, eventually
from tests.fakes.jobs import job
from tests.fakes.leader_worker_sets import NAME, leader_worker_set
from tests.fakes.object_view import ObjectView
from tests.flow.environment import Environment, Json, alive, runs
from webhook.registration import MUTATING, VALIDATING

BOTH: list[tuple[Resource, str]] = [(MUTATING_WEBHOOKS, MUTATING), (VALIDATING_WEBHOOKS, VALIDATING)]
FAILING = PodFault(PodMatch(job_index=0, index=0, attempt=0), main_seconds=0.1, exit_code=1)
STUCK = PodFault(PodMatch(job_index=1, index=1), unschedulable="no room")


async def owner_applies_the_crd(stage: Environment) -> int:
    """As JobSet's own manifests are applied, which know nothing of our field. The generation that this made."""
    crd = {"apiVersion": CRDS.api_version, "kind": CRDS.kind, **jobset_crd.manifest()}
    apply = ("apply", "-f", "-", "--server-side", "--field-manager=jobset", "--force-conflicts")
    await stage.plane.kubectl(*apply, stdin=crd)
    return int((await stage.client.get(CRDS, names.JOBSET_CRD))["metadata"]["generation"])


async def held_until_the_last_node_comes(stage: Environment) -> None:
    """Also: its ConfigMap is deleted while it waits."""
    await stage.apply(manifests.gang("late", jobs=2, pods=2))
    await stage.until_condition("late", names.REASON_WAITING, "3/4 pods started")
    await stage.client.delete(CONFIGMAPS, names.config_map_name("late"), stage.namespace)
    await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=1000))
    await stage.until_running(4)
    await stage.until_condition("late", names.REASON_STARTED)
    await tells(stage, "late", names.REASON_STARTED)


async def suspended_and_resumed(stage: Environment) -> None:
    await stage.suspend("late")
    await stage.until(lambda pods: not any(map(alive, pods)))
    await stage.suspend("late", suspended=False)
    await stage.until_running(4)


async def its_configmap_loses_its_owner(stage: Environment) -> None:
    """A user's edit of a ConfigMap is put right."""
    name, body = names.config_map_name("late"), {"metadata": {"ownerReferences": None}}
    await stage.client.patch(CONFIGMAPS, name, stage.namespace, body=body, patch=PatchType.MERGE)

    async def has_one() -> bool:
        return bool((await stage.config_map("late") or {})["metadata"].get("ownerReferences"))

    await eventually(has_one)


async def its_configmap_deleted_after_the_release(stage: Environment) -> None:
    await stage.client.delete(CONFIGMAPS, names.config_map_name("late"), stage.namespace)
    await stage.until_verdict("late", lambda verdict: verdict.kind is VerdictKind.RELEASE)
    await out_of_the_way(stage, "late")


async def restarted(stage: Environment) -> None:
    """By JobSet, since a main container failed."""
    broken = stage.actors.kubelets.inject_fault(FAILING)
    await stage.apply(manifests.gang("broken", jobs=2, pods=2, max_restarts=1))

    def again(pods: list[Json]) -> bool:
        return {pod["metadata"]["labels"][names.JS_RESTART_ATTEMPT] for pod in pods if runs(pod)} == {"1"}

    await stage.until(lambda pods: again(pods) and sum(map(runs, pods)) == 4)
    stage.actors.kubelets.clear_fault(broken)
    await out_of_the_way(stage, "broken")


async def timed_out(stage: Environment) -> None:
    stuck = stage.actors.kubelets.inject_fault(STUCK)
    workers = manifests.replicated_job(replicas=2, parallelism=2, pod={"restartPolicy": "Never"})
    await stage.apply(manifests.jobset("slow", replicated_jobs=[workers], config={names.TIMEOUT_FIELD: 2}))
    await stage.until_verdict("slow", lambda verdict: verdict.kind is VerdictKind.TIMEOUT)
    await stage.until_condition("slow", names.REASON_TIMED_OUT)
    await tells(stage, "slow", names.REASON_TIMED_OUT)
    stage.actors.kubelets.clear_fault(stuck)
    await out_of_the_way(stage, "slow")


async def an_unrelated_configmap_has_its_name(stage: Environment) -> None:
    theirs = await stage.client.create(CONFIGMAPS, _config_map(stage, "taken", {}, {}))
    await stage.apply(manifests.gang("taken", jobs=1, pods=2))
    await stage.until_condition("taken", names.REASON_CONFIG_MAP_CONFLICT)
    assert await stage.config_map("taken") == theirs
    await out_of_the_way(stage, "taken")


async def an_earlier_lifes_configmap_has_its_name(stage: Environment) -> None:
    labels, notes = {names.GATE: names.GATE_VALUE}, {names.JOBSET_UID: "an-earlier-life"}
    await stage.client.create(CONFIGMAPS, _config_map(stage, "again", labels, notes))
    await released(stage, "again")


async def released(stage: Environment, name: str) -> None:
    await stage.apply(manifests.gang(name, jobs=1, pods=2))
    await stage.until_running(2)
    await stage.until_condition(name, names.REASON_STARTED)
    await out_of_the_way(stage, name)


async def a_job_is_a_gang(stage: Environment) -> None:
    """A plain Indexed Job, whose condition `kubectl wait` can wait for."""
    await stage.client.create(JOBS, job(name="alone", namespace=stage.namespace), stage.namespace)
    await stage.plane.kubectl(
        "wait", "--for=condition=GroupStarted", "job/alone", f"--namespace={stage.namespace}", f"--timeout={PATIENCE}s"
    )
    await stage.client.patch(JOBS, "alone", stage.namespace, body={"spec": {"suspend": True}}, patch=PatchType.MERGE)
    await stage.until(lambda pods: not any(map(alive, pods)))


async def a_start_group_starts(stage: Environment) -> None:
    """First its StatefulSet has too few replicas, which is read of it. Its state is on its ConfigMap."""
    await stage.client.create(STATEFUL_SETS, start_groups.stateful_set("starts", 2, size=3), stage.namespace)
    marked = f"{names.START_GROUP}=ring"

    async def cannot_gather() -> bool:
        found = (await stage.client.list(CONFIGMAPS, stage.namespace, label_selector=marked))["items"]
        states = [one["metadata"]["annotations"].get(names.GANG_STATE, "") for one in found]
        return any(it.startswith(names.REASON_CANNOT_GATHER) for it in states)

    await eventually(cannot_gather)
    await stage.client.patch(
        STATEFUL_SETS, "starts", stage.namespace, body={"spec": {"replicas": 3}}, patch=PatchType.MERGE
    )
    started = names.GROUP_STARTED.replace(".", r"\.")
    await stage.plane.kubectl(
        "wait", "configmap", "-l", marked, f"--for=jsonpath={{.metadata.annotations.{started}}}=True",
        f"--namespace={stage.namespace}", f"--timeout={PATIENCE}s",
    )  # fmt: skip
    await stage.client.delete(STATEFUL_SETS, "starts", stage.namespace)
    await stage.until(lambda pods: not any(map(alive, pods)))


async def groups_of_a_leader_worker_set_start(stage: Environment) -> None:
    """Its StatefulSets are deleted by hand: the garbage collector learns of a new kind after half a minute."""
    async with lws_standin.controller(stage.client, stage.namespace):
        made = leader_worker_set(size=2, notes={names.CONFIG: "{}"})
        made["metadata"]["namespace"] = stage.namespace
        made["spec"]["replicas"] = 1
        await stage.client.create(LEADER_WORKER_SETS, made, stage.namespace)
        await stage.plane.kubectl(
            "wait", f"leaderworkersets/{NAME}", f"--for=condition={names.CONDITION}",
            f"--namespace={stage.namespace}", f"--timeout={PATIENCE}s",
        )  # fmt: skip
    await stage.client.delete(LEADER_WORKER_SETS, NAME, stage.namespace)
    for one in (await stage.client.list(STATEFUL_SETS, stage.namespace))["items"]:
        await stage.client.delete(STATEFUL_SETS, one["metadata"]["name"], stage.namespace)
    await stage.until(lambda pods: not any(map(alive, pods)))


async def tells(stage: Environment, name: str, reason: str) -> None:
    """By an Event."""

    async def reported() -> bool:
        return [one for one, _ in await stage.events(name)] == [reason]

    await eventually(reported)


async def out_of_the_way(stage: Environment, name: str) -> None:
    """Its pods are gone: the next step counts those of its own gang. A deleted JobSet's would take a while longer."""
    await stage.suspend(name)
    await stage.until(lambda pods: not any(map(alive, pods)))


def _config_map(stage: Environment, gang: str, labels: Json, notes: Json) -> Json:
    name = names.config_map_name(gang)
    meta = {"name": name, "namespace": stage.namespace, "labels": labels, "annotations": notes}
    return {"metadata": meta, "data": {names.KEY_VERDICT: "release an-earlier-life 0 0 AllPodsStarted\n"}}


async def the_ca_is_lost(stage: Environment, namespace: str, secret: str) -> None:
    """The Secret is deleted; there is another one soon, and the API server trusts the new CA."""
    before = await _bundles(stage)
    await stage.client.delete(SECRETS, secret, namespace)
    async with ObjectView(stage.client, SECRETS, namespace, field_selector=f"metadata.name={secret}") as secrets:
        await secrets.until(lambda all_: any(one.get("data", {}).get("ca.crt") for one in all_), PATIENCE)
    await _until_bundles(stage, lambda bundles: all(bundles) and not set(bundles) & set(before))


async def the_ca_bundle_is_wiped(stage: Environment) -> None:
    await _patch_bundles(stage, {"op": "remove"})
    await _until_bundles(stage, all)


async def cert_manager_injects(stage: Environment, ca_bundle: str) -> None:
    """What its cainjector does, as the annotations of the configurations ask for."""
    await _patch_bundles(stage, {"op": "add", "value": ca_bundle})


async def _patch_bundles(stage: Environment, operation: Json) -> None:
    for resource, name in BOTH:
        webhooks = (await stage.client.get(resource, name))["webhooks"]
        body = [operation | {"path": f"/webhooks/{index}/clientConfig/caBundle"} for index in range(len(webhooks))]
        await stage.client.patch(resource, name, body=body, patch=PatchType.JSON)


async def _bundles(stage: Environment) -> list[str]:
    configurations = [await stage.client.get(resource, name) for resource, name in BOTH]
    return [hook["clientConfig"].get("caBundle") or "" for one in configurations for hook in one["webhooks"]]


async def _until_bundles(stage: Environment, hold: Callable[[list[str]], bool]) -> None:
    async def do() -> bool:
        return hold(await _bundles(stage))

    await eventually(do)
