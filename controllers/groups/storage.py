"""PodGroups and ConfigMaps as far as they hold a record: their shapes, and the bodies that write one (G3)."""

from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.errors import Malformed
from jobset_gate.groups import read_homes
from jobset_gate.groups import record as records
from jobset_gate.groups.model import Key
from jobset_gate.groups.record import Record
from jobset_gate.groups.seen import Home
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS, Resource


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Stored(msgspec.Struct, frozen=True):
    """A PodGroup or ConfigMap as far as it holds a record."""

    metadata: _Meta = _Meta()
    data: dict[str, str] | None = None


def parsed(text: str) -> Record | None:
    """A record as it is stored; what nobody of us has written is none."""
    try:
        return records.parse(text) if text else None
    except Malformed:
        return None


def read(text: str, key: Key) -> Record | None:
    """The same as this gang reads it."""
    stands = parsed(text)
    return None if stands is None else records.latest(key, stands)


def kind(home: Home) -> Resource:
    """Of which kind a home is."""
    return POD_GROUPS[home.api] if home.api else CONFIGMAPS


def home_of(api: str, stored: Stored) -> Home:
    """The home that this object is; `api` is "" for a ConfigMap."""
    meta = stored.metadata
    return Home(api=api, namespace=meta.namespace, name=meta.name, uid=meta.uid, resource_version=meta.resource_version)


def text_on(home: Home, stored: Stored) -> str:
    """What stands on it as a record; "" for nothing."""
    if home.api:
        return (stored.metadata.annotations or {}).get(names.GANG_RECORD, "")
    return (stored.data or {}).get(names.KEY_RECORD, "")


def patch(home: Home, text: str) -> dict[str, Any]:
    """A merge patch leaves alone whatever else stands on the object; UID and version make it a compare-and-swap."""
    meta: dict[str, Any] = {"uid": home.uid, "resourceVersion": home.resource_version}
    if home.api:
        return {"metadata": meta | {"annotations": {names.GANG_RECORD: text}}}
    return {"metadata": meta, "data": {names.KEY_RECORD: text}}


def config_map(key: Key, name: str, text: str) -> dict[str, Any]:
    """The home of a group that has no PodGroup."""
    return {
        "metadata": {
            "name": name,
            "namespace": key.namespace,
            "labels": {names.GANG_RECORD: names.GANG_RECORD_VALUE, names.MANAGED_BY_LABEL: names.PROGRAM},
            "annotations": {names.GANG_KEY: read_homes.text_of(key)},
        },
        "data": {names.KEY_RECORD: text},
    }
