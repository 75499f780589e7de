"""Builders of pods of groups, one for each way of saying it, and of pods that are not ours to take."""

from typing import Any

from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups.manifests import MINIMUM_ON_POD, membership_metadata
from tests.fakes.wire_objects import owner

Json = dict[str, Any]


def meta_of(way: Format, name: str = "g") -> Json:
    """The labels or annotations by which a pod of that way names its group, as metadata."""
    meta = membership_metadata(name, way, 3 if way in MINIMUM_ON_POD else None)
    return {key: value for key, value in meta.items() if value}


def pod(way: Format | None = None, group: str = "g", *, name: str = "p", meta: Json | None = None, **spec: Any) -> Json:
    """A pod of a group, or of none; `meta` is merged into its metadata, `spec` into its spec."""
    metadata: Json = {"name": name} | ({} if way is None else meta_of(way, group))
    for key, value in (meta or {}).items():
        metadata[key] = metadata.get(key, {}) | value if isinstance(value, dict) else value
    containers = [{"name": "main", "image": "train:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers} | spec}


def owned(kind: str, *, controller: bool = True) -> Json:
    """Metadata of a pod that some controller has made."""
    return {"ownerReferences": [owner(kind, "o", "o-uid") | {"controller": controller}]}


def gates(made: Json) -> list[str]:
    return [it["name"] for it in made["spec"].get("schedulingGates") or ()]
