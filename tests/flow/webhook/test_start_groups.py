"""K3, K8: pods of start groups, on a real API server and with the real StatefulSet controller."""

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.fake.view import ObjectView
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Invalid
from jobset_gate.kube.resources import CONFIGMAPS, NAMESPACES, PODS, STATEFUL_SETS
from jobset_gate.settings import Barrier, Gangs, Settings
from tests.fakes import start_groups
from tests.fakes.admission_server import RequestCounter, registered_for_pods, registered_for_start_groups
from tests.fakes.grouped_pods import gates
from tests.fakes.jobsets import Json
from tests.fakes.other_webhook import another_webhook
from tests.fakes.wire_objects import owner
from tests.flow.environment import PATIENCE
from tests.plane.planes import Plane
from webhook.registration import POD_RULE
from webhook.server import WebhookServer

pytestmark = pytest.mark.real

BASE = "http://gate.system.svc:8082"
GANGS = Gangs(sources=("jobset", "job", "startgroup"))
SETTINGS = Settings(gangs=GANGS, barrier=Barrier(stream_url=BASE, image="b:1"))
OWNER = owner("StatefulSet", "set", "0b1c6f5e-0000-4000-8000-000000000001")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


class Pods:
    """The pods of one namespace for which the webhook is registered."""

    def __init__(self, client: Client, namespace: str, server: WebhookServer) -> None:
        self.client, self.namespace, self.server = client, namespace, server
        self.counter = RequestCounter(server)

    async def create(
        self, name: str = "set-0", *, labels: Json | None = None, notes: Json | None = None, **spec: Any
    ) -> Json:
        """A pod of the start group; `labels` and `notes` are added."""
        given = start_groups.pod(name, OWNER, notes=notes, **spec)
        given["metadata"]["labels"] |= labels or {}
        return await self.store(given)

    async def store(self, given: Json, **more: Any) -> Json:
        return await self.client.create(PODS, given, self.namespace, **more)


@pytest.fixture
async def pods(client: Client, namespace: str) -> AsyncIterator[Pods]:
    async with registered_for_start_groups(client, namespace, SETTINGS) as server:
        yield Pods(client, namespace, server)


def barriers(made: Json) -> list[str]:
    return [it["name"] for it in made["spec"].get("initContainers") or ()]


async def test_each_pod_of_a_stateful_set_gets_the_same_barrier_and_its_own_token(pods: Pods) -> None:
    """Also without the token of its ServiceAccount, and without the verdict that its template forges."""
    template = start_groups.pod("", OWNER, size=3, notes={names.VERDICT: "release x 0 0 AllPodsStarted"})
    del template["metadata"]["name"], template["metadata"]["ownerReferences"]
    labels = template["metadata"]["labels"]
    spec = {"replicas": 3, "podManagementPolicy": "Parallel", "selector": {"matchLabels": labels}, "serviceName": "s"}
    body = {"metadata": {"name": "set"}, "spec": spec | {"template": template}}
    await pods.client.create(STATEFUL_SETS, body, pods.namespace)
    async with ObjectView(pods.client, PODS, pods.namespace) as view:
        found = list(await view.until(lambda it: len(it) == 3, PATIENCE))
    assert pods.counter.sent() == 3, "one call for each pod"
    gates = [it["spec"]["initContainers"] for it in found]
    assert gates[0] == gates[1] == gates[2]
    ((gate,),) = gates[:1]
    mounts = {it["mountPath"]: (it["name"], it.get("readOnly", False)) for it in gate["volumeMounts"]}
    assert mounts == {
        names.MOUNT_PATH: (names.VOLUME, True),
        "/var/run/secrets/kubernetes.io/serviceaccount": (names.VOLUME, True),
        names.STATE_PATH: (names.STATE_VOLUME, False),
    }
    env = {it["name"]: it.get("value") for it in gate["env"]}
    assert env[names.ENV_STREAM] == f"{BASE}/v1/pods/{pods.namespace}/$(JOBSET_GATE_TOKEN)"
    notes = [it["metadata"]["annotations"] for it in found]
    assert len({it[names.TOKEN] for it in notes}) == 3
    assert not any(names.VERDICT in it for it in notes)
    volumes = {it["name"]: it for it in found[0]["spec"]["volumes"]}
    assert volumes[names.STATE_VOLUME]["emptyDir"] == {"sizeLimit": "1Mi"}
    assert [list(it) for it in volumes[names.VOLUME]["projected"]["sources"]] == [["downwardAPI"]]
    assert {names.GATED, names.EPOCH}.isdisjoint(found[0]["metadata"]["labels"] | notes[0])


