"""What groups lacked when that was looked at last, kept from one pass to the next: looking takes time (G3)."""

from collections.abc import Sequence
from typing import Final

from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import NodeInfo

WORDS_LAST: Final = 5.0
"""Seconds after which words may be found anew."""


class MessageMemo:
    """What groups lacked when that was looked at last; groups that are alike lack the same."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[str, float, object]] = {}

    def of(self, like: object) -> str | None:
        """None: nobody has looked yet."""
        known = self._known.get(like)
        return None if known is None else known[0]

    def old(self, like: object, now: float) -> bool:
        """Whether they are worth another look."""
        known = self._known.get(like)
        return known is None or now - known[1] > WORDS_LAST

    def still(self, like: object, state: object) -> bool:
        """Whether another look would find the same."""
        known = self._known.get(like)
        return known is not None and state is not None and known[2] == state

    def learn(self, like: object, lacks: str, now: float, state: object) -> None:
        """This is what they lack."""
        self._known[like] = lacks, now, state

    def forget_all(self) -> None:
        """Nobody waits any more."""
        self._known.clear()


class FitMemo:
    """Whether groups could ever have room on the nodes there are, were nothing else on them.

    To hold others back for one that could not would not help it. Once the nodes are others, it is judged anew.
    """

    def __init__(self) -> None:
        self._rooms: Sequence[NodeInfo] = ()
        self._nodes = 0
        """How often they were found different."""
        self._known: dict[object, tuple[int, str]] = {}

    def renew(self, rooms: Sequence[NodeInfo]) -> None:
        """The nodes as they are now. What nobody has asked for since they changed the last time is forgotten."""
        before, self._rooms = self._rooms, rooms
        if before is rooms or (len(before) == len(rooms) and all(map(_same, before, rooms))):
            return
        self._known = {like: known for like, known in self._known.items() if known[0] == self._nodes}
        self._nodes += 1

    def is_known(self, like: object) -> bool:
        """Whether it was judged on the nodes as they are."""
        known = self._known.get(like)
        return known is not None and known[0] == self._nodes

    def never(self, like: object) -> str:
        """Why it could not, as it was judged last, be it on other nodes; "": it could, or nobody has looked."""
        return self._known.get(like, (0, ""))[1]

    def look(self, like: object, demands: Sequence[GroupRequest]) -> None:
        """Judges it, which takes a millisecond for each kind of pods."""
        self._known[like] = self._nodes, greedy.never_fits(demands, self._rooms)


def _same(old: NodeInfo, new: NodeInfo) -> bool:
    """Whether it would have room for the same if nothing were bound to it."""
    nodes = old.node is new.node or old.node == new.node
    return nodes and (old.empty is new.empty or old.empty == new.empty)
