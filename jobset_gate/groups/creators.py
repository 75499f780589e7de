"""Who makes a group's pods, and whether they can ever make enough while all of them are held (G3, CannotGather)."""

from collections.abc import Sequence

from jobset_gate.groups.model import Group
from jobset_gate.model import Word


class Creator(Word, frozen=True):
    """A controller that makes pods of a group."""

    kind: str
    name: str
    at_once: int | None
    """Pods it keeps side by side: a Job's parallelism, a StatefulSet's replicas. None: not known, or no limit."""
    one_by_one: bool = False
    """It waits for each pod to be ready before it makes the next, as a StatefulSet with OrderedReady does."""
    waits_for: str = ""
    """What must be done or ready before it makes any pod, if that is itself part of the group (dependsOn)."""

    @property
    def most(self) -> int | None:
        """How many pods it has while none of them may be scheduled."""
        if self.waits_for:
            return 0
        if self.one_by_one:
            return 1 if self.at_once is None else min(1, self.at_once)
        return self.at_once

    @property
    def told(self) -> str:
        """What it does, for people."""
        title = f"{self.kind} {self.name}"
        if self.waits_for:
            return f"{title} waits for {self.waits_for}"
        return f"{title} makes its pods one after the other" if self.one_by_one else f"{title} makes {self.at_once}"


def short(group: Group, creators: Sequence[Creator]) -> str | None:
    """Why the group can never gather; None if it can, or if that is not known."""
    numbers = [it.most for it in creators]
    known = [it for it in numbers if it is not None]
    if not creators or len(known) < len(numbers) or group.minimum is None or group.gathered:
        return None
    if sum(known) >= group.minimum:
        return None
    told = "; ".join(it.told for it in creators)
    return f"needs {group.minimum} pods at once, {sum(known)} can be there: {told}"
