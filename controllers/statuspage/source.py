"""What the page reads of the controller around it: its index of gangs, its groups, and how far both can be trusted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from controllers.barrier.cache import GangCache
from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.explain.text import format_time
from jobset_gate.kube.resources import CRDS, JOBSETS, POD_GROUPS
from jobset_gate.podgroups import podgroup_status
from jobset_gate.podgroups.candidate import Hold
from jobset_gate.podgroups.model import PodGroupKey as GroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import GroupStatus, group_status
from jobset_gate.runtime.informer import Informer

DISCONNECTED_SECONDS: Final = 5.0
"""Seconds without a watch after which what is shown counts as old: watches end and begin anew every minute."""

Why = Callable[[GroupKey], Hold | GroupReason | None]


class PodGroupReader(Protocol):
    """What is asked of the index of groups."""

    def keys(self) -> Iterator[GroupKey]:
        """All groups."""

    def snapshot(self, key: GroupKey) -> GroupSnapshot | None:
        """All that is known of one."""


class Freshness(Value, frozen=True):
    """How true the cache is at this moment, and who decides."""

    unlisted: str = ""
    """What was never listed; then nothing can be shown."""
    lost: tuple[str, ...] = ()
    """Kinds of which no watch tells at this moment."""
    lost_for: float = 0.0
    leads: bool = True
    holder: str = ""
    """Who holds the Lease, if it is not this replica; "" where nobody is known to."""

    @property
    def live(self) -> bool:
        """Everything shown is what the cluster says now."""
        return not self.unlisted and not self.lost

    @property
    def controller(self) -> ControllerStatus:
        """The same for an explanation."""
        if self.leads:
            return ControllerStatus(leads=True, told="this replica of the controller leads")
        if self.holder:
            return ControllerStatus(leads=True, told=f"{self.holder} leads")
        told = "no controller leads at this moment: nobody opens a gate or times a gang out until one does"
        return ControllerStatus(leads=False, told=told)


@dataclass(frozen=True, slots=True)
class PageSource:
    """All that the page shows comes from here; nothing of it waits."""

    index: GangCache
    clock: Callable[[], float]
    """Seconds since the epoch."""
    fresh: Callable[[], Freshness]
    groups: PodGroupReader | None = None
    why: Why = lambda _: None
    """What holds a group up, by this replica's opener."""

    def group(self, key: GroupKey) -> tuple[GroupSnapshot, Hold | GroupReason | None] | None:
        """A group and what holds it up: by the opener here, else by what the leader has written about it last."""
        seen = self.groups.snapshot(key) if self.groups is not None else None
        return None if seen is None else (seen, self.why(key) or _written_reason(seen))

    def report(self, seen: GroupSnapshot, why: Hold | GroupReason | None) -> GroupStatus:
        """What is told of a group."""
        return group_status(seen, self.clock(), why)


def disconnected_watches(informers: Iterable[Informer[Any, Any]]) -> tuple[tuple[str, ...], float]:
    """The kinds of which no watch tells, and for how long the longest; a kind that is not installed is not missed."""
    optional = (JOBSETS, CRDS, *POD_GROUPS.values())
    silent = {
        it.resource.plural: it.disconnected_for
        for it in informers
        if it.disconnected_for > DISCONNECTED_SECONDS
        and it.has_synced
        and not (it.is_not_installed and it.resource in optional)
    }
    return tuple(sorted(silent)), max(silent.values(), default=0.0)


def freshness_sentences(fresh: Freshness, now: float) -> Sequence[str]:
    """For people: whether what they see is how things are, and who decides."""
    if fresh.unlisted:
        return (f"Nothing can be shown yet: {fresh.unlisted}.",)
    if fresh.lost:
        kinds = ", ".join(fresh.lost)
        since = format_time(now - fresh.lost_for)
        first = f"Old: no watch of {kinds} since {since}; what has changed after that is not shown."
    else:
        first = "Watches connected."
    if fresh.leads:
        return (first,)
    if not fresh.holder:
        return (first, "No controller leads at this moment: nothing is released, opened or timed out until one does.")
    return (
        first,
        f"{fresh.holder} leads, this replica stands by: it sees the same cluster, and of groups what the leader wrote.",
    )


def _written_reason(seen: GroupSnapshot) -> GroupReason | None:
    """What a controller has written about a group: on its PodGroup's status, or in an annotation of its home."""
    condition = podgroup_status.group_condition(seen.pod_group_status)
    if condition:
        return GroupReason(reason=str(condition.get("reason", "")), message=str(condition.get("message", "")))
    parts = seen.annotations.get(names.POD_GROUP_STATE, "").split(": ", 2)
    return GroupReason(reason=parts[1], message=parts[2]) if len(parts) == 3 else None
