"""What the page reads of its controller: the caches of gangs and pod groups, and how fresh they are."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from controllers.barrier.cache import GangCache
from controllers.podgroups.cache import PodGroupCache
from jobset_gate.barrier.model import Value
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.explain.text import format_time
from jobset_gate.kube.resources import CRDS, JOBSETS, POD_GROUPS
from jobset_gate.podgroups import podgroup_status
from jobset_gate.podgroups.candidate import Hold
from jobset_gate.podgroups.model import PodGroupKey as GroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.runtime.informer import Informer
from jobset_gate.timeline.summary import Prices

DISCONNECTED_SECONDS: Final = 5.0
"""Seconds without a watch after which the cache counts as old: watches end and begin again every minute."""

Why = Callable[[GroupKey], Hold | GroupReason | None]


class Freshness(Value, frozen=True):
    """How fresh the caches are, and which replica leads."""

    unlisted: str = ""
    """The resources that were never listed; then nothing can be shown."""
    lost: tuple[str, ...] = ()
    """Resources without a watch."""
    lost_for: float = 0.0
    leads: bool = True
    holder: str = ""
    """The holder of the Lease, if it is another replica; "" if none is known."""

    @property
    def live(self) -> bool:
        """Whether the page shows the present state of the cluster."""
        return not self.unlisted and not self.lost

    @property
    def controller(self) -> ControllerStatus:
        """The leader, for an explanation."""
        if self.leads:
            return ControllerStatus(leads=True, message="this replica of the controller leads")
        if self.holder:
            return ControllerStatus(leads=True, message=f"{self.holder} leads")
        none = "no controller leads at this moment: no gate is opened and no gang times out until one does"
        return ControllerStatus(leads=False, message=none)

    def sentences(self, now: float) -> Iterator[str]:
        """How fresh the page is, and which replica leads, as text."""
        if self.unlisted:
            yield f"Nothing can be shown yet: {self.unlisted}."
            return
        if self.lost:
            kinds, since = ", ".join(self.lost), format_time(now - self.lost_for)
            yield f"Old: no watch of {kinds} since {since}; what has changed after that is not shown."
        else:
            yield "Watches connected."
        if self.holder and not self.leads:
            known = "it sees the same cluster, and of groups what the leader wrote"
            yield f"{self.holder} leads, this replica stands by: {known}."
        elif not self.leads:
            yield "No controller leads at this moment: nothing is released, opened or timed out until one does."


@dataclass(frozen=True, slots=True)
class PageSource:
    """Reads caches only."""

    index: GangCache
    clock: Callable[[], float]
    """Seconds since the epoch."""
    fresh: Callable[[], Freshness]
    groups: PodGroupCache | None = None
    why: Why = lambda _: None
    """Why a pod group is pending, by the scheduler of this replica."""
    prices: Prices = field(default_factory=dict)

    def group(self, key: GroupKey) -> tuple[GroupSnapshot, Hold | GroupReason | None] | None:
        """A pod group and why it is pending: by the scheduler here, else as the leader has written it."""
        seen = self.groups.snapshot(key) if self.groups is not None else None
        return None if seen is None else (seen, self.why(key) or podgroup_status.published_reason(seen))


def disconnected_watches(informers: Iterable[Informer[Any, Any]]) -> tuple[tuple[str, ...], float]:
    """Resources without a watch, and the longest time without; one that is not installed does not count."""
    optional = (JOBSETS, CRDS, *POD_GROUPS.values())
    silent = {
        it.resource.plural: it.disconnected_for
        for it in informers
        if it.disconnected_for > DISCONNECTED_SECONDS
        and it.has_synced
        and not (it.is_not_installed and it.resource in optional)
    }
    return tuple(sorted(silent)), max(silent.values(), default=0.0)
