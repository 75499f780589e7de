"""Wire structs: the fields of pods, PodGroups, ConfigMaps, nodes and quotas that pod groups depend on.

Placement fields stay raw JSON: they are equal for all pods of a template and parsed once (`fit.template`).
"""

from datetime import datetime
from typing import Any

import msgspec

from jobset_gate.barrier.wire import (
    Condition,
    ManagedFields,
    ObjectMeta,
    SchedulingGate,
    TypedOwnerReference,
    WireMeta,
    WireStruct,
)


class DatedMeta(WireMeta, frozen=True):
    """metadata with annotations of any name."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    annotations: dict[str, str] | None = None


class GroupPodMeta(DatedMeta, frozen=True):
    labels: dict[str, str] | None = None
    owner_references: tuple[TypedOwnerReference, ...] | None = None


class SchedulingGroup(WireStruct, frozen=True):
    """Native gang scheduling (G6)."""

    pod_group_name: str = ""


class ContainerResources(WireStruct, frozen=True, omit_defaults=True):
    """The placement fields of a container."""

    resources: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    ports: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    restart_policy: str = ""


class AnyValue(WireStruct, frozen=True):
    """Any object: its content does not matter, and may differ between pods."""


class Volume(WireStruct, frozen=True, omit_defaults=True):
    """Volumes that may bind a pod to nodes."""

    persistent_volume_claim: AnyValue | None = None
    ephemeral: AnyValue | None = None


class PlacementTemplate(WireStruct, frozen=True, omit_defaults=True):
    """The placement fields of a spec; equal for pods of one template."""

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
    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    scheduling_group: SchedulingGroup | None = None
    priority: int | None = None
    preemption_policy: str = ""


class GroupPodStatus(WireStruct, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] | None = None


class GroupPod(WireStruct, frozen=True):
    """A core/v1 Pod, in a group or only bound to a node."""

    metadata: GroupPodMeta
    spec: GroupPodSpec = GroupPodSpec()
    status: GroupPodStatus = GroupPodStatus()


class RecordObjectMeta(DatedMeta, frozen=True):
    """metadata of an object that may store a record."""

    managed_fields: tuple[ManagedFields, ...] | None = None


class PodGroup(WireStruct, frozen=True):
    """A PodGroup of any kind. Its spec is not validated: the CRD of another project may not validate it either."""

    metadata: RecordObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


class RecordConfigMap(WireStruct, frozen=True):
    """A core/v1 ConfigMap that holds a record."""

    metadata: RecordObjectMeta
    data: dict[str, str] | None = None


class Taint(WireStruct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(WireStruct, frozen=True):
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None


class NodeStatus(WireStruct, frozen=True):
    allocatable: dict[str, Any] | None = None


class NodeMeta(WireMeta, frozen=True):
    labels: dict[str, str] | None = None


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
