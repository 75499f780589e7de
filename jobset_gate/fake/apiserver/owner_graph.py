"""Who owns whom: the living objects by uid, and their dependents."""

from __future__ import annotations

from collections.abc import Iterator

from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.store import Key, StoredObject, StoreEvent

#: One object: its kind's group and plural, its namespace and name.
Place = tuple[tuple[str, str], Key]


class OwnerGraph:
    """Kept right by `note` at every write. live: where the object of a uid is. kinds: by group and plural."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, str], ServedKind] = {}
        self.live: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}

    def dependents(self, uid: str) -> list[Place]:
        """Those that name this uid as an owner, whether it lives or not."""
        return list(self._dependents.get(uid, ()))

    def note(self, kind: ServedKind, change: StoreEvent) -> Iterator[Place]:
        """Take a write in; yields whom it concerns: orphans, owners that wait, the object when its owners changed."""
        self.kinds[kind.key] = kind
        place, uid = (kind.key, change.now.key), change.now.meta.get("uid", "")
        before = _owners(change.old) if change.old else []
        after = [] if change.deleted else _owners(change.now)
        if change.deleted:
            self.live.pop(uid, None)
            yield from self.dependents(uid)
        else:
            self.live[uid] = place
        if before != after:
            yield from self._moved(place, before, after)
            yield from () if change.deleted else (place,)

    def _moved(self, place: Place, before: list[str], after: list[str]) -> Iterator[Place]:
        for uid in before:
            siblings = self._dependents.get(uid)
            if siblings is None or uid in after:
                continue
            siblings.pop(place, None)
            if not siblings:
                del self._dependents[uid]
            if owner := self.live.get(uid):
                yield owner
        for uid in after:
            self._dependents.setdefault(uid, {})[place] = None


def _owners(row: StoredObject) -> list[str]:
    return [ref["uid"] for ref in row.meta.get("ownerReferences") or ()]
