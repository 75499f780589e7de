"""The objects, one growing version number over all of them, and the history that watches resume from.

Everything is synchronous: a write is visible to every reader and watcher when `commit` returns. Stored objects never
change in place; a writer decodes a copy.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from jobset_gate.fake.apiserver.kinds import ServedKind, ServedKinds
from jobset_gate.fake.apiserver.responses import Obj, decode, encode
from jobset_gate.fake.apiserver.selectors import selectable

HISTORY = 20_000
"""Changes of each kind over which a watch can be resumed."""
Key = tuple[str, str]
Listener = Callable[[ServedKind, "StoreEvent"], None]
"""Called synchronously after each write."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One version of one object, kept as bytes: 10,000 pods as dicts would cost the garbage collector half a second.

    raw: its JSON, kind and apiVersion first; `head` bytes of it are those two. meta: its metadata without
    managedFields, read-only. fields: the values of field selectors.
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


@dataclass(slots=True)
class StoreEvent:
    """One write. `old` is None for a creation; for a deletion `now` is the object's last state.

    lines: the watch lines by event type; selected: by selector. Both are caches.
    """

    rv: int
    old: StoredObject | None
    now: StoredObject
    deleted: bool = False
    lines: dict[str, bytes] = field(default_factory=dict)
    selected: dict[str, bytes | None] = field(default_factory=dict)

    def line(self, type_: str) -> bytes:
        """The watch line of this change, encoded once for all watchers."""
        line = self.lines.get(type_)
        if line is None:
            line = self.lines[type_] = b'{"type":"%s","object":%s}\n' % (type_.encode(), self.now.raw)
        return line

    @property
    def type(self) -> str:
        if self.deleted:
            return "DELETED"
        return "MODIFIED" if self.old else "ADDED"


class KindTable:
    """All objects of one kind, sorted by (namespace, name), and the history from which a watch can resume."""

    def __init__(self) -> None:
        self.rows: dict[Key, StoredObject] = {}
        self.keys: list[Key] = []
        self.history: deque[StoreEvent] = deque()
        self.floor = 0
        """History up to this version is gone."""
        self.watchers: set[Callable[[StoreEvent], None]] = set()

    def span(self, namespace: str | None) -> list[Key]:
        """The keys of a namespace (None: of all), in order."""
        if namespace is None:
            return self.keys
        start = bisect_left(self.keys, (namespace, ""))
        return self.keys[start : bisect_left(self.keys, (namespace + "\0", ""))]

    def write(self, change: StoreEvent) -> None:
        key = change.now.key
        if change.deleted:
            del self.rows[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            if key not in self.rows:
                insort(self.keys, key)
            self.rows[key] = change.now
        self.history.append(change)
        if len(self.history) > HISTORY:
            self.floor = self.history.popleft().rv
        for watcher in tuple(self.watchers):
            watcher(change)

    def compact_history(self, rv: int) -> None:
        """Drop the history up to `rv`."""
        while self.history and self.history[0].rv <= rv:
            self.history.popleft()
        self.floor = max(self.floor, rv)

    def since(self, rv: int) -> Iterator[StoreEvent]:
        """The changes after `rv`, oldest first."""
        newer = []
        for change in reversed(self.history):
            if change.rv <= rv:
                break
            newer.append(change)
        return reversed(newer)


class ObjectStore:
    def __init__(self) -> None:
        self.kinds = ServedKinds()
        self.revision = 1
        self.listeners: list[Listener] = []
        self._tables: dict[tuple[str, str], KindTable] = {}

    def table(self, kind: ServedKind) -> KindTable:
        table = self._tables.get(kind.key)
        if table is None:
            table = self._tables[kind.key] = KindTable()
        return table

    def row(self, kind: ServedKind, namespace: str, name: str) -> StoredObject | None:
        return self.table(kind).rows.get((namespace, name))

    def commit(self, kind: ServedKind, obj: Obj) -> StoredObject:
        """Store a new version of an object; the caller no longer owns it."""
        now = self._stored(kind, obj)
        table = self.table(kind)
        self._write(kind, table, StoreEvent(now.rv, table.rows.get(now.key), now))
        return now

    def remove(self, kind: ServedKind, last: Obj) -> StoredObject:
        """Delete an object with this last state; the caller no longer owns it."""
        now = self._stored(kind, last)
        table = self.table(kind)
        self._write(kind, table, StoreEvent(now.rv, table.rows[now.key], now, deleted=True))
        return now

    def _write(self, kind: ServedKind, table: KindTable, change: StoreEvent) -> None:
        table.write(change)
        for listener in self.listeners:
            listener(kind, change)

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
        return StoredObject(encode(whole), head, self.revision, key, kept, selectable(kind, whole))
