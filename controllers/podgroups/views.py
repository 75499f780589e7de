"""All groups of an index as a mapping that puts together only what is asked for."""

from collections.abc import Callable, Iterator, Mapping

from jobset_gate.podgroups.model import MergedGroup, PodGroupKey


class PodGroupMapping(Mapping[PodGroupKey, MergedGroup]):
    """Live: what it shows is always as the index has it now."""

    def __init__(
        self, group: Callable[[PodGroupKey], MergedGroup | None], keys: Callable[[], Iterator[PodGroupKey]]
    ) -> None:
        self._group, self._keys = group, keys

    def __getitem__(self, key: PodGroupKey) -> MergedGroup:
        found = self._group(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[PodGroupKey]:
        return self._keys()

    def __len__(self) -> int:
        return sum(1 for _ in self)
