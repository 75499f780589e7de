"""Pods, PodGroups, records, nodes and quotas as an API server stores them, and read as the watch reads them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.groups import read, read_homes, wire
from jobset_gate.groups.identity import label
from jobset_gate.groups.model import Design, Key, Mode
from jobset_gate.groups.record import How, Record, Stage, render
from jobset_gate.groups.seen import BoundSeen, HomeSeen, MemberSeen, NodeSeen
from tests.jobset_gate.groups.builders import PLUGINS, Json

TEN_O_CLOCK = 1785578400.0
"""2026-08-01T10:00:00Z"""


def key(name: str = "g", design: Design = Design.SCHEDULER_PLUGINS, namespace: str = "team") -> Key:
    return Key(design=design, namespace=namespace, name=name)


def pod(
    name: str = "p",
    *,
    of: Key | None = None,
    labels: Json | None = None,
    notes: Json | None = None,
    gates: tuple[str, ...] = (names.GANG_GATE,),
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
    ours = label(group) if held is None else held
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": "100",
            "creationTimestamp": "2026-08-01T10:00:00Z",
            "labels": ({PLUGINS: group.name} if labels is None else labels) | ({names.GANG: ours} if ours else {}),
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


def read_pod(body: Json, **ways: Any) -> MemberSeen:
    return read.member(decoded(body, wire.Pod), **ways)


def read_bound(body: Json, **rules: Any) -> BoundSeen | None:
    return read.bound(decoded(body, wire.Pod), **rules)


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


def read_pod_group(body: Json, api: str = names.PLUGINS_GROUP) -> HomeSeen:
    return read_homes.pod_group(decoded(body, wire.PodGroup), api)


def config_map(of: Key, record: str | Record = "", *, uid: str = "uid-map", version: str = "5", **meta: Any) -> Json:
    """A ConfigMap with a record, where that of its group would be."""
    text = record if isinstance(record, str) else render(record)
    return {
        "metadata": {
            "name": names.GANG_CONFIG_MAP_PREFIX + label(of),
            "namespace": of.namespace,
            "uid": uid,
            "resourceVersion": version,
            "creationTimestamp": "2026-08-01T09:30:00Z",
            "annotations": {names.GANG_KEY: f"{of.design.value}/{of.namespace}/{of.name}"},
        }
        | meta,
        "data": {names.KEY_RECORD: text},
    }


def read_config_map(body: Json) -> HomeSeen | None:
    return read_homes.config_map(decoded(body, wire.ConfigMap))


def record(*gangs: tuple[Key, int], stage: Stage = Stage.OPEN, minimum: int = 3, **more: Any) -> Record:
    """A decision on these gangs."""
    return Record(
        generation=gangs[0][1],
        stage=stage,
        how=How.FIT,
        at=TEN_O_CLOCK,
        gangs=gangs,
        minimum=minimum,
        wait=Fraction(60),
        mode=Mode.STRICT,
        **more,
    )


def node(name: str = "n", *, labels: Json | None = None, status: Json | None = None, **allocatable: str) -> Json:
    """A node with so much room; underscores stand for dashes."""
    amounts = {key.replace("_", "-"): value for key, value in allocatable.items()}
    return {
        "metadata": {"name": name, "resourceVersion": "7", "labels": {"kubernetes.io/hostname": name} | (labels or {})},
        "spec": {},
        "status": {"allocatable": {"pods": "110"} | amounts} | (status or {}),
    }


def read_node(body: Json) -> NodeSeen:
    return read.node(decoded(body, wire.Node))


def decoded(body: Json, shape: Any) -> Any:
    """From its bytes, as everything comes."""
    return msgspec.json.decode(msgspec.json.encode(body), type=shape)
