"""The parts of pods, PodGroups, records, nodes and quotas that groups depend on, as shapes to decode from the wire.

What decides about a pod's place is kept as raw JSON: it is the same for all pods of a template, so `read.py` looks
into it once and not for every event.
"""

from datetime import datetime
from typing import Any

import msgspec

from jobset_gate.barrier.wire import ObjectMeta, PodCondition, WireMeta, WireStruct

Text = dict[str, str]


class PodOwner(WireStruct, frozen=True):
    """Who made an object, if `controller` is set."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class GroupPodMeta(WireMeta, frozen=True):
    """metadata of a pod."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Text | None = None
    annotations: Text | None = None
    owner_references: tuple[PodOwner, ...] | None = None


class SchedulingGate(WireStruct, frozen=True):
    """A scheduling gate."""

    name: str = ""


class SchedulingGroup(WireStruct, frozen=True):
    """The native group of a pod (G6)."""

    pod_group_name: str = ""


class ContainerResources(WireStruct, frozen=True, omit_defaults=True):
    """A container, as far as it decides about its pod's place."""

    resources: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    ports: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    restart_policy: str = ""


class AnyValue(WireStruct, frozen=True):
    """Something that is there; what is in it does not matter, and may differ from pod to pod."""


class Volume(WireStruct, frozen=True, omit_defaults=True):
    """A volume, as far as it ties its pod to nodes."""

    persistent_volume_claim: AnyValue | None = None
    ephemeral: AnyValue | None = None


class PlacementTemplate(WireStruct, frozen=True, omit_defaults=True):
    """All of a spec that decides about the pod's place; alike for pods of one template."""

    containers: tuple[ContainerResources, ...] = ()
    init_containers: tuple[ContainerResources, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resources: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    overhead: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    node_selector: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    affinity: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    tolerations: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    topology_spread_constraints: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    resource_claims: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class GroupPodSpec(PlacementTemplate, frozen=True):
    """spec of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    scheduling_group: SchedulingGroup | None = None
    priority: int | None = None
    preemption_policy: str = ""


class GroupPodStatus(WireStruct, frozen=True):
    """status of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] | None = None


class GroupPod(WireStruct, frozen=True):
    """A core/v1 Pod that may be in a group, or that only takes up room."""

    metadata: GroupPodMeta
    spec: GroupPodSpec = GroupPodSpec()
    status: GroupPodStatus = GroupPodStatus()


class ManagedFields(WireStruct, frozen=True):
    """Who wrote to which part of an object."""

    manager: str = ""
    subresource: str = ""


class RecordObjectMeta(WireMeta, frozen=True):
    """metadata of an object that a record may be kept on."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    annotations: Text | None = None
    managed_fields: tuple[ManagedFields, ...] | None = None


class PodGroup(WireStruct, frozen=True):
    """A PodGroup of any kind. Its spec is as its user wrote it: the CRD may be somebody else's and check nothing."""

    metadata: RecordObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


class RecordConfigMap(WireStruct, frozen=True):
    """A core/v1 ConfigMap that holds a record."""

    metadata: RecordObjectMeta
    data: Text | None = None


class NodeSpec(WireStruct, frozen=True):
    """spec of a node."""

    taints: list[Any] | None = None
    unschedulable: bool | None = None


class NodeStatus(WireStruct, frozen=True):
    """status of a node. Kubelets write it all the time, mostly to say the same."""

    allocatable: dict[str, Any] | None = None


class NodeMeta(WireMeta, frozen=True):
    """metadata of a node."""

    labels: Text | None = None


class Node(WireStruct, frozen=True):
    """A core/v1 Node."""

    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ResourceQuota(WireStruct, frozen=True):
    """A core/v1 ResourceQuota."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
