"""Authorization: a viewer sees the rows of namespaces in which RBAC lets them list what the rows are made of."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from controllers.statuspage.auth import AccessReviewer, Viewer
from controllers.statuspage.rows import ListRight, StatusRow

MAX_NAMESPACES: Final = 100
"""Namespaces that are reviewed one by one; in a larger cluster a viewer with few rights has to name one."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """In which namespaces the viewer may list what."""

    cluster_wide: frozenset[ListRight]
    namespaced: frozenset[tuple[ListRight, str]] = frozenset()
    """Rights that the viewer has in single namespaces."""
    restricted: tuple[ListRight, ...] = ()
    """The rights that are not cluster-wide."""
    limited: bool = False
    """There were too many namespaces to review each."""

    def shows_row(self, row: StatusRow) -> bool:
        """Whether the viewer may see this row."""
        return all(right in self.cluster_wide or (right, row.namespace) in self.namespaced for right in row.needs)

    def has_any(self, rights: Iterable[ListRight]) -> bool:
        """Whether there is a namespace with one of these rights."""
        return any(map(self.has_right, rights))

    def has_right(self, right: ListRight) -> bool:
        """Whether there is a namespace with this right."""
        return right in self.cluster_wide or any(one == right for one, _ in self.namespaced)


async def resolve_visibility(
    reviewer: AccessReviewer,
    viewer: Viewer,
    rights: Iterable[ListRight],
    namespaces: Collection[str],
    namespace: str = "",
) -> Visibility:
    """What the viewer may see of these namespaces; of `namespace` alone if given. Raises ReviewUnavailable."""
    candidates = [namespace] if namespace else sorted(namespaces)
    too_many = len(candidates) > MAX_NAMESPACES
    everywhere = {right: await reviewer.may_list(viewer, right) for right in rights}
    restricted = tuple(right for right, may in everywhere.items() if not may)
    pairs = [] if too_many else [(right, name) for right in restricted for name in candidates]
    allowed = await asyncio.gather(*(reviewer.may_list(viewer, right, name) for right, name in pairs))
    return Visibility(
        cluster_wide=frozenset(everywhere) - frozenset(restricted),
        namespaced=frozenset(pair for pair, may in zip(pairs, allowed, strict=True) if may),
        restricted=restricted,
        limited=too_many and bool(restricted),
    )
