"""K3, K8: pods of start groups, on a real API server and with the real StatefulSet controller."""

import copy
from collections.abc import AsyncIterator

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError
from jobset_gate.kube.resources import CONFIGMAPS, PODS, STATEFUL_SETS
from jobset_gate.settings import Barrier, Gangs, Settings
from tests.fakes import start_groups
from tests.fakes.admission_server import AdmittedObjects, registered_for_start_groups
from tests.fakes.eventually import PATIENCE
from tests.fakes.jobsets import Json
from tests.fakes.object_view import ObjectView
from tests.fakes.wire_objects import owner

pytestmark = pytest.mark.real

BASE = "http://gate.system.svc:8082"
GANGS = Gangs(sources=("jobset", "job", "startgroup"))
SETTINGS = Settings(gangs=GANGS, barrier=Barrier(stream_url=BASE, image="b:1"))
OWNER = owner("StatefulSet", "set", "0b1c6f5e-0000-4000-8000-000000000001")


class Pods(AdmittedObjects):
    async def start(self, name: str = "set-0", **notes: str) -> Json:
        """A pod of the start group."""
        return await self.create(start_groups.pod(name, OWNER, notes=notes))


@pytest.fixture
async def pods(client: Client, namespace: str) -> AsyncIterator[Pods]:
    async with registered_for_start_groups(client, namespace, SETTINGS) as server:
        yield Pods(client, namespace, server, PODS)


def barriers(made: Json) -> list[str]:
    return [it["name"] for it in made["spec"].get("initContainers") or ()]


async def test_each_pod_of_a_stateful_set_gets_the_same_barrier_and_its_own_token(pods: Pods) -> None:
    """Also without the token of its ServiceAccount, and without the verdict that its template forges."""
    forged = {names.VERDICT: "release x 0 0 AllPodsStarted"}
    body = start_groups.stateful_set("set", 3, size=3, notes=forged)
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
    await pods.create(start_groups.pod("before", owned_by | {"controller": True}))
    pods.counter.sent()
    for given in others():
        assert barriers(await pods.create(given, dry_run=True)) == []
    assert pods.counter.sent() == 0
    await pods.server.stop()
    for given in others():
        await pods.create(given)
    with pytest.raises(ApiError, match=r"start-groups\.jobset-gate\.dev"):
        await pods.start()
    note = {"metadata": {"annotations": {names.VERDICT: "x"}}}
    await pods.patch("before", note)
    await pods.delete("before")


async def test_under_ignore_a_dead_webhook_lets_pods_in_without_a_barrier(client: Client, namespace: str) -> None:
    lenient = Settings(gangs=msgspec.structs.replace(GANGS, pod_failure_policy="Ignore"))
    async with registered_for_start_groups(client, namespace, lenient) as server:
        pods = Pods(client, namespace, server, PODS)
        assert barriers(await pods.start("before")) == [names.BARRIER_CONTAINER]
        await server.stop()
        assert barriers(await pods.start("after")) == []
