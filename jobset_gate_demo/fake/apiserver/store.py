"""The objects, one growing version number over all of them, the history that watches resume from, and selectors.

Everything is synchronous: a write is visible to every reader and watcher when `commit` returns. Stored objects never
change in place; a writer decodes a copy.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from jobset_gate.objects.unstructured import nested
from jobset_gate_demo.fake.apiserver.kinds import ServedKind, ServedKinds
from jobset_gate_demo.fake.apiserver.responses import Obj, decode, encode

HISTORY = 2000
"""Changes of each kind over which a watch can be resumed."""
Key = tuple[str, str]
Listener = Callable[[ServedKind, "StoreEvent"], None]
"""Called synchronously after each write."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One version of one object, kept as bytes: 10,000 pods as dicts would cost the garbage collector half a second.

    raw: its JSON, kind and apiVersion first; `head` bytes of it are those two. meta: its metadata without
    managedFields, read-only. fields: what field selectors compare, by path.
    """

    raw: bytes
    head: int
    rv: int
    key: Key
    meta: Obj
    fields: Mapping[str, str]

    @property
    def labels(self) -> Mapping[str, str]:
        return self.meta.get("labels") or {}

    def fresh(self) -> Obj:
        """A decoded copy of the whole object, which the caller may change."""
        return decode(self.raw)  # type: ignore[no-any-return]

    @property
    def bare(self) -> bytes:
        """The JSON without kind and apiVersion, as items of lists of built-in kinds are written."""
        return b"{" + self.raw[self.head :]


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One write. `old` is None for a creation; for a deletion `now` is the object's last state."""

    old: StoredObject | None
    now: StoredObject
    deleted: bool = False

    def left(self) -> bytes:
        """The state before, with the version at which it was left, for a watch that selects the object no longer."""
        last = self.old.fresh() if self.old is not None else {"metadata": {}}
        last["metadata"]["resourceVersion"] = str(self.now.rv)
        return encode(last)


class KindTable:
    """All objects of one kind, and the history from which a watch can resume."""

    def __init__(self) -> None:
        self.rows: dict[Key, StoredObject] = {}
        self._history: deque[StoreEvent] = deque(maxlen=HISTORY)
        self.watchers: set[Callable[[StoreEvent], None]] = set()

    @property
    def floor(self) -> int:
        """History up to this version is gone."""
        return self._history[0].now.rv if len(self._history) == HISTORY else 0

    def write(self, change: StoreEvent) -> None:
        if change.deleted:
            del self.rows[change.now.key]
        else:
            self.rows[change.now.key] = change.now
        self._history.append(change)
        for watcher in tuple(self.watchers):
            watcher(change)

    def since(self, rv: int) -> Iterator[StoreEvent]:
        """The changes after `rv`, oldest first."""
        return (change for change in tuple(self._history) if change.now.rv > rv)


class ObjectStore:
    def __init__(self) -> None:
        self.kinds = ServedKinds()
        self.revision = 1
        self.listeners: list[Listener] = []
        self._tables: defaultdict[tuple[str, str], KindTable] = defaultdict(KindTable)

    def table(self, kind: ServedKind) -> KindTable:
        return self._tables[kind.key]

    def row(self, kind: ServedKind, namespace: str, name: str) -> StoredObject | None:
        return self.table(kind).rows.get((namespace, name))

    def commit(self, kind: ServedKind, obj: Obj) -> StoredObject:
        """Store a new version of an object; the caller no longer owns it."""
        now = self._stored(kind, obj)
        return self._write(kind, StoreEvent(self.table(kind).rows.get(now.key), now))

    def remove(self, kind: ServedKind, last: Obj) -> StoredObject:
        """Delete an object with this last state; the caller no longer owns it."""
        now = self._stored(kind, last)
        return self._write(kind, StoreEvent(self.table(kind).rows[now.key], now, deleted=True))

    def _write(self, kind: ServedKind, change: StoreEvent) -> StoredObject:
        self.table(kind).write(change)
        for listener in self.listeners:
            listener(kind, change)
        return change.now

    def _stored(self, kind: ServedKind, obj: Obj) -> StoredObject:
        self.revision += 1
        meta = obj["metadata"]
        meta["resourceVersion"] = str(self.revision)
        whole = {"kind": kind.kind, "apiVersion": kind.api_version}
        head = len(encode(whole))
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        whole.update(obj)
        key = meta.get("namespace", ""), meta["name"]
        kept = {name: value for name, value in meta.items() if name != "managedFields"}
        fields = {path: str(value) for path in FIELDS if (value := nested(obj, *path.split(".")))}
        return StoredObject(encode(whole), head, self.revision, key, kept, fields)


# --- Label and field selectors ----------------------------------------------------------------------------------------

FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.schedulerName",
    "status.phase",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "type",
)
"""What objects can be selected by; an absent one counts as empty."""
Test = Callable[[Mapping[str, str]], bool]
_COMMA = re.compile(r",(?![^(]*\))")
_IN = re.compile(r"(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>\S*)")


def label_tests(text: str) -> Iterable[Test]:
    return [_label_test(part.strip()) for part in _COMMA.split(text) if part.strip()]


def field_tests(text: str) -> Iterable[Test]:
    return [_equality(part.strip()) for part in text.split(",") if part.strip()]


def _label_test(part: str) -> Test:
    if found := _IN.fullmatch(part):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return lambda labels: (labels.get(found["key"]) in values) is (found["op"] == "in")
    if "=" in part:
        return _equality(part)
    return lambda labels: (part.lstrip("! ") in labels) is not part.startswith("!")


def _equality(part: str) -> Test:
    found = _EQUAL.fullmatch(part)
    if found is None:
        raise ValueError(f"no selector: {part!r}")
    key, value, equal = found["key"], found["value"], found["op"] != "!="
    return lambda values: ((values.get(key) or "") == value) is equal
