"""Which pods take up room on nodes, as two watches tell of it: that of groups' pods, and that of what is bound (G3).

A pod of a group is told of once, by the first, which knows all that matters here; so the second leaves it out where it
can. A pod comes from one to the other when its label changes, in any order, and may be told of by both.
"""

from typing import Final

from controllers.groups.rooms import Rooms
from controllers.groups.seats import Pod
from jobset_gate.groups.seen import BoundSeen, MemberSeen

_ENDED: Final = ("Succeeded", "Failed")


class Takers:
    """By watch, who takes up room."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._members: dict[Pod, str] = {}
        """UIDs."""
        self._bound: dict[Pod, str] = {}

    def member(self, pod: Pod, new: MemberSeen | None) -> bool:
        """A pod with our label is now so, or gone; gives whether that is news of any room."""
        if new is not None and new.node and new.phase not in _ENDED:
            return self._take(self._members, self._bound, pod, _as_bound(new))
        return pod in self._members and self._take(self._members, self._bound, pod, None)

    def bound(self, pod: Pod, new: BoundSeen | None) -> bool:
        """The same of a pod of the other watch."""
        return self._take(self._bound, self._members, pod, new)

    def named(self, pod: Pod) -> str:
        """The UID under which the other watch has told of a pod of this name; "" if it has not."""
        return self._bound.get(pod, "")

    def _take(self, here: dict[Pod, str], there: dict[Pod, str], pod: Pod, new: BoundSeen | None) -> bool:
        was, news = here.pop(pod, ""), False
        if was and (new is None or new.uid != was) and there.get(pod) != was:
            news = self._rooms.unbind(was)
        if new is not None:
            here[pod] = new.uid
            news = self._rooms.bind(new) or news
        return news


def _as_bound(it: MemberSeen) -> BoundSeen:
    return BoundSeen(
        uid=it.uid,
        namespace=it.namespace,
        name=it.name,
        node=it.node,
        requests=it.shape.requests,
        priority=it.priority,
        repels=it.repels,
    )
