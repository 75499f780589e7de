"""PodGroups and ConfigMaps as far as they hold a record: their shapes, and the bodies that write one (G3)."""

from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.errors import Malformed
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS, Resource
from jobset_gate.podgroups import decode_records
from jobset_gate.podgroups import record as records
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import RecordRef


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class RecordObject(msgspec.Struct, frozen=True):
    """A PodGroup or ConfigMap as far as it holds a record."""

    metadata: _Meta = _Meta()
    data: dict[str, str] | None = None


def parsed_record(text: str) -> AdmissionRecord | None:
    """A record as it is stored; what nobody of us has written is none."""
    try:
        return records.decode_record(text) if text else None
    except Malformed:
        return None


def record_as_read_by(text: str, key: PodGroupKey) -> AdmissionRecord | None:
    """The same as this gang reads it."""
    stands = parsed_record(text)
    return None if stands is None else records.latest_record(key, stands)


def resource_of(home: RecordRef) -> Resource:
    """Of which kind a home is."""
    return POD_GROUPS[home.api] if home.api else CONFIGMAPS


def ref_of(api: str, stored: RecordObject) -> RecordRef:
    """The home that this object is; `api` is "" for a ConfigMap."""
    meta = stored.metadata
    return RecordRef(
        api=api, namespace=meta.namespace, name=meta.name, uid=meta.uid, resource_version=meta.resource_version
    )


def record_text(home: RecordRef, stored: RecordObject) -> str:
    """What stands on it as a record; "" for nothing."""
    if home.api:
        return (stored.metadata.annotations or {}).get(names.POD_GROUP_RECORD, "")
    return (stored.data or {}).get(names.KEY_RECORD, "")


def record_patch(home: RecordRef, text: str) -> dict[str, Any]:
    """A merge patch leaves alone whatever else stands on the object; UID and version make it a compare-and-swap."""
    meta: dict[str, Any] = {"uid": home.uid, "resourceVersion": home.resource_version}
    if home.api:
        return {"metadata": meta | {"annotations": {names.POD_GROUP_RECORD: text}}}
    return {"metadata": meta, "data": {names.KEY_RECORD: text}}


def record_config_map(key: PodGroupKey, name: str, text: str) -> dict[str, Any]:
    """The home of a group that has no PodGroup."""
    return {
        "metadata": {
            "name": name,
            "namespace": key.namespace,
            "labels": {names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE, names.MANAGED_BY_LABEL: names.PROGRAM},
            "annotations": {names.POD_GROUP_KEY: decode_records.text_of(key)},
        },
        "data": {names.KEY_RECORD: text},
    }
