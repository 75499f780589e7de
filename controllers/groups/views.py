"""All groups of an index as a mapping that puts together only what is asked for."""

from collections.abc import Callable, Iterator, Mapping

from jobset_gate.groups.model import Group, Key


class GroupsView(Mapping[Key, Group]):
    """Live: what it shows is always as the index has it now."""

    def __init__(self, group: Callable[[Key], Group | None], keys: Callable[[], Iterator[Key]]) -> None:
        self._group, self._keys = group, keys

    def __getitem__(self, key: Key) -> Group:
        found = self._group(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[Key]:
        return self._keys()

    def __len__(self) -> int:
        return sum(1 for _ in self)
