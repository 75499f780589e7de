"""LeaderWorkerSets in manifests: where the config belongs, and the pods that LWS makes of each group."""

from collections.abc import Iterator
from typing import Any, Final

from jobset_gate import names
from jobset_gate.injection.inject import COPIED
from jobset_gate.objects.template import annotations_of, group_size, templates_of
from jobset_gate.objects.unstructured import Json, Path, as_int, as_map, nested
from jobset_gate.sources.objects import config_of
from jobset_gate.sources.table import LWS

_HOLDER: Final[Path] = ("metadata", "annotations")
_STAND_IN_UID: Final = "x" * 36


def is_leader_worker_set(value: Any) -> bool:
    """Of the known version."""
    return (nested(value, "apiVersion"), nested(value, "kind")) == (LWS.api_version, LWS.kind)


def gang_of(value: Any) -> Json | None:
    """The LeaderWorkerSet if it asks for a gate; None for any other object."""
    return value if is_leader_worker_set(value) and config_of(value).present else None


def why_not_read(value: Any, path: Path) -> str:
    """Why the config or annotation at `path` has no effect; "": it has, or is the copy that the webhook makes."""
    key = path[-1]
    if path == (*_HOLDER, key):
        return ""
    if key == names.CONFIG_FIELD:
        return f"the config of a LeaderWorkerSet is the annotation {names.CONFIG} in metadata.annotations"
    copied = {(*it.pod_path, *_HOLDER, name) for it in templates_of(value) for name in COPIED}
    if path in copied and nested(value, *path) == annotations_of(value).get(str(key)):
        return ""
    return "it is read in metadata.annotations alone"


def summary(value: Json, limit: str) -> str:
    """What the gates of a LeaderWorkerSet without violations come to."""
    size, groups = group_size(value), as_int(nested(value, "spec", "replicas"), 1)
    pods, many = f"{size} pod{'' if size == 1 else 's'}", f"{groups} group{'' if groups == 1 else 's'}"
    return f"{pods} of each of {many} wait for each other, {limit}"


def pods(value: Json, name: str) -> Iterator[tuple[Path, Json]]:
    """A pod of each template, as LWS makes it, with the place of the template: leader, and worker if it has its own."""
    size, gated, notes = group_size(value), gang_of(value) is not None, annotations_of(value)
    for index, template in enumerate(templates_of(value)):
        meta = as_map(nested(template.pod_template, "metadata"))
        labels = {key: it for key, it in as_map(meta.get("labels")).items() if key != names.GATED}
        annotations = {key: it for key, it in as_map(meta.get("annotations")).items() if key not in COPIED}
        if gated:
            labels[names.GATED] = LWS.gated
            annotations |= {key: notes[key] for key in COPIED if notes.get(key) is not None}
        spec = nested(template.pod_template, "spec")
        if index < size:
            place = {names.LWS_NAME: name, names.LWS_GROUP_INDEX: "0", names.LWS_WORKER_INDEX: str(index)}
            made = {"labels": labels | place, "annotations": annotations | {names.LWS_SIZE: str(size)}}
            yield template.pod_path, _pod(value, name, index, {**meta, **made}, spec)


def _pod(value: Json, name: str, index: int, meta: Json, spec: Any) -> Json:
    leader = f"{name}-0"
    owner: Json = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": leader if index else name}
    owner |= {"uid": _STAND_IN_UID, "controller": True}
    meta |= {"name": f"{leader}-{index}" if index else leader, "ownerReferences": [owner]}
    if namespace := nested(value, "metadata", "namespace"):
        meta["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
