"""PodGroups and ConfigMaps with the records on them: the shapes of `wire.py` turned into the words of `seen.py`."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.errors import Malformed
from jobset_gate.objects.field_error import FieldError, annotation_path, child_path
from jobset_gate.objects.unstructured import Json, as_map
from jobset_gate.podgroups import format_podgroup, record, wire
from jobset_gate.podgroups.decode import seconds
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.model import Flavor, PodGroupKey, PodGroupSource
from jobset_gate.podgroups.snapshot import RecordObject, RecordRef

LARGEST: Final = 64 * 1024
"""Bytes of a PodGroup's spec, or of its status, that are read."""

LONGEST_KEY: Final = 1000
"""Characters; names of objects and namespaces have less."""

MOST_MANAGERS: Final = 16

LONGEST_STATE: Final = 4096
"""Characters; what we write has less."""

_TOO_LARGE: Final[Json] = {}
_NONE: Final[Mapping[str, str]] = {}


def pod_group(seen: wire.PodGroup, api: str) -> RecordObject:
    """A PodGroup of this API group, with the record that may be on it."""
    meta = seen.metadata
    spec, status = _decoded(seen.spec), _decoded(seen.status)
    body = {
        "apiVersion": f"{api}/{names.POD_GROUP_VERSION}",
        "kind": names.POD_GROUP,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "annotations": meta.annotations or {},
        },
        "spec": spec,
    }
    found, problem = _record(
        (meta.annotations or _NONE).get(names.POD_GROUP_RECORD), annotation_path(names.POD_GROUP_RECORD)
    )
    home = _home(api, meta)
    writers = {it.manager for it in meta.managed_fields or () if it.subresource == "status"}
    return RecordObject(
        ref=home,
        pod_group=format_podgroup.parse_pod_group(body) if spec is not _TOO_LARGE else _unread(body),
        created=seconds(meta.creation_timestamp),
        annotations=_kept(meta.annotations, found),
        status=as_map(status),
        status_managers=tuple(sorted(writers - {names.FIELD_MANAGER}))[:MOST_MANAGERS],
        record=of_home(found, home),
        problem=problem,
    )


def of_home(found: record.AdmissionRecord | None, home: RecordRef) -> record.AdmissionRecord | None:
    """The record, if it was written there: a PodGroup made anew from a copy has brought the annotations of another."""
    return found if found is not None and found.home_uid in ("", home.uid) else None


def config_map(seen: wire.RecordConfigMap) -> RecordObject | None:
    """A ConfigMap of ours with a record; None for one that is not where that of its group would be."""
    meta = seen.metadata
    key = key_of((meta.annotations or _NONE).get(names.POD_GROUP_KEY, ""))
    if key is None or (key.namespace, names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key)) != (
        meta.namespace,
        meta.name,
    ):
        return None
    found, problem = _record((seen.data or {}).get(names.KEY_RECORD), child_path("data", names.KEY_RECORD))
    return RecordObject(
        ref=_home("", meta),
        key=key,
        created=seconds(meta.creation_timestamp),
        annotations=_kept(meta.annotations, found),
        record=found,
        problem=problem,
    )


def text_of(key: PodGroupKey) -> str:
    """A key as it is written down, for `key_of`."""
    return f"{key.design}/{key.namespace}/{key.name}"


def key_of(text: str) -> PodGroupKey | None:
    """`<design>/<namespace>/<name>` as a key; None for what is none."""
    if len(text) > LONGEST_KEY:
        return None
    design, _, path = text.partition("/")
    namespace, slash, name = path.partition("/")
    return (
        PodGroupKey(design=Flavor(design), namespace=namespace, name=name) if design in list(Flavor) and slash else None
    )


def _decoded(said: msgspec.Raw) -> Any:
    return msgspec.json.decode(said) if len(memoryview(said)) <= LARGEST else _TOO_LARGE


def _unread(body: Json) -> PodGroupSource | None:
    """A PodGroup whose spec nobody reads says nothing, and that is its problem."""
    bare = format_podgroup.parse_pod_group({**body, "spec": {}})
    problem = FieldError("spec", None, f"is too large: must be at most {LARGEST} bytes of JSON")
    return None if bare is None else msgspec.structs.replace(bare, problems=(problem,))


def _kept(annotations: Mapping[str, str] | None, found: record.AdmissionRecord | None) -> Mapping[str, str]:
    """Those that are looked at again; of what users write beside them there may be as much as the API takes."""
    said = (
        {}
        if not annotations or names.POD_GROUP_STATE not in annotations
        else {names.POD_GROUP_STATE: annotations[names.POD_GROUP_STATE][:LONGEST_STATE]}
    )
    if annotations and found is not None and names.POD_GROUP_RECORD in annotations:
        said[names.POD_GROUP_RECORD] = annotations[names.POD_GROUP_RECORD]
    return said


def _home(api: str, meta: wire.RecordObjectMeta) -> RecordRef:
    return RecordRef(
        api=api, namespace=meta.namespace, name=meta.name, uid=meta.uid, resource_version=meta.resource_version
    )


def _record(text: str | None, path: str) -> tuple[record.AdmissionRecord | None, FieldError | None]:
    """A record that cannot be read is not taken for none: nobody knows then what was decided."""
    if text is None:
        return None, None
    try:
        return record.decode_record(text), None
    except Malformed as problem:
        return None, FieldError(path, text[:100], f"is no record of ours ({problem.expected}); remove it to begin anew")
