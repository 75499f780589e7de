"""The pod groups of a namespace, live: everything that their index is filled from, watched instead of listed once."""

import asyncio

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.informers import POD_GROUP_RESOURCES, watch_sources
from controllers.podgroups.owners import OwnerCapacityReader
from jobset_gate.cli.fetch import pod_group_rules, pod_groups
from jobset_gate.cli.fetch.pod_groups import FetchedPodGroups
from jobset_gate.cli.watch.source import ResourceWatch, is_forbidden, is_not_found
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.runtime.informer import AnyWatchSource
from jobset_gate.settings import Groups


class PodGroupWatch(ResourceWatch):
    """What may not be read stands in `reading.missing`; `failed` if that is the members themselves."""

    def __init__(
        self,
        client: Client,
        namespace: str | None,
        settings: Groups,
        *,
        controlled: bool = False,
        changed: asyncio.Event | None = None,
    ) -> None:
        super().__init__(changed)
        self._client, self._settings, self._controlled = client, settings, controlled
        index = PodGroupCache(settings)
        self.fetched = FetchedPodGroups(index)
        self._owners = OwnerCapacityReader(client)
        self._kinds = watch_sources(index, settings, namespace)
        for kind in self._kinds:
            self._watch(kind)

    async def reports(self) -> list[GroupStatus]:
        """By namespace and name."""
        made_by = await pod_group_rules.fetch_owner_capacity(self._client, self.fetched, self._owners)
        return pod_group_rules.pod_group_reports(
            self.fetched, self._settings, made_by, self.now(), controlled=self._controlled
        )

    def lost(self, number: int, problem: WatchProblem) -> bool:
        """A kind of PodGroup may be missing and come later; a right may be missing."""
        kind = self._kinds[number]
        if is_not_found(problem) and kind.resource in POD_GROUP_RESOURCES:
            return True
        if not is_forbidden(problem):
            return False
        pod_groups.add_forbidden(kind, self.fetched, problem.detail)
        if not self.fetched.pods_listed and not self.failed:
            self.failed = self.fetched.missing[-1]
        return True

    def _watch(self, kind: AnyWatchSource) -> None:
        self.watch(
            self._client,
            kind.resource,
            kind.wire,
            kind.convert,
            kind.namespace,
            labels=kind.label_selector,
            fields=kind.field_selector,
            handler=kind.handler,
        )
