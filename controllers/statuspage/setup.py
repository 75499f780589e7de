"""The page's place in the controller: what of it is shown, and how far it can be trusted at each moment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from controllers.barrier import informers as watches
from controllers.barrier.cache import GangCache
from controllers.podgroups.setup import PodGroupControllers
from controllers.statuspage.options import PageOptions
from controllers.statuspage.server import StatusPage
from controllers.statuspage.source import Freshness, PageSource, disconnected_watches
from jobset_gate.kube.client import Client
from jobset_gate.runtime.informer import Informer
from jobset_gate.runtime.leader_election import LeaderElector

CONNECTIONS = 16
"""To the API server: reviews of viewers, and pods for pictures."""


@dataclass(frozen=True, slots=True)
class StatusPageDependencies:
    """What the page needs of the controller around it."""

    client: Client
    index: GangCache
    informers: Sequence[Informer[Any, Any]]
    groups: PodGroupControllers | None
    elector: LeaderElector | None
    leads: Callable[[], bool]
    clock: Callable[[], float]
    registry: CollectorRegistry

    def freshness(self) -> Freshness:
        """How true the caches are, and who decides."""
        groups = self.groups
        unlisted = watches.not_synced(self.informers) or ("" if groups is None else groups.not_synced())
        silent, seconds = disconnected_watches((*self.informers, *(() if groups is None else groups.informers)))
        return Freshness(unlisted=unlisted, lost=silent, lost_for=seconds, leads=self.leads(), holder=self._holder())

    def _holder(self) -> str:
        elector = self.elector
        return elector.holder if elector is not None and elector.is_held_by_other else ""


def make_status_page(options: PageOptions, around: StatusPageDependencies) -> StatusPage:
    """Of this replica, whether or not it leads: its caches are as full as the leader's."""
    groups = around.groups
    source = PageSource(
        index=around.index,
        clock=around.clock,
        fresh=around.freshness,
        groups=None if groups is None else groups.cache,
        why=(lambda _: None) if groups is None else groups.pending.why_pending,
    )
    return StatusPage(options, source, around.client, around.registry)
