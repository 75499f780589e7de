"""Since when something has been seen without a break."""

from collections.abc import Iterable
from datetime import datetime, timedelta


class FirstSeen:
    """Remembers as long as it is seen at every look."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def observe(self, found: Iterable[str], now: datetime) -> None:
        """This is what there is now, and nothing else."""
        self._since = {each: self._since.get(each, now) for each in found}

    def seen_for(self, life: timedelta, now: datetime) -> frozenset[str]:
        """What has been there for so long at least."""
        return frozenset(each for each, since in self._since.items() if now - since >= life)
