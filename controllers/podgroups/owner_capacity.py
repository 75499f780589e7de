"""Keeps what is known of who makes the pods of groups that do not gather: can they ever make enough (G3)?"""

from collections.abc import Callable, MutableMapping
from typing import Final

from controllers.podgroups.capacity_reader import OwnerCapacityReader
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.owner_capacity import OwnerCapacity
from jobset_gate.podgroups.snapshot import GroupSnapshot

CREATION_GRACE_SECONDS: Final = 30.0
"""Seconds after its youngest member in which a group is likely just being made."""

REFRESH_SECONDS: Final = 60.0
"""Seconds between two looks at its makers."""


class OwnerCapacities:
    """`known` is what the opener judges by; `look` tells it of news."""

    def __init__(
        self,
        owners: OwnerCapacityReader,
        known: MutableMapping[PodGroupKey, tuple[OwnerCapacity, ...]],
        look: Callable[[PodGroupKey], None],
        now: Callable[[], float],
    ) -> None:
        self._owners, self._known, self._look, self._now = owners, known, look, now

    async def refresh_group(self, seen: GroupSnapshot) -> float | None:
        """Asks about a group if it is time. Returns the seconds after which to come back."""
        key = seen.group.key
        if seen.group.gathered or not seen.members:
            self.forget_group(key)
            return None
        wait = max(it.created for it in seen.members) + CREATION_GRACE_SECONDS - self._now()
        if wait > 0:
            return wait
        made_by = await self._owners.capacities_of(seen)
        if self._known.get(key) != made_by:
            self._known[key] = made_by
            self._look(key)
        return REFRESH_SECONDS

    def forget_group(self, key: PodGroupKey) -> None:
        """It has gathered, or nothing is left of it."""
        self._known.pop(key, None)
