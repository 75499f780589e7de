"""A3: what a real API server makes of the JobSets and of the pods that come out of the webhook."""

import copy
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection.container import TOKEN_PATH
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import NAMESPACES, PODS, Resource
from tests.fakes.admission_server import registered
from tests.fakes.jobsets import Json, created, epoch, jobset, pod_spec, replicated
from tests.plane.planes import Plane

pytestmark = pytest.mark.real

LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


async def pod(client: Client, namespace: str, main: Json, name: str = "p", **more: Any) -> Json:
    """A pod as the Job controller would make it from a gated template."""
    given = jobset(replicated(pod={"containers": [{"name": "main", "image": "i"} | main]} | more))
    spec = copy.deepcopy(pod_spec(created(given)))
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return await client.create(PODS, made, namespace)


def resources(**amounts: str) -> Json:
    return {"resources": {"requests": amounts, "limits": amounts}}


async def test_no_service_account_token_is_mounted_into_the_barrier(client: Client, namespace: str) -> None:
    made = await pod(client, namespace, {})
    (barrier,), (main,) = made["spec"]["initContainers"], made["spec"]["containers"]
    tokens = {it["name"] for it in made["spec"]["volumes"]} - {names.VOLUME}
    assert len(tokens) == 1
    assert TOKEN_PATH in [it["mountPath"] for it in main["volumeMounts"] if it["name"] in tokens]
    assert {it["name"] for it in barrier["volumeMounts"]} == {names.VOLUME}


async def test_the_pod_keeps_its_qos_class(client: Client, namespace: str) -> None:
    classes: list[tuple[Json, str]] = [
        (resources(cpu="1", memory="1Gi"), "Guaranteed"),
        ({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}, "Guaranteed"),
        (resources(cpu="1"), "Burstable"),
        ({"resources": {"requests": {"memory": "1Gi"}}}, "Burstable"),
        ({}, "BestEffort"),
        ({"resources": {"limits": {"example.com/gpu": "1"}}}, "BestEffort"),
    ]
    for number, (main, qos) in enumerate(classes):
        assert (await pod(client, namespace, main, name=f"p{number}"))["status"]["qosClass"] == qos, main


async def test_pod_security_restricted_lets_it_in(client: Client, namespace: str) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await client.patch(NAMESPACES, namespace, body=label, patch=PatchType.MERGE)
    with pytest.raises(Forbidden, match="violates PodSecurity"):
        await pod(client, namespace, {})
    for index, context in enumerate((None, {"runAsUser": 1000}, {"runAsNonRoot": True})):
        await pod(client, namespace, {"securityContext": RESTRICTED}, name=f"p{index}", securityContext=context)


async def test_a_limit_range_lets_it_in_wherever_it_lets_the_users_container_in(client: Client, namespace: str) -> None:
    bounds = {"type": "Container", "min": {"cpu": "500m", "memory": "64Mi"}, "max": {"cpu": "2", "memory": "1Gi"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [bounds]}}
    await client.create(LIMIT_RANGES, limits, namespace)
    with pytest.raises(Forbidden, match="minimum cpu"):
        await pod(client, namespace, resources(cpu="100m", memory="64Mi"))
    await pod(client, namespace, resources(cpu="1", memory="64Mi"))


async def test_a_quota_counts_no_more_than_the_users_containers(client: Client, namespace: str) -> None:
    hard = {"limits.cpu": "2", "requests.memory": "2Gi", "limits.ephemeral-storage": "2Gi"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    await client.create(QUOTAS, quota, namespace)
    while not (await client.get(QUOTAS, "q", namespace)).get("status", {}).get("hard"):
        pass  # the controller that takes it up has to be asked; each turn is a request
    full = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    for index in range(2):
        await pod(client, namespace, resources(**full), name=f"p{index}")
    with pytest.raises(Forbidden, match="exceeded quota"):
        await pod(client, namespace, resources(**full), name="p2")


async def test_a_jobset_of_a_mebibyte_is_within_the_cost_that_an_api_server_grants_to_conditions(
    plane: Plane, client: Client, namespace: str
) -> None:
    env = [{"name": f"E{number}", "value": "x" * 40} for number in range(400)]
    main = {"containers": [{"name": "m", "image": "i", "env": env}]}
    manifest = jobset(*(replicated(f"w{number}", pod=main) for number in range(40)))
    manifest["metadata"]["namespace"] = namespace
    assert len(str(manifest)) > 1024 * 1024
    async with registered(client, namespace):
        for command in ("create", "replace"):
            await plane.kubectl(command, "--validate=false", "-f", "-", stdin=manifest)
        patch = '{"spec":{"suspend":true}}'
        ran = await plane.kubectl("patch", "jobset", "gang", "-n", namespace, "--type=merge", "-p", patch, "-o", "json")
        assert epoch(ran.json, 39) == "1"
