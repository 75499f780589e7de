"""Pod groups as the controller sees them: the same objects and cache, and a status by the same rules."""

import asyncio
import time
from functools import partial
from typing import Any, Final

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.informers import POD_GROUP_RESOURCES, watch_sources
from controllers.podgroups.owners import OwnerCapacities
from jobset_gate import names
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import Permissions, ResourceSource, Unavailable, resource_name
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, NODES, PODS, RESOURCEQUOTAS, Resource
from jobset_gate.podgroups import podgroup_status, preconditions, wire
from jobset_gate.podgroups.candidate import Admit, CapacityCheck, Hold
from jobset_gate.podgroups.evaluate import GroupEvaluator, evaluate_all
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.owners import OwnerCapacity
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import GroupStatus, group_status
from jobset_gate.runtime.informer import AnyWatchSource, WatchSource
from jobset_gate.runtime.store import ObjectChange, ObjectKey
from jobset_gate.settings import Groups

MAX_OWNER_READS: Final = 100
"""Groups whose pods' owners are read: each costs a request or more."""

_KNOWN_TO_CONTROLLER: Final = (names.REASON_CANNOT_GATHER, names.REASON_INVALID_GROUP, names.REASON_NATIVE_UNAVAILABLE)
"""What may depend on more than is read here: the owners of the pods, their JobSets, the scheduler."""
_UNKNOWN_WITHOUT: Final = {
    **dict.fromkeys(POD_GROUP_RESOURCES, ": its groups look as if theirs were missing"),
    CONFIGMAPS: ": of groups without a PodGroup it is not known whether they were opened",
    RESOURCEQUOTAS: ": totalResources are not compared with what is left of them",
}


class PodGroupSource(ResourceSource):
    """The groups of a namespace (None: of all), and the cluster's nodes with what is bound to them.

    `selector`: only those with these labels. `controlled`: a controller runs, so the status that it has written is
    up to date.
    """

    def __init__(
        self,
        client: Client,
        namespace: str | None,
        permissions: Permissions,
        settings: Groups,
        *,
        selector: str = "",
        controlled: bool = False,
    ) -> None:
        super().__init__(client, permissions)
        self.pods_forbidden = False
        self._namespace, self._settings, self._controlled = namespace, settings, controlled
        self._cache = PodGroupCache(settings)
        self._owners = OwnerCapacities(client)
        self._nodes_forbidden = False
        self._selector = selector
        self._selected: set[tuple[str, ObjectKey]] = set()
        """Of the PodGroups and pods with these labels: API group, namespace and name."""

    def sources(self) -> list[AnyWatchSource]:
        self._cache = PodGroupCache(self._settings)
        found = watch_sources(self._cache, self._settings, self._namespace)
        if not self._selector:
            return found
        self._selected = set()
        labels: list[tuple[Resource, type[Any], str]] = [
            (it.resource, it.wire, self._selector) for it in found if it.resource in POD_GROUP_RESOURCES
        ]
        labels.append((PODS, wire.GroupPod, f"{names.POD_GROUP_LABEL},{self._selector}"))
        return found + [
            WatchSource(resource, kind, lambda it: it, partial(self._select, resource.group), self._namespace, wanted)
            for resource, kind, wanted in labels
        ]

    def _select(self, group: str, change: ObjectChange[object]) -> None:
        (self._selected.discard if change.new is None else self._selected.add)((group, change.key))

    def _selects(self, it: GroupStatus) -> bool:
        """By the labels of the PodGroup; where there is none, by those of any of its pods."""
        if not self._selector:
            return True
        if it.pod_group is not None:
            return (it.pod_group.api, (it.key.namespace, it.pod_group.name)) in self._selected
        return any((PODS.group, (one.namespace, one.name)) in self._selected for one in it.snapshot.members)

    @property
    def unassigned_pods(self) -> int:
        """Pods with our label that name no group any more."""
        return len(self._cache.unassigned_pods())

    async def statuses(self) -> list[GroupStatus]:
        """Of all groups, by namespace and name; the owners of pods are read where a group lacks members."""
        cache, now = self._cache, time.time()
        seen = [it for key in cache.keys() if (it := cache.snapshot(key)) is not None]  # noqa: SIM118 - no mapping
        evaluator = GroupEvaluator(
            cache.snapshot,
            cache.group,
            across_namespaces=self._settings.across_namespaces,
            owner_capacities=await self._owner_capacities(seen),
            quota_shortage=lambda it: preconditions.quota_shortage(it, cache.quotas(it.group.key.namespace)),
        )
        evaluated = evaluate_all(
            seen,
            cache.nodes.node_infos(),
            evaluator,
            bound=cache.nodes.has_pod,
            check=CapacityCheck.OFF if self._nodes_forbidden else self._settings.capacity_check,
            starvation_seconds=self._settings.starvation_seconds,
            now=now,
            excluded=cache.nodes.excluded_nodes,
        )
        found = [group_status(it, now, self._reason(it, evaluated.get(it.group.key))) for it in seen]
        return sorted(filter(self._selects, found), key=lambda it: (it.key.namespace, it.key.name, it.key.flavor))

    async def _owner_capacities(self, seen: list[GroupSnapshot]) -> dict[PodGroupKey, tuple[OwnerCapacity, ...]]:
        """Of groups that have too few pods: their owners may be unable to create enough."""
        few = [it for it in seen if it.members and it.group.minimum and not it.group.gathered]
        found = await asyncio.gather(*(self._owners.capacities_of(it) for it in few[:MAX_OWNER_READS]))
        return {it.group.key: owners for it, owners in zip(few, found, strict=False)}

    def _reason(self, seen: GroupSnapshot, own: Admit | Hold | GroupReason | None) -> Admit | Hold | GroupReason | None:
        """What the controller has written, where more than is read here decides."""
        written = podgroup_status.published_reason(seen)
        if written is None or own is None:
            return own
        if self._nodes_forbidden and isinstance(own, Admit):
            return written
        return written if self._controlled and written.reason in _KNOWN_TO_CONTROLLER else own

    def on_unavailable(self, it: Unavailable) -> bool:
        source = it.source
        if not it.forbidden:
            return source.resource in POD_GROUP_RESOURCES  # a CRD may be installed later
        where = f"in namespace {source.namespace}" if source.namespace else "in all namespaces"
        where = where if source.resource.namespaced else "(they belong to no namespace)"
        about = f"no right to list {resource_name(source.resource)} {where}"
        if source.resource == NODES or (source.resource == PODS and source.field_selector):
            self._nodes_forbidden = True
            about += ": whether a group has room is unknown"
        elif source.resource == PODS:
            self.pods_forbidden = True
            about += f": no member can be seen ({it.message})"
        else:
            about += _UNKNOWN_WITHOUT.get(source.resource, "")
        self.permissions.add_sentence(about)
        if self.pods_forbidden:
            self.permissions.hidden_kinds.add("pod groups")
            if self.watching and self.failed is None:
                self.failed = CommandError(about)
        return True
