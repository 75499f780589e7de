"""Follows the pods of one namespace, as the watcher and the bare loop see them: one list, then the watch."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from bench.groups.plan import GROUP
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.runtime.paging import ListScope, list_pages

WATCH_SECONDS = 3600


class BenchMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class BenchPod(msgspec.Struct, frozen=True):
    metadata: BenchMeta

    @property
    def group(self) -> str:
        return self.metadata.labels.get(GROUP, "")


class BenchPodEvent(msgspec.Struct, frozen=True):
    type: str
    object: BenchPod


async def begin(client: Client, namespace: str, field_selector: str = "") -> str:
    """The version to watch from; nothing is there yet."""
    listed = [page async for page in list_pages(client, ListScope(PODS, namespace, field_selector=field_selector), 500)]
    assert not any(items for items, _ in listed), "pods of an earlier run"
    return listed[-1][1]


async def follow(client: Client, namespace: str, version: str, field_selector: str = "") -> AsyncIterator[BenchPod]:
    """Each pod that is added (to what the selector selects), until cancelled."""
    decode = msgspec.json.Decoder(BenchPodEvent).decode
    while True:  # an API server ends watches of slow clients
        async with client.watch(
            PODS,
            namespace,
            field_selector=field_selector,
            resource_version=version,
            timeout_seconds=WATCH_SECONDS,
            allow_bookmarks=False,
            idle_timeout=WATCH_SECONDS,  # nothing is bound while pods are only made
        ) as lines:
            async for line in lines:
                event = decode(line)
                version = event.object.metadata.resource_version
                if event.type == "ADDED":
                    yield event.object