async def test_all_that_is_wrong_is_named_in_one_answer(pods: Pods) -> None:
    with pytest.raises(Invalid) as refusal:
        await pods.create(
            labels={"ray.io/cluster": "c"},
            notes={names.START_SIZE: "many", names.CONFIG: '{"timeoutAfterSeconds": 9}'},
        )
    for part in (
        'metadata.annotations[jobset-gate.dev/start-size]: "many": must be a number from 1 to 10000',
        'metadata.labels[ray.io/cluster]: "c": Ray workers wait for a running head',
        'spec.restartPolicy: "Always": with it a gang that timed out would restart for ever',
    ):
        assert part in refusal.value.message
    orphan = start_groups.pod("orphan", OWNER)
    del orphan["metadata"]["ownerReferences"]
    with pytest.raises(Invalid, match=r"metadata\.ownerReferences: null: nothing distinguishes one run from the next"):
        await pods.store(orphan)


def others() -> list[Json]:
    """Pods without our label, of gated JobSets and Jobs, whatever their other keys; and one without any metadata."""
    odd: list[Json] = [{}, {"labels": None}, {"annotations": None}, {"labels": {"app": "web"}}]
    odd.append({"annotations": {names.START_SIZE: "2", names.START_GROUP: "no label"}})
    odd += [{"labels": {names.START_GROUP: "ring", names.GATED: value}} for value in ("true", "job")]
    odd += [{"labels": {names.GATED: value}} for value in ("true", "job")]
    given = []
    for number, meta in enumerate(odd):
        made = copy.deepcopy(start_groups.pod(f"other-{number}", OWNER))
        made["metadata"] = {"name": f"other-{number}"} | meta
        given.append(made)
    return given


async def test_a_dead_webhook_stops_pods_of_start_groups_alone(pods: Pods) -> None:
    kept = await pods.client.create(CONFIGMAPS, {"metadata": {"name": "kept"}}, pods.namespace)
    owned_by = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kept", "uid": kept["metadata"]["uid"]}
    await pods.store(start_groups.pod("before", owned_by | {"controller": True}))
    pods.counter.sent()
    for given in others():
        assert barriers(await pods.store(given, dry_run=True)) == []
    assert pods.counter.sent() == 0
    await pods.server.stop()
    for given in others():
        await pods.store(given)
    with pytest.raises(ApiError, match=r"start-groups\.jobset-gate\.dev"):
        await pods.create()
    note = {"metadata": {"annotations": {names.VERDICT: "x"}}}
    await pods.client.patch(PODS, "before", pods.namespace, body=note, patch=PatchType.MERGE)
    await pods.client.delete(PODS, "before", pods.namespace)


async def test_under_ignore_a_dead_webhook_lets_pods_in_without_a_barrier(client: Client, namespace: str) -> None:
    lenient = Settings(gangs=GANGS.model_copy(update={"pod_failure_policy": "Ignore"}))
    async with registered_for_start_groups(client, namespace, lenient) as server:
        pods = Pods(client, namespace, server)
        assert barriers(await pods.create("before")) == [names.BARRIER_CONTAINER]
        await server.stop()
        assert barriers(await pods.create("after")) == []


