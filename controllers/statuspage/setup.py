"""Builds the status page from the controller's caches."""

from collections.abc import Callable, Sequence
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


def make_status_page(
    options: PageOptions,
    client: Client,
    index: GangCache,
    informers: Sequence[Informer[Any, Any]],
    groups: PodGroupControllers | None,
    *,
    elector: LeaderElector | None,
    leads: Callable[[], bool],
    clock: Callable[[], float],
    registry: CollectorRegistry,
) -> StatusPage:
    """On every replica: a standby's caches are as full as the leader's."""

    def freshness() -> Freshness:
        unlisted = watches.not_synced(informers) or ("" if groups is None else groups.not_synced())
        lost, seconds = disconnected_watches((*informers, *(() if groups is None else groups.informers)))
        holder = elector.holder if elector is not None and elector.is_held_by_other else ""
        return Freshness(unlisted=unlisted, lost=lost, lost_for=seconds, leads=leads(), holder=holder)

    if groups is None:
        return StatusPage(options, PageSource(index=index, clock=clock, fresh=freshness), client, registry)
    source = PageSource(index=index, clock=clock, fresh=freshness, groups=groups.cache, why=groups.pending.why_pending)
    return StatusPage(options, source, client, registry)
