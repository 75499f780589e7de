"""Slots of a gang, or pods of a group, that are missing for one and the same reason (A9)."""

import msgspec


class MissingByReason(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Missing slots that have one reason."""

    reason: str
    """A class of A9; of a pod group, its reason."""
    message: str
    """In the words of whoever holds them up; of several, those of the one that waits longest."""
    count: int
    slots: tuple[str, ...] = ()
    """The first few, longest-waiting first; of a pod group, pods."""
    oldest_count: int = 0
    """How many of these are among the few of the whole gang that have waited longest."""
    oldest_created_at: float | None = None
    """Since when the first of them exists; None: there is no pod yet."""
    command: str = ""
    """What tells more."""
