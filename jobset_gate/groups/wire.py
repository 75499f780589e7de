"""The parts of pods, PodGroups, records, nodes and quotas that groups depend on, as shapes to decode from the wire.

What decides about a pod's place is kept as raw JSON: it is the same for all pods of a template, so `read.py` looks
into it once and not for every event.
"""

from datetime import datetime
from typing import Any

import msgspec

from jobset_gate.wire import Meta, ObjectMeta, PodCondition, Shape

Text = dict[str, str]


class OwnerReference(Shape, frozen=True):
    """Who made an object, if `controller` is set."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class PodMeta(Meta, frozen=True):
    """metadata of a pod."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Text | None = None
    annotations: Text | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class Gate(Shape, frozen=True):
    """A scheduling gate."""

    name: str = ""


class SchedulingGroup(Shape, frozen=True):
    """The native group of a pod (G6)."""

    pod_group_name: str = ""


class Placed(Shape, frozen=True, omit_defaults=True):
    """A container, as far as it decides about its pod's place."""

    resources: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    ports: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    restart_policy: str = ""


class Present(Shape, frozen=True):
    """Something that is there; what is in it does not matter, and may differ from pod to pod."""


class Volume(Shape, frozen=True, omit_defaults=True):
    """A volume, as far as it ties its pod to nodes."""

    persistent_volume_claim: Present | None = None
    ephemeral: Present | None = None


class Template(Shape, frozen=True, omit_defaults=True):
    """All of a spec that decides about the pod's place; alike for pods of one template."""

    containers: tuple[Placed, ...] = ()
    init_containers: tuple[Placed, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resources: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    overhead: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    node_selector: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    affinity: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    tolerations: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    topology_spread_constraints: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    resource_claims: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class PodSpec(Template, frozen=True):
    """spec of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[Gate, ...] | None = None
    scheduling_group: SchedulingGroup | None = None
    priority: int | None = None
    preemption_policy: str = ""


class PodStatus(Shape, frozen=True):
    """status of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] | None = None


class Pod(Shape, frozen=True):
    """A core/v1 Pod that may be in a group, or that only takes up room."""

    metadata: PodMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class ManagedFields(Shape, frozen=True):
    """Who wrote to which part of an object."""

    manager: str = ""
    subresource: str = ""


class HomeMeta(Meta, frozen=True):
    """metadata of an object that a record may be kept on."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    annotations: Text | None = None
    managed_fields: tuple[ManagedFields, ...] | None = None


class PodGroup(Shape, frozen=True):
    """A PodGroup of any kind. Its spec is as its user wrote it: the CRD may be somebody else's and check nothing."""

    metadata: HomeMeta
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


class ConfigMap(Shape, frozen=True):
    """A core/v1 ConfigMap that holds a record."""

    metadata: HomeMeta
    data: Text | None = None


class NodeSpec(Shape, frozen=True):
    """spec of a node."""

    taints: list[Any] | None = None
    unschedulable: bool | None = None


class NodeStatus(Shape, frozen=True):
    """status of a node. Kubelets write it all the time, mostly to say the same."""

    allocatable: dict[str, Any] | None = None


class NodeMeta(Meta, frozen=True):
    """metadata of a node."""

    labels: Text | None = None


class Node(Shape, frozen=True):
    """A core/v1 Node."""

    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ResourceQuota(Shape, frozen=True):
    """A core/v1 ResourceQuota."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
