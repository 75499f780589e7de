"""Wire structs of LeaderWorkerSets and of the StatefulSets that make their worker pods."""

from collections.abc import Sequence

from jobset_gate.barrier.wire import Condition, Meta, ObjectMeta, TypedOwnerReference, WireStruct


class WorkerSetMeta(ObjectMeta, frozen=True):
    """metadata of a StatefulSet; its controller owner is a leader pod."""

    owner_references: Sequence[TypedOwnerReference] | None = None


class WorkerSet(WireStruct, frozen=True):
    """An apps/v1 StatefulSet: only its owner matters."""

    metadata: WorkerSetMeta


class LeaderWorkerSetSpec(WireStruct, frozen=True):
    """spec of a LeaderWorkerSet. What a group needs stands on its leader pod, which may be of an older revision."""

    replicas: int | None = None


class LeaderWorkerSetStatus(WireStruct, frozen=True):
    """status of a LeaderWorkerSet."""

    conditions: list[Condition] | None = None


class LeaderWorkerSet(WireStruct, frozen=True):
    """A leaderworkerset.x-k8s.io/v1 LeaderWorkerSet."""

    metadata: Meta
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()
    status: LeaderWorkerSetStatus = LeaderWorkerSetStatus()
