"""LeaderWorkerSets, their kind, and the pods of their groups as JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists
from jobset_gate.kube.resources import CRDS, LEADER_WORKER_SETS
from jobset_gate_demo.fake.jobset_crd import until_served
from tests.fakes.wire_objects import owner

Json = dict[str, Any]
NAME = "vllm"
CRD_NAME = f"{LEADER_WORKER_SETS.plural}.{LEADER_WORKER_SETS.group}"


def crd() -> Json:
    """With the list of conditions as LWS has it: each type once."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    conditions = {
        "type": "array",
        "items": anything | {"properties": {"type": {"type": "string"}}, "required": ["type"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    status = {"type": "object", "properties": {"conditions": conditions}}
    version = {
        "name": LEADER_WORKER_SETS.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": status}}},
    }
    its = {"kind": LEADER_WORKER_SETS.kind, "plural": LEADER_WORKER_SETS.plural, "shortNames": ["lws"]}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": CRD_NAME},
        "spec": {
            "group": LEADER_WORKER_SETS.group,
            "names": its | {"singular": "leaderworkerset", "listKind": "LeaderWorkerSetList"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


async def install_lws_crd(client: Client) -> None:
    """Returns when the kind is served."""
    with suppress(AlreadyExists):
        await client.create(CRDS, crd(), field_manager="lws")
    await until_served(client, CRD_NAME, LEADER_WORKER_SETS)


def leader_worker_set(
    *, size: int = 3, notes: Json | None = None, leader: Json | None = None, worker: Json | None = None, **spec: Any
) -> Json:
    """With a worker template; `leader` is the leader's, None: leaders are made of the workers'."""
    group = {"size": size, "workerTemplate": template() if worker is None else worker, **spec.pop("group", {})}
    if leader is not None:
        group["leaderTemplate"] = leader
    meta: Json = {"name": NAME, "namespace": "default"} | ({} if notes is None else {"annotations": notes})
    return {
        "apiVersion": names.LWS_API_VERSION,
        "kind": "LeaderWorkerSet",
        "metadata": meta,
        "spec": {"replicas": 2, "leaderWorkerTemplate": group, **spec},
    }


def template(metadata: Json | None = None, **spec: Any) -> Json:
    """A pod template with one container."""
    made: Json = {"spec": {"containers": [{"name": "main", "image": "serve:1"}], **spec}}
    return made if metadata is None else made | {"metadata": metadata}


def pod(index: int = 0, *, labels: Json | None = None, notes: Json | None = None, **spec: Any) -> Json:
    """A pod of group 0, marked, as LWS's own webhook leaves it; a value of None takes a label or annotation out."""
    leads = index == 0
    ours: Json = {
        names.LWS_NAME: NAME,
        names.LWS_GROUP_INDEX: "0",
        names.LWS_WORKER_INDEX: str(index),
        names.GATED: names.GATED_LWS,
    } | (labels or {})
    annotations: Json = {names.LWS_SIZE: "3", names.CONFIG: '{"timeoutAfterSeconds": 300}'} | (notes or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{NAME}-0" if leads else f"{NAME}-0-{index}",
            "labels": {key: value for key, value in ours.items() if value is not None},
            "annotations": {key: value for key, value in annotations.items() if value is not None},
            "ownerReferences": [owner("StatefulSet", NAME if leads else f"{NAME}-0", "set-uid")],
        },
        "spec": {"containers": [{"name": "main", "image": "serve:1"}], "restartPolicy": "Always", **spec},
    }
