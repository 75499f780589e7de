"""Which lines a viewer may see: those of the namespaces in which he may list what they are made of."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from controllers.statuspage.reviews import AccessReviewer, Viewer
from controllers.statuspage.rows import ListRight, StatusRow

MAX_NAMESPACES: Final = 100
"""Namespaces that are asked for one by one; in a larger cluster a viewer with few rights says which one he means."""

Namespaces = frozenset[str] | None
"""Namespaces; None: all of them."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """In which namespaces its viewer may list what."""

    granted: tuple[tuple[ListRight, Namespaces], ...]
    limited: bool = False
    """There were too many namespaces to ask for each."""

    @property
    def namespaces_by_right(self) -> Mapping[ListRight, Namespaces]:
        """By right."""
        return dict(self.granted)

    def shows_row(self, row: StatusRow) -> bool:
        """Whether he may see this line."""
        places = self.namespaces_by_right
        return all(_has(places, right, row.namespace) for right in row.needs)

    def visible_rows(self, rows: Iterable[StatusRow]) -> Iterator[StatusRow]:
        """Those that he may see."""
        places = self.namespaces_by_right
        return (row for row in rows if all(_has(places, right, row.namespace) for right in row.needs))

    def is_cluster_wide(self, right: ListRight) -> bool:
        """No namespace is hidden from him."""
        return (right, None) in self.granted

    def has_right(self, right: ListRight) -> bool:
        """There is a namespace in which he has it."""
        return self.is_cluster_wide(right) or bool(self.namespaces_by_right.get(right))


async def resolve_visibility(
    reviews: AccessReviewer,
    viewer: Viewer,
    rights: Iterable[ListRight],
    namespaces: Collection[str],
    namespace: str = "",
) -> Visibility:
    """What he may see of these namespaces; of `wanted` alone if that is given. Raises Unavailable."""
    asked = {namespace} if namespace else set(namespaces)
    limited = len(asked) > MAX_NAMESPACES
    found: dict[ListRight, Namespaces] = {}
    for right in rights:
        if await reviews.may_list(viewer, right):
            found[right] = None
            continue
        found[right] = frozenset() if limited else await _among(reviews, viewer, right, asked)
    return Visibility(tuple(found.items()), limited=limited and any(it is not None for it in found.values()))


async def _among(
    reviews: AccessReviewer, viewer: Viewer, right: ListRight, namespaces: Collection[str]
) -> frozenset[str]:
    ordered = sorted(namespaces)
    allowed = await asyncio.gather(*(reviews.may_list(viewer, right, it) for it in ordered))
    return frozenset(name for name, may in zip(ordered, allowed, strict=True) if may)


def _has(places: Mapping[ListRight, Namespaces], right: ListRight, namespace: str) -> bool:
    if right not in places:
        return False
    allowed = places[right]
    return allowed is None or namespace in allowed
