"""An observer of its own: it watches pods and PodGroups on the API server and knows nothing of the controller's mind.

All that happened is put in the one order that it had in the API server's storage, and gone through afterwards: a state
that lasted for a millisecond counts as much as one that stayed.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import POD_GROUPS, PODS, Resource
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups.manifests import bound, gated, opened
from tests.fakes.podgroups.manifests import of_group as pods_of

Json = dict[str, Any]
KIND = POD_GROUPS[names.PLUGINS_GROUP]
LONGEST = 600
"""Seconds for which the API server keeps a watch; no test takes so long."""


@dataclass(frozen=True, slots=True)
class StoredChange:
    version: int
    kind: str
    gone: bool
    what: Json

    @property
    def name(self) -> str:
        return str(self.what["metadata"]["name"])


class HistoryObserver:
    def __init__(self) -> None:
        self._seen: list[StoredChange] = []

    def history(self, until: int) -> list[StoredChange]:
        """In the order in which it was stored, up to that version."""
        return sorted((it for it in self._seen if it.version <= until), key=lambda it: it.version)

    def note(self, kind: str, change: str, what: Json) -> None:
        version = int(what["metadata"]["resourceVersion"])
        if change != "BOOKMARK":
            self._seen.append(StoredChange(version, kind, change == "DELETED", what))


@asynccontextmanager
async def observing(client: Client, namespace: str) -> AsyncIterator[HistoryObserver]:
    """From now on, until it is left. A watch that breaks is an error: something may have been missed."""
    observer, watches = HistoryObserver(), []
    for kind in (PODS, KIND):
        listed = await client.list(kind, namespace)
        assert not listed["items"], "it begins before anything is there"
        version = listed["metadata"]["resourceVersion"]
        watches.append(asyncio.create_task(_watch(client, kind, namespace, version, observer)))
    try:
        yield observer
        broken = [it for it in watches if it.done()]
        assert not broken, [it.exception() for it in broken]
    finally:
        for one in watches:
            one.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _watch(client: Client, kind: Resource, namespace: str, version: str, observer: HistoryObserver) -> None:
    async with client.watch(kind, namespace, resource_version=version, timeout_seconds=LONGEST) as lines:
        async for line in lines:
            reported = json.loads(line)
            observer.note(kind.kind, reported["type"], reported["object"])


Decision = tuple[str, int, float]
"""Group, generation, and when it was decided."""


@dataclass
class _Replay:
    """What was so at one moment."""

    pods: dict[str, Json] = field(default_factory=dict)
    records: dict[str, Json] = field(default_factory=dict)
    decided: dict[tuple[str, int], Decision] = field(default_factory=dict)
    """The last decision on a group that had this number."""
    met: set[Decision] = field(default_factory=set)
    """Those whose minimum was bound once."""

    def take(self, it: StoredChange) -> None:
        known = self.pods if it.kind == PODS.kind else self.records
        known.pop(it.name, None)
        if it.kind == PODS.kind and not it.gone:
            self.pods[it.name] = it.what
        text = (it.what["metadata"].get("annotations") or {}).get(names.POD_GROUP_RECORD)
        if it.kind == KIND.kind and not it.gone and text:
            stands = self.records[it.name] = json.loads(text)
            self.decided[it.name, stands["generation"]] = (it.name, stands["generation"], stands["at"])

    def open(self, group: str) -> bool:
        """It was decided to open it, or pods of it may be bound at any time, and it never had its minimum."""
        pods, record = pods_of(list(self.pods.values()), group, Format.SCHEDULER_PLUGINS), self.records.get(group)
        if record is not None and record["stage"] == "Open":
            decision = self.decided[group, record["generation"]]
            if sum(bound(it) and opened(it) == record["generation"] for it in pods) >= record["minimum"]:
                self.met.add(decision)
            if decision not in self.met:
                return True
        return any(self._may_be_bound(group, it) for it in pods)

    def _may_be_bound(self, group: str, pod: Json) -> bool:
        if bound(pod) or gated(pod) or "deletionTimestamp" in pod["metadata"]:
            return False
        decision = self.decided.get((group, opened(pod)))
        return decision is None or decision not in self.met


def admitted_together(
    history: list[StoredChange], domains: Mapping[str, str]
) -> Iterator[tuple[StoredChange, set[str]]]:
    """Each moment at which more than one group of a domain was open, and what had just happened."""
    moment = _Replay()
    for it in history:
        moment.take(it)
        for domain in set(domains.values()):
            found = {group for group, where in domains.items() if where == domain and moment.open(group)}
            if len(found) > 1:
                yield it, found
