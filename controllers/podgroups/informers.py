"""Which objects of groups the controller watches, and where their changes go. `get groups` lists the same ones."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from controllers.podgroups.cache import PodGroupCache
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import (
    CONFIGMAPS,
    NODES,
    POD_GROUPS,
    PODS,
    RESOURCEQUOTAS,
    Resource,
)
from jobset_gate.podgroups import decode, decode_records, quota, wire
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.runtime.decoder import OnWatchProblem, WatchProblem, WatchProblemKind
from jobset_gate.runtime.informer import AnyInformer, AnyWatchSource, Informer, WatchSource
from jobset_gate.settings import Groups

POD_GROUP_RESOURCES: Final = tuple(POD_GROUPS.values())

SYNC_POLL_SECONDS: Final = 0.1
"""Seconds, while a list is waited for."""

_NEEDED_BY: Final[Mapping[str, frozenset[Format]]] = {
    names.KEP24_GROUP: frozenset({Format.KEP_24}),
    names.PLUGINS_GROUP: frozenset({Format.SCHEDULER_PLUGINS, Format.KOORDINATOR_POD_GROUP}),
    names.SIGS_GROUP: frozenset({Format.KOORDINATOR_POD_GROUP}),
}
"""The ways that have their PodGroups in each API group."""

CONSUMING_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the pods that take up room on a node."""

WITHOUT_LABEL: Final = f"!{names.POD_GROUP_LABEL}"
"""Label selector of the pods that were not taken for a group."""


def watch_sources(index: PodGroupCache, settings: Groups, namespace: str | None) -> list[AnyWatchSource]:
    """All that an index is filled from. What a way needs that is switched off is left out."""
    ways = frozenset(settings.ways)
    found = [
        WatchSource(
            PODS,
            wire.GroupPod,
            partial(decode.member, ways=ways),
            index.on_member_pod,
            namespace,
            names.POD_GROUP_LABEL,
        ),
        *(_pod_groups(it, index, namespace) for it in POD_GROUP_RESOURCES if not ways.isdisjoint(_NEEDED_BY[it.group])),
        WatchSource(
            CONFIGMAPS,
            wire.RecordConfigMap,
            decode_records.config_map,
            index.on_config_map,
            namespace,
            f"{names.POD_GROUP_RECORD}={names.POD_GROUP_RECORD_VALUE}",
        ),
    ]
    if Format.KEP_24 in ways:
        found.append(WatchSource(RESOURCEQUOTAS, wire.ResourceQuota, _quota, index.on_quota, namespace))
    if settings.capacity_check is not CapacityCheck.OFF:
        # Whosever they are: what any pod takes up on a node is missing there.
        schedulers = frozenset(settings.scheduler_names)
        bound = partial(decode.bound, ways=ways, schedulers=schedulers, namespace=namespace)
        found.append(WatchSource(NODES, wire.Node, decode.node, index.on_node))
        # Where all members are watched, this watch need not tell of them a second time.
        others = WITHOUT_LABEL if namespace is None else ""
        found.append(
            WatchSource(
                PODS, wire.GroupPod, bound, index.on_bound_pod, label_selector=others, field_selector=CONSUMING_PODS
            )
        )
    return found


def informers(
    client: Client, index: PodGroupCache, settings: Groups, *, namespace: str | None, on_problem: OnWatchProblem
) -> list[AnyInformer]:
    """The informers that fill the index; one for each kind, and no noise about CRDs that are not installed."""
    found: list[AnyInformer] = []

    def tell(problem: WatchProblem) -> None:
        absent = any(it.is_not_installed for it in found if it.resource == problem.resource in POD_GROUP_RESOURCES)
        if not absent or problem.kind is not WatchProblemKind.LIST_FAILED:
            on_problem(problem)

    found += (Informer(client, source, on_problem=tell) for source in watch_sources(index, settings, namespace))
    return found


def not_synced(informers: Iterable[AnyInformer]) -> str:
    """What has not been listed yet and why, for people; "" if nothing is missing. A CRD may be installed later."""
    missing = [it for it in informers if not _is_full(it)]
    words = [f"{it.resource.plural} ({it.list_error})" if it.list_error else it.resource.plural for it in missing]
    return f"not listed yet: {', '.join(words)}" if words else ""


async def wait_for_sync(informers: Iterable[AnyInformer]) -> None:
    """Returns once all is listed that is installed: until then a PodGroup may be missing merely in its cache."""
    for informer in informers:
        while not _is_full(informer):
            with suppress(TimeoutError):  # that a kind is not installed is found out, but nobody is told
                # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with success.
                async with asyncio.timeout(SYNC_POLL_SECONDS):
                    await informer.wait_synced()


def _is_full(informer: AnyInformer) -> bool:
    return informer.has_synced or (informer.resource in POD_GROUP_RESOURCES and informer.is_not_installed)


def _pod_groups(resource: Resource, index: PodGroupCache, namespace: str | None) -> AnyWatchSource:
    return WatchSource(
        resource, wire.PodGroup, partial(decode_records.pod_group, api=resource.group), index.on_pod_group, namespace
    )


def _quota(seen: wire.ResourceQuota) -> quota.QuotaLimits:
    meta = {"name": seen.metadata.name, "namespace": seen.metadata.namespace}
    return quota.read_quota({"metadata": meta, "spec": seen.spec, "status": seen.status})
