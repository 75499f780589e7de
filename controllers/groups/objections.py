"""What an API server lets nobody do in a roll-back: a policy or a webhook of the cluster may forbid it (G4).

Such a write is told to people, who alone can mend it, and holds up nobody else.
"""

from collections.abc import Awaitable
from typing import Final

from controllers.refusals import terminating
from jobset_gate import terminal_text
from jobset_gate.kube.errors import BadRequest, Forbidden, Invalid
from jobset_gate.verdicts import shorten

LONGEST: Final = 300
"""Bytes of what is told of one of them."""

MOST_TOLD: Final = 3


class Objections:
    """Those of one step, by what they are about."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    async def heed(self, about: str, writing: Awaitable[bool]) -> bool:
        """The write's own answer; True where it was refused for good, as there is nothing to be looked at anew."""
        try:
            return await writing
        except (BadRequest, Forbidden, Invalid) as refused:
            if terminating(refused):
                raise
            self._words[about] = shorten(terminal_text.line(refused.message), LONGEST)
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
        told = [f"{about} may not be changed: {self._words[about]}" for about in self.about[:MOST_TOLD]]
        more = len(self._words) - MOST_TOLD
        return "; ".join([*told, *([f"and {more} more"] if more > 0 else [])])
