"""The API server's memory: objects by kind, namespace and name, versions, and watchers. No network, no schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBS, JOBSETS, PODS, STATEFUL_SETS, Resource

Json = dict[str, Any]
Reported = Callable[[Resource, str, Json], None]
"""(kind, ADDED | MODIFIED | DELETED, object), as a watch with the controllers' selector would tell it."""

Listener = Callable[[Resource, Json | None, Json | None], None]
"""(kind, old, new)."""

NAMESPACE = "default"

WATCHED = (JOBSETS, JOBS, PODS, CONFIGMAPS, STATEFUL_SETS)


class Api:
    """`version` is the last resourceVersion given, and so a clock of all that happened."""

    def __init__(self) -> None:
        self.version = 0
        self.watchers: list[Reported] = []
        self.listeners: list[Listener] = []
        """Hear of every change."""
        self._objects: defaultdict[Resource, dict[tuple[str, str], Json]] = defaultdict(dict)
        self._uids = 0

    def get(self, kind: Resource, name: str, namespace: str | None = None) -> Json | None:
        """The object as it stands; not to be changed."""
        return self._objects[kind].get(_key(kind, name, namespace))

    def all(self, kind: Resource) -> list[Json]:
        """All of a kind; not to be changed."""
        return list(self._objects[kind].values())

    def visible(self, kind: Resource) -> list[Json]:
        """What a list with the controllers' selector shows."""
        return [stored for stored in self._objects[kind].values() if _selected(kind, stored)]

    def create(self, kind: Resource, body: Mapping[str, Any], namespace: str | None = None) -> Json:
        """Raises AlreadyExists."""
        name, namespace = body["metadata"]["name"], namespace or body["metadata"].get("namespace")
        if self.get(kind, name, namespace) is not None:
            raise AlreadyExists(409, "AlreadyExists", f"{kind.plural} {name}")
        self._uids += 1
        made = clone(body)
        made["metadata"] |= {"namespace": _key(kind, name, namespace)[0], "uid": f"{kind.plural}-{self._uids}"}
        return self._store(kind, None, made)

    def put(self, kind: Resource, body: Mapping[str, Any]) -> Json:
        """This object is there from now on, with the uid that the body gives it, in a new version."""
        made = clone(body)
        meta = made["metadata"]
        meta.setdefault("namespace", "")
        meta.setdefault("uid", f"uid-{self.version}")
        return self._store(kind, self._objects[kind].get((meta["namespace"], meta["name"])), made)

    def replace(self, kind: Resource, body: Mapping[str, Any]) -> Json:
        """Compare-and-swap on uid and resourceVersion where the body gives them. Raises NotFound, Conflict."""
        meta = body["metadata"]
        stored = self.known(kind, meta["name"], meta.get("namespace"))
        check(stored, meta.get("uid"), meta.get("resourceVersion"))
        made = clone(body)
        made["metadata"] |= {"namespace": stored["metadata"]["namespace"], "uid": stored["metadata"]["uid"]}
        return self._store(kind, stored, made)

    def change(
        self,
        kind: Resource,
        name: str,
        change: Callable[[Json], object],
        uid: str | None = None,
        version: str | None = None,
        *,
        namespace: str | None = None,
    ) -> Json:
        """A patch: applies `change` to a copy and stores that. Raises NotFound, Conflict; Invalid for another `uid`."""
        stored = self.known(kind, name, namespace)
        if uid not in (None, stored["metadata"]["uid"]):
            causes = [{"field": "metadata.uid", "message": "field is immutable"}]
            raise Invalid(422, "Invalid", f"{kind.plural} {name}: metadata.uid", details={"causes": causes})
        check(stored, None, version)
        made = clone(stored)
        change(made)
        return stored if made == stored else self._store(kind, stored, made)

    def remove(
        self,
        kind: Resource,
        name: str,
        uid: str | None = None,
        version: str | None = None,
        *,
        namespace: str | None = None,
    ) -> None:
        """Raises NotFound, Conflict if a precondition does not hold."""
        stored = self.known(kind, name, namespace)
        check(stored, uid, version)
        del self._objects[kind][stored["metadata"]["namespace"], name]
        self.version += 1
        last = clone(stored)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._tell(kind, stored, None, last)

    def known(self, kind: Resource, name: str, namespace: str | None = None) -> Json:
        """As `get`. Raises NotFound."""
        stored = self.get(kind, name, namespace)
        if stored is None:
            raise NotFound(404, "NotFound", f"{kind.plural} {name}")
        return stored

    def _store(self, kind: Resource, old: Json | None, new: Json) -> Json:
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        self._objects[kind][new["metadata"]["namespace"], new["metadata"]["name"]] = new
        self._tell(kind, old, new, new)
        return new

    def _tell(self, kind: Resource, old: Json | None, new: Json | None, body: Json) -> None:
        for listener in self.listeners:
            listener(kind, old, new)
        before = old is not None and _selected(kind, old)
        after = new is not None and _selected(kind, new)
        if before or after:
            what = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
            for reported in self.watchers:
                reported(kind, what, body)


def _key(kind: Resource, name: str, namespace: str | None) -> tuple[str, str]:
    return namespace or (NAMESPACE if kind.namespaced else ""), name


def clone(body: Mapping[str, Any]) -> Json:
    copied: Json = msgspec.json.decode(msgspec.json.encode(body))
    return copied


def check(stored: Json, uid: str | None, version: str | None) -> None:
    """The preconditions of a write. Raises Conflict."""
    meta = stored["metadata"]
    if uid not in (None, meta["uid"]) or version not in (None, meta["resourceVersion"]):
        raise Conflict(409, "Conflict", f"{meta['name']} has changed")


def labels_of(stored: Json) -> Mapping[str, str]:
    labels: Mapping[str, str] = stored["metadata"].get("labels") or {}
    return labels


def _has(stored: Json, labels: Mapping[str, str]) -> bool:
    return labels.items() <= labels_of(stored).items()


def _selected(kind: Resource, stored: Json) -> bool:
    if kind == EVENTS:
        return False
    if kind == CONFIGMAPS:
        return _has(stored, {names.GATE: names.GATE_VALUE})
    labels = labels_of(stored)
    if kind == PODS and names.START_GROUP in labels and names.GATED not in labels:
        return True
    return kind not in (JOBS, PODS) or labels.get(names.GATED) in (names.GATED_VALUE, names.GATED_JOB, names.GATED_LWS)
