"""Builds a JSON patch (RFC 6902) together with the patched document, which shares what does not change."""

from typing import Any, Final

import msgspec

from jobset_gate.objects.unstructured import Json, Path

LARGEST_PATCH: Final = 3 * 1024 * 1024
"""Bytes of a JSON patch: what an API server takes as a whole object."""


class PatchTooLarge(Exception):
    """More would be put into an object than LARGEST_PATCH."""


class PatchBuilder:
    """A document under change. The one it was made from stays as it is; what does not change is shared with it.

    A change that would make the operations larger than `bounds.LARGEST_PATCH` is not made: PatchTooLarge.
    """

    def __init__(self, document: Json) -> None:
        self.document: Json = dict(document)
        """The document with all changes so far."""
        self.operations: list[Json] = []
        """The changes so far, in order (RFC 6902)."""
        self.paths: list[Path] = []
        """The path of each."""
        self._size = 0
        # By id, and held on to: an id may only be trusted while its object lives.
        self._own: dict[int, Any] = {id(self.document): self.document}

    def set(self, path: Path, value: Any) -> None:
        """Put a member into an object; missing (or null) objects on the way are made."""
        parent: Any = self.document
        for depth, key in enumerate(path[:-1]):
            child = parent[key] if isinstance(key, int) else parent.get(key)
            if child is None:
                for missing in reversed(path[depth + 1 :]):
                    value = {missing: value}
                self._set_member(parent, path[: depth + 1], value)
                return
            parent = self._own_copy(parent, key, child)
        self._set_member(parent, path, value)

    def remove(self, path: Path) -> None:
        """Take a member out of an object or an entry out of a list."""
        self._record("remove", path)
        self._descend(path[:-1]).pop(path[-1])

    def insert(self, path: Path, value: Any) -> None:
        """Put an entry into a list before the one at the path's index; at the list's length: behind the last."""
        self._record("add", path, value=value)
        self._descend(path[:-1]).insert(path[-1], value)

    def replace(self, path: Path, value: Any) -> None:
        """Put another value where there is one."""
        self._record("replace", path, value=value)
        self._descend(path[:-1])[path[-1]] = value

    def _set_member(self, parent: Json, path: Path, value: Any) -> None:
        key = str(path[-1])
        self._record("replace" if key in parent else "add", path, value=value)
        parent[key] = value

    def _record(self, operation: str, path: Path, **value: Any) -> None:
        recorded: Json = {"op": operation, "path": pointer(path), **value}
        self._size += json_size(list(recorded.values()))
        if self._size > LARGEST_PATCH:
            raise PatchTooLarge
        self.operations.append(recorded)
        self.paths.append(path)

    def _descend(self, path: Path) -> Any:
        parent: Any = self.document
        for key in path:
            parent = self._own_copy(parent, key, parent[key])
        return parent

    def _own_copy(self, parent: Any, key: str | int, child: Any) -> Any:
        """The child, copied first if it still belongs to the document that this one was made from."""
        if id(child) in self._own:
            return child
        copy = child.copy()
        self._own[id(copy)] = copy
        parent[key] = copy
        return copy


def pointer(path: Path) -> str:
    """A path as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def json_size(value: Any) -> int:
    """The bytes of a value as JSON. A list's entries are counted one by one: they may share what is large."""
    if isinstance(value, list):
        return sum(map(json_size, value)) + len(value) + 2
    return len(msgspec.json.encode(value))
