"""Which lines a viewer may see: those of the namespaces in which he may list what they are made of."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from controllers.page.reviews import Reviews, Viewer
from controllers.page.rows import Right, Row

MOST: Final = 100
"""Namespaces that are asked for one by one; in a larger cluster a viewer with few rights says which one he means."""

Places = frozenset[str] | None
"""Namespaces; None: all of them."""


@dataclass(frozen=True, slots=True)
class Sight:
    """In which namespaces its viewer may list what."""

    granted: tuple[tuple[Right, Places], ...]
    limited: bool = False
    """There were too many namespaces to ask for each."""

    @property
    def places(self) -> Mapping[Right, Places]:
        """By right."""
        return dict(self.granted)

    def shows(self, row: Row) -> bool:
        """Whether he may see this line."""
        places = self.places
        return all(_has(places, right, row.namespace) for right in row.needs)

    def of(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those that he may see."""
        places = self.places
        return (row for row in rows if all(_has(places, right, row.namespace) for right in row.needs))

    def everywhere(self, right: Right) -> bool:
        """No namespace is hidden from him."""
        return (right, None) in self.granted

    def anywhere(self, right: Right) -> bool:
        """There is a namespace in which he has it."""
        return self.everywhere(right) or bool(self.places.get(right))


async def sight(
    reviews: Reviews, viewer: Viewer, rights: Iterable[Right], namespaces: Collection[str], wanted: str = ""
) -> Sight:
    """What he may see of these namespaces; of `wanted` alone if that is given. Raises Unavailable."""
    asked = {wanted} if wanted else set(namespaces)
    limited = len(asked) > MOST
    found: dict[Right, Places] = {}
    for right in rights:
        if await reviews.may_list(viewer, right):
            found[right] = None
            continue
        found[right] = frozenset() if limited else await _among(reviews, viewer, right, asked)
    return Sight(tuple(found.items()), limited=limited and any(it is not None for it in found.values()))


async def _among(reviews: Reviews, viewer: Viewer, right: Right, namespaces: Collection[str]) -> frozenset[str]:
    ordered = sorted(namespaces)
    allowed = await asyncio.gather(*(reviews.may_list(viewer, right, it) for it in ordered))
    return frozenset(name for name, may in zip(ordered, allowed, strict=True) if may)


def _has(places: Mapping[Right, Places], right: Right, namespace: str) -> bool:
    if right not in places:
        return False
    allowed = places[right]
    return allowed is None or namespace in allowed
