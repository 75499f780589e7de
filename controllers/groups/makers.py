"""Keeps what is known of who makes the pods of groups that do not gather: can they ever make enough (G3)?"""

from collections.abc import Callable, MutableMapping
from typing import Final

from controllers.groups.owners import Owners
from jobset_gate.groups.creators import Creator
from jobset_gate.groups.model import Key
from jobset_gate.groups.seen import GroupSeen

PATIENCE: Final = 30.0
"""Seconds after its youngest member in which a group is likely just being made."""

AGAIN: Final = 60.0
"""Seconds between two looks at its makers."""


class Makers:
    """`known` is what the opener judges by; `look` tells it of news."""

    def __init__(
        self,
        owners: Owners,
        known: MutableMapping[Key, tuple[Creator, ...]],
        look: Callable[[Key], None],
        now: Callable[[], float],
    ) -> None:
        self._owners, self._known, self._look, self._now = owners, known, look, now

    async def ask(self, seen: GroupSeen) -> float | None:
        """Asks about a group if it is time. Returns the seconds after which to come back."""
        key = seen.group.key
        if seen.group.gathered or not seen.members:
            self.forget(key)
            return None
        wait = max(it.created for it in seen.members) + PATIENCE - self._now()
        if wait > 0:
            return wait
        made_by = await self._owners.creators(seen)
        if self._known.get(key) != made_by:
            self._known[key] = made_by
            self._look(key)
        return AGAIN

    def forget(self, key: Key) -> None:
        """It has gathered, or nothing is left of it."""
        self._known.pop(key, None)
