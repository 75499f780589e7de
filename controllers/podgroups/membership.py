"""Which pod sits in which group: by its label, or by what it says if it is bound and was not taken for one (G2)."""

from collections.abc import Callable, Iterable

from controllers.podgroups.entry import PodGroupEntry
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.snapshot import MemberPod

PodRef = tuple[str, str]
"""(Namespace, name)."""

_Seat = tuple[str, str]
"""(Namespace, label): a label counts in its group's own namespace only, since anybody may put it on a pod of his."""

OnPodChange = Callable[[PodGroupEntry, MemberPod | None, MemberPod | None], None]


class PodMembership:
    """All groups with what is known of them; one that has neither pods nor a home is forgotten."""

    def __init__(self, differs: OnPodChange, has_home: Callable[[PodGroupKey], bool]) -> None:
        """`differs` hears of each pod that is another than before, after its group knows."""
        self._differs, self._has_home = differs, has_home
        self._parts: dict[_Seat, PodGroupEntry] = {}
        self._held: dict[PodRef, tuple[_Seat, str]] = {}
        """Where the pod of this name sits, and its UID."""
        self._ungated: dict[str, _Seat] = {}
        """By UID."""

    def set_labelled_pod(self, pod: PodRef, new: MemberPod | None) -> None:
        """A pod with a label is now so, or gone. A namesake takes its predecessor's place in the watch."""
        seat = None if new is None or not new.group_label else (new.namespace, new.group_label)
        was = self._held.get(pod)
        if was is not None and (seat is None or new is None or was != (seat, new.uid)):
            del self._held[pod]
            self._drop(was[0], was[1], held=True)
        if new is not None and seat is not None:
            self._held[pod] = (seat, new.uid)
            self._put(seat, new)

    def set_bound_pod(self, uid: str, new: MemberPod | None) -> None:
        """A bound pod that only names its group is now so, or is none any more."""
        seat = None if new is None or new.membership is None else (new.namespace, group_label(new.membership.key))
        was = self._ungated.get(uid)
        if was is not None and was != seat:
            del self._ungated[uid]
            self._drop(was, uid, held=False)
        if new is not None and seat is not None:
            self._ungated[uid] = seat
            self._put(seat, new)

    def entry(self, key: PodGroupKey) -> PodGroupEntry | None:
        """What is known of a group."""
        return self._parts.get((key.namespace, group_label(key)))

    def ensure_entry(self, key: PodGroupKey) -> PodGroupEntry:
        """The same; made if nothing is known of it yet."""
        seat = (key.namespace, group_label(key))
        parts = self._parts.get(seat)
        if parts is None:
            parts = self._parts[seat] = PodGroupEntry(seat[1], key)
        parts.key = key
        return parts

    def prune_entry(self, parts: PodGroupEntry, namespace: str) -> None:
        """Forgets a group of which nothing is left."""
        if parts.empty and (parts.key is None or not self._has_home(parts.key)):
            self._parts.pop((namespace, parts.label), None)

    def entries(self) -> Iterable[PodGroupEntry]:
        """All of them as they are now."""
        return list(self._parts.values())

    def __len__(self) -> int:
        return len(self._parts)

    def _put(self, seat: _Seat, new: MemberPod) -> None:
        parts = self._parts.get(seat)
        if parts is None:
            parts = self._parts[seat] = PodGroupEntry(seat[1])
        old = parts.put_pod(new)
        if old != new:
            self._differs(parts, old, new)

    def _drop(self, seat: _Seat, uid: str, *, held: bool) -> None:
        parts = self._parts[seat]
        self._differs(parts, parts.drop_pod(uid, held=held), None)
        self.prune_entry(parts, seat[0])
