"""Informers of pod groups: what they select, and which handler of the cache gets it. `get groups` lists the same."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from controllers.podgroups.cache import PodGroupCache
from jobset_gate import names
from jobset_gate.kube.resources import CONFIGMAPS, NODES, POD_GROUPS, PODS, RESOURCEQUOTAS
from jobset_gate.podgroups import decode, preconditions, wire
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import FLAVOR_OF, NEEDS_POD_GROUP, POD_GROUP_APIS, Format
from jobset_gate.podgroups.snapshot import RecordObject
from jobset_gate.runtime.informer import AnyInformer, AnyWatchSource, WatchSource
from jobset_gate.runtime.store import Store
from jobset_gate.settings import Groups

POD_GROUP_RESOURCES: Final = tuple(POD_GROUPS.values())

CONSUMING_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the pods that use a node."""

WITHOUT_LABEL: Final = f"!{names.POD_GROUP_LABEL}"
"""Label selector of the pods that are members of no group."""


def watch_sources(cache: PodGroupCache, settings: Groups, namespace: str | None) -> list[AnyWatchSource]:
    """All that fills a cache. What only formats need that are off is left out."""
    formats = frozenset(settings.ways)
    read = {api for it in formats & NEEDS_POD_GROUP for api in POD_GROUP_APIS[FLAVOR_OF[it]]}
    found: list[AnyWatchSource] = [
        WatchSource(
            PODS,
            wire.GroupPod,
            partial(decode.decode_member, ways=formats),
            cache.on_member_pod,
            namespace,
            names.POD_GROUP_LABEL,
        ),
        *(
            WatchSource(
                it,
                wire.PodGroup,
                partial(decode.decode_pod_group, api=it.group),
                cache.on_record_object,
                namespace,
                may_be_absent=True,
            )
            for it in POD_GROUP_RESOURCES
            if it.group in read
        ),
        WatchSource(
            CONFIGMAPS,
            wire.RecordConfigMap,
            decode.decode_config_map,
            cache.on_record_object,
            namespace,
            f"{names.POD_GROUP_RECORD}={names.POD_GROUP_RECORD_VALUE}",
        ),
    ]
    if Format.KEP_24 in formats:
        found.append(
            WatchSource(RESOURCEQUOTAS, wire.ResourceQuota, preconditions.read_quota, cache.on_quota, namespace)
        )
    if settings.capacity_check is not CapacityCheck.OFF:
        # All pods: what any of them uses of a node is not free.
        schedulers = frozenset(settings.scheduler_names)
        bound = partial(decode.decode_bound_pod, ways=formats, schedulers=schedulers, namespace=namespace)
        found.append(WatchSource(NODES, wire.Node, decode.decode_node, cache.on_node))
        # Where the first informer selects all members, this one leaves them out.
        others = WITHOUT_LABEL if namespace is None else ""
        found.append(
            WatchSource(
                PODS, wire.GroupPod, bound, cache.on_bound_pod, label_selector=others, field_selector=CONSUMING_PODS
            )
        )
    return found


def record_stores(informers: Iterable[AnyInformer]) -> dict[str, Store[Any, RecordObject]]:
    """Of all objects that may store a record, by API group: they take the controller's own reads and writes."""
    resources = (CONFIGMAPS, *POD_GROUP_RESOURCES)
    return {it.resource.group: it.store for it in informers if it.resource in resources}
