"""Authorization: a viewer sees the rows of namespaces in which RBAC lets them list what the rows are made of."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from controllers.statuspage.auth import AccessReviewer, Viewer
from controllers.statuspage.rows import ListRight, StatusRow

MAX_NAMESPACES: Final = 100
"""Namespaces that are reviewed one by one; in a larger cluster a viewer with few rights has to name one."""

Namespaces = frozenset[str] | None
"""None: all namespaces."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """In which namespaces the viewer may list what."""

    granted: tuple[tuple[ListRight, Namespaces], ...]
    limited: bool = False
    """There were too many namespaces to review each."""

    @property
    def namespaces_by_right(self) -> Mapping[ListRight, Namespaces]:
        """The grants by right."""
        return dict(self.granted)

    def shows_row(self, row: StatusRow) -> bool:
        """Whether the viewer may see this row."""
        return any(self.visible_rows((row,)))

    def visible_rows(self, rows: Iterable[StatusRow]) -> Iterator[StatusRow]:
        """The rows that the viewer may see."""
        grants = self.namespaces_by_right
        return (row for row in rows if all(_allows(grants, right, row.namespace) for right in row.needs))

    def is_cluster_wide(self, right: ListRight) -> bool:
        """Whether no namespace is hidden."""
        return (right, None) in self.granted

    def has_right(self, right: ListRight) -> bool:
        """Whether there is a namespace with this right."""
        return self.is_cluster_wide(right) or bool(self.namespaces_by_right.get(right))


async def resolve_visibility(
    reviewer: AccessReviewer,
    viewer: Viewer,
    rights: Iterable[ListRight],
    namespaces: Collection[str],
    namespace: str = "",
) -> Visibility:
    """What the viewer may see of these namespaces; of `namespace` alone if given. Raises ReviewUnavailable."""
    candidates = {namespace} if namespace else set(namespaces)
    limited = len(candidates) > MAX_NAMESPACES
    found: dict[ListRight, Namespaces] = {}
    for right in rights:
        if await reviewer.may_list(viewer, right):
            found[right] = None
            continue
        found[right] = frozenset() if limited else await _allowed(reviewer, viewer, right, candidates)
    return Visibility(tuple(found.items()), limited=limited and any(it is not None for it in found.values()))


async def _allowed(
    reviewer: AccessReviewer, viewer: Viewer, right: ListRight, namespaces: Collection[str]
) -> frozenset[str]:
    ordered = sorted(namespaces)
    allowed = await asyncio.gather(*(reviewer.may_list(viewer, right, it) for it in ordered))
    return frozenset(name for name, may in zip(ordered, allowed, strict=True) if may)


def _allows(grants: Mapping[ListRight, Namespaces], right: ListRight, namespace: str) -> bool:
    if right not in grants:
        return False
    allowed = grants[right]
    return allowed is None or namespace in allowed
