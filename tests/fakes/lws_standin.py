"""A stand-in for LWS: makes StatefulSets of leaders of LeaderWorkerSets, and of each leader pod that of its workers.

It does what the gate depends on, as LWS does it: labels and annotations of the pods, owners, and that the StatefulSet
of a new leader is made when that of the leader before is gone. A policy plays LWS's pod webhook.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, Conflict, NotFound
from jobset_gate.kube.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Resource
from tests.fakes import wire_objects
from tests.fakes.background import in_background
from tests.fakes.leader_worker_sets import install_lws_crd
from tests.fakes.object_view import ObjectView

Json = dict[str, Any]
MANAGER: Final = "lws"
POLL_INTERVAL: Final = 0.2
_POLICIES: Final = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False
)
_BINDINGS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
    namespaced=False,
)
_POD_INDEX: Final = "object.metadata.labels['apps.kubernetes.io/pod-index']"
_MISSING: Final = {"leaders": names.LWS_GROUP_INDEX, "workers": names.LWS_WORKER_INDEX}
"""The label that LWS's pod webhook adds: the number of the pod in its StatefulSet."""


def _policy(which: str) -> list[tuple[Resource, Json]]:
    name, label = f"lws-{which}", _MISSING[which]
    (other,) = set(_MISSING.values()) - {label}
    patch = f"JSONPatch{{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('{label}'), value: {_POD_INDEX}}}"
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
            ],
            "objectSelector": {
                "matchExpressions": [
                    {"key": names.LWS_NAME, "operator": "Exists"},
                    {"key": other, "operator": "Exists"},
                    {"key": label, "operator": "DoesNotExist"},
                ]
            },
        },
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{patch}]"}}],
    }
    binding = {"policyName": name}
    meta = {"name": name}
    return [(_POLICIES, {"metadata": meta, "spec": spec}), (_BINDINGS, {"metadata": meta, "spec": binding})]


async def install(client: Client) -> None:
    """The kind and the policies, unless they are there."""
    for resource, body in [*_policy("leaders"), *_policy("workers")]:
        with suppress(AlreadyExists):
            await client.create(resource, body, field_manager=MANAGER)
    await install_lws_crd(client)


@asynccontextmanager
async def controller(client: Client, namespace: str) -> AsyncIterator[None]:
    """LWS in one namespace."""
    await install(client)
    async with (
        ObjectView(client, LEADER_WORKER_SETS, namespace) as sets,
        ObjectView(client, PODS, namespace) as pods,
        in_background(_run(client, sets, pods)),
    ):
        yield


async def _run(client: Client, sets: ObjectView, pods: ObjectView) -> None:
    while True:
        for one in sets.all():
            await _apply(client, leaders(one))
            for pod in pods.all():
                if _leads(pod, one) and pod["metadata"].get("deletionTimestamp") is None:
                    await _apply(client, workers(one, pod))
        await asyncio.sleep(POLL_INTERVAL)


async def _apply(client: Client, made: Json) -> None:
    """Nothing while the one of an earlier leader is there. LWS never changes that of workers."""
    meta = made["metadata"]
    (owner,) = meta["ownerReferences"]
    with suppress(Conflict, NotFound):
        there = await _read(client, meta["name"], meta["namespace"])
        owners = [] if there is None else there["metadata"].get("ownerReferences", [])
        if there is None or (owner["kind"] != "Pod" and owner["uid"] in [it["uid"] for it in owners]):
            await client.patch(
                STATEFUL_SETS,
                meta["name"],
                meta["namespace"],
                body={"apiVersion": "apps/v1", "kind": "StatefulSet"} | made,
                patch=PatchType.APPLY,
                field_manager=MANAGER,
                force=True,
            )


async def _read(client: Client, name: str, namespace: str) -> Json | None:
    try:
        return await client.get(STATEFUL_SETS, name, namespace)
    except NotFound:
        return None


def _leads(pod: Json, one: Json) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return (labels.get(names.LWS_NAME), labels.get(names.LWS_WORKER_INDEX)) == (one["metadata"]["name"], "0")


def leaders(one: Json) -> Json:
    """The StatefulSet of the leader pods."""
    its = one["spec"]["leaderWorkerTemplate"]
    labels = {names.LWS_NAME: one["metadata"]["name"], names.LWS_WORKER_INDEX: "0"}
    template = its.get("leaderTemplate") or its["workerTemplate"]
    made = _stateful_set(one, one, labels, template)
    made["spec"]["replicas"] = one["spec"].get("replicas", 1)
    return made


def workers(one: Json, leader: Json) -> Json:
    """The StatefulSet of the workers of this leader pod."""
    its, meta = one["spec"]["leaderWorkerTemplate"], leader["metadata"]
    labels = {names.LWS_NAME: one["metadata"]["name"], names.LWS_GROUP_INDEX: meta["labels"][names.LWS_GROUP_INDEX]}
    made = _stateful_set(one, {"kind": "Pod", **leader}, labels, its["workerTemplate"])
    made["spec"] |= {"replicas": its["size"] - 1, "ordinals": {"start": 1}}
    return made


def _stateful_set(one: Json, owner: Json, labels: Json, template: Json) -> Json:
    """It has the name of its owner."""
    name = owner["metadata"]["name"]
    meta, size = template.get("metadata") or {}, str(one["spec"]["leaderWorkerTemplate"]["size"])
    pods = {
        "labels": {**(meta.get("labels") or {}), **labels},
        "annotations": {**(meta.get("annotations") or {}), names.LWS_SIZE: size},
    }
    return {
        "metadata": {
            "name": name,
            "namespace": one["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [wire_objects.owner(owner["kind"], name, owner["metadata"]["uid"])],
        },
        "spec": {
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": pods, "spec": template["spec"]},
        },
    }
