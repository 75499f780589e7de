"""Builds the status page from the controller's caches."""

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
"""To the API server: for reviews, and for the pods of timelines."""


@dataclass(frozen=True, slots=True)
class StatusPageDependencies:
    """What the page needs of the controller."""

    client: Client
    index: GangCache
    informers: Sequence[Informer[Any, Any]]
    groups: PodGroupControllers | None
    elector: LeaderElector | None
    leads: Callable[[], bool]
    clock: Callable[[], float]
    registry: CollectorRegistry

    def freshness(self) -> Freshness:
        """Of the caches, and the leader."""
        groups = self.groups
        unlisted = watches.not_synced(self.informers) or ("" if groups is None else groups.not_synced())
        lost, seconds = disconnected_watches((*self.informers, *(() if groups is None else groups.informers)))
        return Freshness(unlisted=unlisted, lost=lost, lost_for=seconds, leads=self.leads(), holder=self._holder())

    def _holder(self) -> str:
        elector = self.elector
        return elector.holder if elector is not None and elector.is_held_by_other else ""


def make_status_page(options: PageOptions, dependencies: StatusPageDependencies) -> StatusPage:
    """On every replica: a standby's caches are as full as the leader's."""
    groups = dependencies.groups
    source = PageSource(
        index=dependencies.index,
        clock=dependencies.clock,
        fresh=dependencies.freshness,
        groups=None if groups is None else groups.cache,
        why=(lambda _: None) if groups is None else groups.pending.why_pending,
    )
    return StatusPage(options, source, dependencies.client, dependencies.registry)
