"""Pods as the played scheduler and kubelets decode them."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from sys import intern
from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.fake.objects import Json, Key
from jobset_gate.podgroups.fit import constraints as requests
from jobset_gate.podgroups.fit import constraints as selection

ALWAYS = "Always"
DEFAULT_SCHEDULER = "default-scheduler"
_MARK = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _FieldRef(msgspec.Struct, rename="camel"):
    field_path: str


class _ValueFrom(msgspec.Struct, rename="camel"):
    field_ref: _FieldRef | None = None


class ContainerEnv(msgspec.Struct, rename="camel"):
    """A variable with a value or a reference to a field of the pod."""

    name: str
    value: str | None = None
    value_from: _ValueFrom | None = None


class ContainerSpec(msgspec.Struct, rename="camel"):
    """A container of the spec; `restart_policy` Always makes an init container a sidecar."""

    name: str
    image: str = ""
    restart_policy: str | None = None
    env: list[ContainerEnv] | None = None
    resources: Json | None = None

    @property
    def sidecar(self) -> bool:
        return self.restart_policy == ALWAYS


class _Named(msgspec.Struct):
    name: str = ""


class _Source(msgspec.Struct, rename="camel"):
    config_map: _Named | None = None


class _Projected(msgspec.Struct):
    sources: list[_Source] | None = None


class _Volume(msgspec.Struct, rename="camel"):
    name: str
    config_map: _Named | None = None
    projected: _Projected | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    priority: int | None = None
    restart_policy: str = ALWAYS
    node_selector: dict[str, str] | None = None
    scheduling_gates: list[_Named] | None = None
    init_containers: list[ContainerSpec] | None = None
    containers: list[ContainerSpec] = msgspec.field(default_factory=list)
    volumes: list[_Volume] | None = None
    affinity: Json | None = None
    tolerations: list[Json] | None = None
    overhead: Json | None = None
    resources: Json | None = None


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[Json] | None = None


class KubeletPodWire(msgspec.Struct):
    """A pod as it comes from the API server."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Placement(msgspec.Struct, frozen=True):
    """Selection and requests of a pod; the same object for all pods with equal ones."""

    selection: selection.NodeSelection
    requests: requests.Amounts


class KubeletPod(msgspec.Struct, frozen=True, dict=True):
    """One version of a pod. Slots come from the labels of JobSet and Job, -1 where there is none."""

    key: Key
    uid: str
    node: str
    phase: str
    deleting: bool
    grace: int
    restart_policy: str
    labels: dict[str, str]
    annotations: dict[str, str]
    placement: Placement
    priority: int
    ours: bool
    """Its schedulerName is that of the played scheduler."""
    gated: bool
    init: list[ContainerSpec]
    mains: list[ContainerSpec]
    config_map: Key | None
    """The ConfigMap in the barrier's volume."""
    conditions: list[Json]

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @cached_property
    def replicated_job(self) -> str:
        return self.labels.get(names.JS_REPLICATED_JOB, "")

    @cached_property
    def job_index(self) -> int:
        return verdict_codec.parse_number(self.labels.get(names.JS_JOB_INDEX), -1)

    @cached_property
    def index(self) -> int:
        return verdict_codec.parse_number(self.annotations.get(names.JOB_COMPLETION_INDEX), -1)

    @cached_property
    def attempt(self) -> int:
        return verdict_codec.parse_number(self.labels.get(names.JS_RESTART_ATTEMPT), -1)

    def env(self, container: ContainerSpec) -> dict[str, str]:
        """The container's environment as it is when it starts now."""
        return {item.name: self._value(item) for item in container.env or ()}

    def _value(self, item: ContainerEnv) -> str:
        if item.value_from is None or item.value_from.field_ref is None:
            return item.value or ""
        path = item.value_from.field_ref.field_path
        if found := _MARK.fullmatch(path):
            marks: dict[str, str] = self.labels if found[1] == "labels" else self.annotations
            return marks.get(found[2], "")
        simple = {"metadata.name": self.key[1], "metadata.namespace": self.key[0], "metadata.uid": self.uid}
        return {**simple, "spec.nodeName": self.node}.get(path, "")


def decode_kubelet_pod(pod: KubeletPodWire) -> KubeletPod:
    meta, spec = pod.metadata, pod.spec
    namespace = intern(meta.namespace)
    return KubeletPod(
        key=(namespace, meta.name),
        uid=meta.uid,
        node=intern(spec.node_name),
        phase=intern(pod.status.phase),
        deleting=meta.deletion_timestamp is not None,
        grace=30 if meta.deletion_grace_period_seconds is None else meta.deletion_grace_period_seconds,
        restart_policy=intern(spec.restart_policy),
        labels=_interned(meta.labels),
        annotations=_interned(meta.annotations),
        placement=_placement(spec),
        priority=spec.priority or 0,
        ours=spec.scheduler_name == DEFAULT_SCHEDULER,
        gated=bool(spec.scheduling_gates),
        init=spec.init_containers or [],
        mains=spec.containers,
        config_map=_config_map(namespace, spec.volumes or []),
        conditions=pod.status.conditions or [],
    )


def _placement(spec: _Spec) -> Placement:
    said = {
        "nodeSelector": spec.node_selector,
        "affinity": spec.affinity,
        "tolerations": spec.tolerations,
        "overhead": spec.overhead,
        "resources": spec.resources,
        "containers": [{"resources": it.resources} for it in spec.containers],
        "initContainers": [
            {"resources": it.resources, "restartPolicy": it.restart_policy} for it in spec.init_containers or ()
        ],
    }
    return _read(msgspec.json.encode(said))


@lru_cache(maxsize=4096)
def _read(said: bytes) -> Placement:
    spec = msgspec.json.decode(said)
    return Placement(selection=selection.pod_node_selection(spec), requests=requests.pod_requests(spec))


def _interned(marks: dict[str, str]) -> dict[str, str]:
    return {intern(key): intern(value) for key, value in marks.items()}


def _config_map(namespace: str, volumes: list[_Volume]) -> Key | None:
    for volume in volumes:
        if volume.name != names.VOLUME:
            continue
        sources: list[Any] = [volume, *((volume.projected.sources or ()) if volume.projected else ())]
        for source in sources:
            if source.config_map is not None:
                return namespace, intern(source.config_map.name)
    return None
