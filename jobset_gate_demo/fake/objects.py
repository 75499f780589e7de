"""Kubernetes objects as the played controllers hold them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

Json = dict[str, Any]
Clock = Callable[[], float]
Key = tuple[str, str]
"""(namespace, name)."""


class FakeObjectMeta(msgspec.Struct, rename="camel", omit_defaults=True):
    """metadata, without managedFields: an update that leaves those out keeps them."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: list[Json] = msgspec.field(default_factory=list)
    finalizers: list[str] = msgspec.field(default_factory=list)

    @property
    def key(self) -> Key:
        return self.namespace, self.name


class FakeObject(msgspec.Struct, rename="camel", omit_defaults=True):
    """Any object, its parts as plain JSON. Shared with a cache: change a `mutable_copy` only."""

    metadata: FakeObjectMeta
    kind: str = ""
    type: str = ""
    spec: Json = msgspec.field(default_factory=dict)
    status: Json = msgspec.field(default_factory=dict)
    data: Json = msgspec.field(default_factory=dict)
    reason: str = ""
    message: str = ""
    involved_object: Json = msgspec.field(default_factory=dict)

    def mutable_copy(self) -> FakeObject:
        """A copy to change and write back with the same resourceVersion."""
        return copy.deepcopy(self)

    def body(self) -> Json:
        built: Json = msgspec.to_builtins(self)
        return built

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None


def stamp(at: float) -> str:
    """RFC 3339 with whole seconds, as metav1.Time is written."""
    return datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")


def controller_of(meta: FakeObjectMeta) -> Json | None:
    """The owner reference with controller: true."""
    return next((owner for owner in meta.owner_references if owner.get("controller")), None)


def owned_by(api_version: str, kind: str, meta: FakeObjectMeta) -> Json:
    """The controller's owner reference, as controller-runtime and the Job controller write it."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def holds(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> bool:
    """Whether the condition of that type has status True."""
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions or ())