async def test_after_another_webhook_a_second_call_adds_nothing(pods: Pods) -> None:
    """It changes what it finds in every container, and adds a volume, like a mesh or a cloud's identities."""
    seen: list[Json] = []

    def change(it: Json) -> list[Json]:
        if any(volume["name"] == "identity" for volume in it["spec"]["volumes"]):
            return []
        seen.append(it)
        inits = range(len(it["spec"].get("initContainers") or ()))
        paths = ["/spec/containers/0", *(f"/spec/initContainers/{number}" for number in inits)]
        mount = {"name": "identity", "mountPath": "/identity"}
        return [
            {"op": "add", "path": "/spec/volumes/-", "value": {"name": "identity", "emptyDir": {}}},
            *({"op": "replace", "path": f"{path}/image", "value": "mirror.local/x"} for path in paths),
            *({"op": "add", "path": f"{path}/volumeMounts/-", "value": mount} for path in paths),
        ]

    async with another_webhook(pods.client, pods.namespace, "zzz-identity", change, rule=POD_RULE):
        while not seen:
            await pods.store(start_groups.pod("probe", OWNER), dry_run=True)
        seen.clear()
        pods.counter.sent()
        made = await pods.create()
    (first,) = seen
    assert pods.counter.sent() == 2, "before and after the other one"
    assert made["metadata"]["annotations"] == first["metadata"]["annotations"]
    (before,), (after,) = first["spec"]["initContainers"], made["spec"]["initContainers"]
    assert (before["name"], before["env"]) == (after["name"], after["env"])
    assert after["image"] == "mirror.local/x"
    assert [it["name"] for it in made["spec"]["volumes"]] == [
        *(it["name"] for it in first["spec"]["volumes"]),
        "identity",
    ]


async def test_a_pod_may_be_held_for_a_pod_group_too(pods: Pods) -> None:
    """The webhook of groups is called after that of barriers, which has nothing to do a second time."""
    group = {names.KOORDINATOR_NAME: "g", names.KOORDINATOR_MINIMUM: "2"}
    async with registered_for_pods(pods.client, pods.namespace, SETTINGS):
        pods.counter.sent()
        made = await pods.create(notes=group)
        assert pods.counter.sent() == 2
        with pytest.raises(Invalid, match="must equal what the start barrier waits for: 3 pods here, 2 there"):
            await pods.create("wrong", notes=group | {names.KOORDINATOR_MINIMUM: "3"})
    assert (barriers(made), gates(made)) == ([names.BARRIER_CONTAINER], [names.POD_GROUP_GATE])
    assert made["metadata"]["annotations"][names.TOKEN]


async def test_a_mistyped_annotation_is_shown_to_who_creates_the_pod(pods: Pods, plane: Plane) -> None:
    given = start_groups.pod("typo", OWNER, notes={"jobset-gate.dev/bypas": "true"})
    ran = await plane.kubectl("create", "-n", pods.namespace, "-f", "-", stdin=given)
    assert ran.stderr.count("Warning: metadata.annotations[jobset-gate.dev/bypas]: unknown annotation") == 1
    assert "did you mean jobset-gate.dev/bypass?" in ran.stderr


async def test_pod_security_restricted_lets_it_in(pods: Pods) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await pods.client.patch(NAMESPACES, pods.namespace, body=label, patch=PatchType.MERGE)
    with pytest.raises(ApiError, match="violates PodSecurity"):
        await pods.create()
    main = {"name": "main", "image": "train:1", "securityContext": RESTRICTED}
    for number, context in enumerate((None, {"runAsUser": 1000}, {"runAsNonRoot": True})):
        given: Json = {"containers": [main]} | ({} if context is None else {"securityContext": context})
        made = await pods.create(f"p{number}", notes={names.PREFETCH_IMAGES: "true"}, **given)
        assert barriers(made)[-1] == names.BARRIER_CONTAINER
