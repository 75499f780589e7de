"""Which pods take up room on nodes, as two watches tell of it: that of groups' pods, and that of what is bound (G3).

A pod of a group is told of once, by the first, which knows all that matters here; so the second leaves it out where it
can. A pod comes from one to the other when its label changes, in any order, and may be told of by both.
"""

from typing import Final

from controllers.podgroups.membership import PodRef
from controllers.podgroups.node_cache import NodeCache
from jobset_gate.podgroups.snapshot import BoundPod, MemberPod

_ENDED: Final = ("Succeeded", "Failed")


class NodeConsumers:
    """By watch, who takes up room."""

    def __init__(self, rooms: NodeCache) -> None:
        self._rooms = rooms
        self._members: dict[PodRef, str] = {}
        """UIDs."""
        self._bound: dict[PodRef, str] = {}

    def set_member(self, pod: PodRef, new: MemberPod | None) -> bool:
        """A pod with our label is now so, or gone; gives whether that is news of any room."""
        if new is not None and new.node and new.phase not in _ENDED:
            return self._take(self._members, self._bound, pod, _as_bound(new))
        return pod in self._members and self._take(self._members, self._bound, pod, None)

    def set_bound(self, pod: PodRef, new: BoundPod | None) -> bool:
        """The same of a pod of the other watch."""
        return self._take(self._bound, self._members, pod, new)

    def bound_uid(self, pod: PodRef) -> str:
        """The UID under which the other watch has told of a pod of this name; "" if it has not."""
        return self._bound.get(pod, "")

    def _take(self, here: dict[PodRef, str], there: dict[PodRef, str], pod: PodRef, new: BoundPod | None) -> bool:
        was, news = here.pop(pod, ""), False
        if was and (new is None or new.uid != was) and there.get(pod) != was:
            news = self._rooms.remove_pod(was)
        if new is not None:
            here[pod] = new.uid
            news = self._rooms.add_pod(new) or news
        return news


def _as_bound(it: MemberPod) -> BoundPod:
    return BoundPod(
        uid=it.uid,
        namespace=it.namespace,
        name=it.name,
        node=it.node,
        requests=it.shape.requests,
        priority=it.priority,
        anti_affinity=it.anti_affinity,
    )
