"""What an API server lets nobody do in a roll-back: a policy or a webhook of the cluster may forbid it (G4).

Such a write is told to people, who alone can mend it, and holds up nobody else.
"""

from collections.abc import Awaitable
from typing import Final

from jobset_gate.barrier.verdict_codec import truncate
from jobset_gate.kube.errors import BadRequest, Forbidden, Invalid, is_namespace_terminating
from jobset_gate.objects import terminal_text

MAX_MESSAGE_BYTES: Final = 300
"""Bytes of what is told of one of them."""

MAX_LISTED: Final = 3


class WriteRefusals:
    """Those of one step, by what they are about."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    async def collect(self, about: str, writing: Awaitable[bool]) -> bool:
        """The write's own answer; True where it was refused for good, as there is nothing to be looked at anew."""
        try:
            return await writing
        except (BadRequest, Forbidden, Invalid) as refused:
            if is_namespace_terminating(refused):
                raise
            self._words[about] = truncate(terminal_text.line(refused.message), MAX_MESSAGE_BYTES)
            return True

    def __contains__(self, about: str) -> bool:
        return about in self._words

    @property
    def about(self) -> tuple[str, ...]:
        """What there were any about."""
        return tuple(sorted(self._words))

    @property
    def why(self) -> str:
        """The first few of them, for people: a thousand pods that may not be changed have one reason, mostly."""
        told = [f"{about} may not be changed: {self._words[about]}" for about in self.about[:MAX_LISTED]]
        more = len(self._words) - MAX_LISTED
        return "; ".join([*told, *([f"and {more} more"] if more > 0 else [])])
