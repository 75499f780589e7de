"""What has become of the groups of each domain in one pass, and of those whose domains share nodes with it (G3)."""

from collections.abc import Iterable, Sequence

from jobset_gate.groups.candidates import Candidate, Opened, order
from jobset_gate.groups.certainty import Ground, Ledger, Shape, alike
from jobset_gate.groups.model import Key


class Yard:
    """What has become of the groups of one domain so far."""

    def __init__(self) -> None:
        self.held: Candidate | None = None
        self.starved: Candidate | None = None
        self.probing: Key | None = None
        self.book: list[tuple[Sequence[Shape], bool]] = []
        """Pods that are to be placed, and whether they need to be."""

    def opened(self, group: Opened) -> None:
        """Its pods take up room, or may."""
        shapes = [shape for demand in group.demands for shape in demand.shapes]
        sure = group.proven and not group.placed
        self.book.append((shapes, sure))
        if not sure and not group.placed:
            self.probing = self.probing or group.demands[0].key


class Near:
    """The yards that share nodes with a domain, and their books added up."""

    def __init__(self, yards: Sequence[Yard], ground: Ground) -> None:
        self.yards = yards
        self._read = [0] * len(yards)
        self._ledger = Ledger(ground)

    @property
    def ledger(self) -> Ledger:
        """With all that has been opened so far."""
        for number, yard in enumerate(self.yards):
            for shapes, sure in yard.book[self._read[number] :]:
                self._ledger.add(shapes, sure=sure)
            self._read[number] = len(yard.book)
        return self._ledger

    def shapes(self, *, sure: bool) -> list[Shape]:
        """What is to be placed and needs to be, or need not."""
        return alike(shape for yard in self.yards for shapes, needs in yard.book if needs is sure for shape in shapes)

    @property
    def starved(self) -> Candidate | None:
        """The first that may not be passed any more."""
        return _first(it.starved for it in self.yards)

    @property
    def earlier(self) -> Candidate | None:
        """The first of those that stay closed."""
        return _first(it.held for it in self.yards)

    @property
    def probing(self) -> Key | None:
        """Which group has the one place for those that are not sure of theirs."""
        return next((it.probing for it in self.yards if it.probing is not None), None)


def _first(held: Iterable[Candidate | None]) -> Candidate | None:
    return min((it for it in held if it is not None), key=order, default=None)
