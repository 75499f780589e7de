"""The pod groups of a namespace, live: everything that their index is filled from, watched instead of listed once."""

import asyncio

from controllers.groups.index import GroupIndex
from controllers.groups.owners import Owners
from controllers.groups.watches import POD_GROUP_KINDS, Kept, kinds
from jobset_gate.cli.groups import reading, telling
from jobset_gate.cli.groups.reading import Reading
from jobset_gate.cli.verbs.watched import Watched, is_absent, is_forbidden
from jobset_gate.groups.report import Report
from jobset_gate.kube.client import Client
from jobset_gate.kube.problems import Problem
from jobset_gate.settings import Groups


class LiveGroups(Watched):
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
        index = GroupIndex(lambda _: None, lambda _: None, settings)
        self.reading = Reading(index)
        self._owners = Owners(client)
        self._kinds = kinds(index, settings, namespace)
        for kind in self._kinds:
            self._watch(kind)

    async def reports(self) -> list[Report]:
        """By namespace and name."""
        made_by = await telling.makers(self._client, self.reading, self._owners)
        return telling.reports(self.reading, self._settings, made_by, self.now(), controlled=self._controlled)

    def lost(self, number: int, problem: Problem) -> bool:
        """A kind of PodGroup may be missing and come later; a right may be missing."""
        kind = self._kinds[number]
        if is_absent(problem) and kind.resource in POD_GROUP_KINDS:
            return True
        if not is_forbidden(problem):
            return False
        reading.blinded(kind, self.reading, problem.detail)
        if not self.reading.members and not self.failed:
            self.failed = self.reading.missing[-1]
        return True

    def _watch(self, kind: Kept) -> None:
        self.watch(
            self._client,
            kind.resource,
            kind.shape,
            kind.convert,
            kind.namespace,
            labels=kind.label_selector,
            fields=kind.field_selector,
            handler=kind.handler,
        )
