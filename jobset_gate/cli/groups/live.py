"""The pod groups of a namespace, live: everything that their index is filled from, watched instead of listed once."""

import asyncio

from controllers.groups.index import PodGroupCache
from controllers.groups.owners import OwnerCapacityReader
from controllers.groups.watches import POD_GROUP_RESOURCES, WatchSource, watch_sources
from jobset_gate.cli.groups import reading, telling
from jobset_gate.cli.groups.reading import FetchedPodGroups
from jobset_gate.cli.verbs.watched import ResourceWatch, is_forbidden, is_not_found
from jobset_gate.groups.report import GroupStatus
from jobset_gate.kube.client import Client
from jobset_gate.kube.problems import WatchProblem
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
        index = PodGroupCache(lambda _: None, lambda _: None, settings)
        self.fetched = FetchedPodGroups(index)
        self._owners = OwnerCapacityReader(client)
        self._kinds = watch_sources(index, settings, namespace)
        for kind in self._kinds:
            self._watch(kind)

    async def reports(self) -> list[GroupStatus]:
        """By namespace and name."""
        made_by = await telling.fetch_owner_capacity(self._client, self.fetched, self._owners)
        return telling.pod_group_reports(self.fetched, self._settings, made_by, self.now(), controlled=self._controlled)

    def lost(self, number: int, problem: WatchProblem) -> bool:
        """A kind of PodGroup may be missing and come later; a right may be missing."""
        kind = self._kinds[number]
        if is_not_found(problem) and kind.resource in POD_GROUP_RESOURCES:
            return True
        if not is_forbidden(problem):
            return False
        reading.add_forbidden(kind, self.fetched, problem.detail)
        if not self.fetched.pods_listed and not self.failed:
            self.failed = self.fetched.missing[-1]
        return True

    def _watch(self, kind: WatchSource) -> None:
        self.watch(
            self._client,
            kind.resource,
            kind.wire_type,
            kind.convert,
            kind.namespace,
            labels=kind.label_selector,
            fields=kind.field_selector,
            handler=kind.handler,
        )
