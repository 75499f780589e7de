"""Pods, PodGroups, records, nodes and quotas as an API server stores them, and read as the watch reads them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from jobset_gate import names
from jobset_gate.podgroups import decode, wire
from jobset_gate.podgroups.model import Flavor, GangMode, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, encode_record
from jobset_gate.podgroups.snapshot import BoundPod, MemberPod, NodeAllocatable, RecordObject
from tests.fakes.podgroups.sources import PLUGINS, Json
from tests.fakes.wire_objects import decoded, owner

TEN_O_CLOCK = 1785578400.0
"""2026-08-01T10:00:00Z"""


def key(name: str = "g", flavor: Flavor = Flavor.SCHEDULER_PLUGINS, namespace: str = "team") -> PodGroupKey:
    return PodGroupKey(flavor=flavor, namespace=namespace, name=name)


def pod(
    name: str = "p",
    *,
    of: PodGroupKey | None = None,
    labels: Json | None = None,
    notes: Json | None = None,
    gates: tuple[str, ...] = (names.POD_GROUP_GATE,),
    node: str = "",
    uid: str = "",
    meta: Json | None = None,
    spec: Json | None = None,
    status: Json | None = None,
    held: str | None = None,
    namespace: str = "team",
) -> Json:
    """A pod held for a group; by default one of scheduler-plugins. `held`: its label of ours, "" for none."""
    group = of or key(namespace=namespace)
    ours = group_label(group) if held is None else held
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": "100",
            "creationTimestamp": "2026-08-01T10:00:00Z",
            "labels": ({PLUGINS: group.name} if labels is None else labels)
            | ({names.POD_GROUP_LABEL: ours} if ours else {}),
            "annotations": notes or {},
        }
        | (meta or {}),
        "spec": {
            "schedulerName": "default-scheduler",
            "schedulingGates": [{"name": it} for it in gates],
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            "priority": 0,
        }
        | (spec or {}),
        "status": {"phase": "Pending"} | (status or {}),
    }


def made_by(name: str, uid: str = "", kind: str = "Job") -> Json:
    """Metadata of a pod that this owner has made."""
    return {"ownerReferences": [owner(kind, name, uid or f"uid-{name}")]}


def read_pod(body: Json, **ways: Any) -> MemberPod:
    return decode.decode_member(decoded(body, wire.GroupPod), **ways)


def read_bound(body: Json, **rules: Any) -> BoundPod | None:
    return decode.decode_bound_pod(decoded(body, wire.GroupPod), **rules)


def pod_group(
    name: str = "g",
    *,
    uid: str = "",
    version: str = "5",
    notes: Json | None = None,
    namespace: str = "team",
    **body: Any,
) -> Json:
    """A PodGroup without its kind and apiVersion, as the items of some lists are."""
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": version,
        "creationTimestamp": "2026-08-01T09:00:00Z",
    }
    return {"metadata": meta | ({} if notes is None else {"annotations": notes}), "spec": {"minMember": 3}} | body


def read_pod_group(body: Json, api: str = names.PLUGINS_GROUP) -> RecordObject:
    return decode.decode_pod_group(decoded(body, wire.PodGroup), api)


def config_map(
    of: PodGroupKey, record: str | AdmissionRecord = "", *, uid: str = "uid-map", version: str = "5", **meta: Any
) -> Json:
    """A ConfigMap with a record, where that of its group would be."""
    text = record if isinstance(record, str) else encode_record(record)
    return {
        "metadata": {
            "name": names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(of),
            "namespace": of.namespace,
            "uid": uid,
            "resourceVersion": version,
            "creationTimestamp": "2026-08-01T09:30:00Z",
            "annotations": {names.POD_GROUP_KEY: f"{of.flavor.value}/{of.namespace}/{of.name}"},
        }
        | meta,
        "data": {names.KEY_RECORD: text},
    }


def read_config_map(body: Json) -> RecordObject | None:
    return decode.decode_config_map(decoded(body, wire.RecordConfigMap))


def record(
    *gangs: tuple[PodGroupKey, int], stage: AdmissionState = AdmissionState.OPEN, minimum: int = 3, **more: Any
) -> AdmissionRecord:
    return AdmissionRecord(
        generation=gangs[0][1],
        stage=stage,
        how=AdmissionMode.FIT,
        at=TEN_O_CLOCK,
        gangs=gangs,
        minimum=minimum,
        wait=Fraction(60),
        mode=GangMode.STRICT,
        **more,
    )


def node(name: str = "n", *, labels: Json | None = None, **allocatable: str) -> Json:
    """A node with so much room; underscores stand for dashes."""
    amounts = {key.replace("_", "-"): value for key, value in allocatable.items()}
    return {
        "metadata": {"name": name, "resourceVersion": "7", "labels": {"kubernetes.io/hostname": name} | (labels or {})},
        "spec": {},
        "status": {"allocatable": {"pods": "110"} | amounts},
    }


def read_node(body: Json) -> NodeAllocatable:
    return decode.decode_node(decoded(body, wire.Node))
