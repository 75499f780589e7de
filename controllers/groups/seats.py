"""Which pod sits in which group: by its label, or by what it says if it is bound and was not taken for one (G2)."""

from collections.abc import Callable, Iterable

from controllers.groups.parts import Parts
from jobset_gate.groups.identity import label
from jobset_gate.groups.model import Key
from jobset_gate.groups.seen import MemberSeen

Pod = tuple[str, str]
"""(Namespace, name)."""

_Seat = tuple[str, str]
"""(Namespace, label): a label counts in its group's own namespace only, since anybody may put it on a pod of his."""

Differs = Callable[[Parts, MemberSeen | None, MemberSeen | None], None]


class Seats:
    """All groups with what is known of them; one that has neither pods nor a home is forgotten."""

    def __init__(self, differs: Differs, has_home: Callable[[Key], bool]) -> None:
        """`differs` hears of each pod that is another than before, after its group knows."""
        self._differs, self._has_home = differs, has_home
        self._parts: dict[_Seat, Parts] = {}
        self._held: dict[Pod, tuple[_Seat, str]] = {}
        """Where the pod of this name sits, and its UID."""
        self._ungated: dict[str, _Seat] = {}
        """By UID."""

    def hold(self, pod: Pod, new: MemberSeen | None) -> None:
        """A pod with a label is now so, or gone. A namesake takes its predecessor's place in the watch."""
        seat = None if new is None or not new.held else (new.namespace, new.held)
        was = self._held.get(pod)
        if was is not None and (seat is None or new is None or was != (seat, new.uid)):
            del self._held[pod]
            self._drop(was[0], was[1], held=True)
        if new is not None and seat is not None:
            self._held[pod] = (seat, new.uid)
            self._put(seat, new)

    def name(self, uid: str, new: MemberSeen | None) -> None:
        """A bound pod that only names its group is now so, or is none any more."""
        seat = None if new is None or new.claim is None else (new.namespace, label(new.claim.key))
        was = self._ungated.get(uid)
        if was is not None and was != seat:
            del self._ungated[uid]
            self._drop(was, uid, held=False)
        if new is not None and seat is not None:
            self._ungated[uid] = seat
            self._put(seat, new)

    def of(self, key: Key) -> Parts | None:
        """What is known of a group."""
        return self._parts.get((key.namespace, label(key)))

    def made(self, key: Key) -> Parts:
        """The same; made if nothing is known of it yet."""
        seat = (key.namespace, label(key))
        parts = self._parts.get(seat)
        if parts is None:
            parts = self._parts[seat] = Parts(seat[1], key)
        parts.key = key
        return parts

    def tidy(self, parts: Parts, namespace: str) -> None:
        """Forgets a group of which nothing is left."""
        if parts.empty and (parts.key is None or not self._has_home(parts.key)):
            self._parts.pop((namespace, parts.label), None)

    def all(self) -> Iterable[Parts]:
        """All of them as they are now."""
        return list(self._parts.values())

    def __len__(self) -> int:
        return len(self._parts)

    def _put(self, seat: _Seat, new: MemberSeen) -> None:
        parts = self._parts.get(seat)
        if parts is None:
            parts = self._parts[seat] = Parts(seat[1])
        old = parts.put(new)
        if old != new:
            self._differs(parts, old, new)

    def _drop(self, seat: _Seat, uid: str, *, held: bool) -> None:
        parts = self._parts[seat]
        self._differs(parts, parts.drop(uid, held=held), None)
        self.tidy(parts, seat[0])
