"""The informer on a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import CONFIGMAPS, CRDS
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange
from tests.fakes.crds import remove_crds
from tests.fakes.informer_harness import SampleObject, running_informer
from tests.fakes.jobset_like_crd import JobSetLikeCrd


async def make(client: Client, namespace: str, name: str, value: str) -> None:
    meta = {"name": name, "namespace": namespace, "labels": {"kept": "yes"}}
    await client.create(CONFIGMAPS, {"metadata": meta, "data": {"value": value}})


async def change(client: Client, namespace: str, name: str, **patch: Any) -> None:
    await client.patch(CONFIGMAPS, name, namespace, body=patch, patch=PatchType.MERGE)


async def test_the_cache_follows_creation_change_deletion_and_the_selector(client: Client, namespace: str) -> None:
    await asyncio.gather(*(make(client, namespace, f"old{i}", "0") for i in range(7)))
    old = {f"old{i}": "0" for i in range(7)}
    async with running_informer(client, scope=namespace, label_selector="kept=yes", page_size=3) as watched:
        assert watched.values == old
        await make(client, namespace, "a", "1")
        await make(client, namespace, "b", "1")
        await watched.sees(**old, a="1", b="1")
        await change(client, namespace, "a", data={"value": "2"})
        await watched.sees(**old, a="2", b="1")
        await change(client, namespace, "b", metadata={"labels": {"kept": None}})
        await watched.sees(**old, a="2")
        await client.delete(CONFIGMAPS, "a", namespace)
        await watched.sees(**old)
        await change(client, namespace, "b", metadata={"labels": {"kept": "yes"}})
        await watched.sees(**old, b="1")
        assert watched.problems == []
    assert watched.changes[7:] == [
        ("a", None, "1"),
        ("b", None, "1"),
        ("a", "1", "2"),
        ("b", "1", None),
        ("a", "2", None),
        ("b", None, "1"),
    ]


async def test_a_kind_that_is_installed_later_and_removed_again_is_followed(client: Client, namespace: str) -> None:
    like = JobSetLikeCrd()
    names: set[str] = set()
    news = asyncio.Event()

    def changed(change: ObjectChange[str]) -> None:
        names.symmetric_difference_update({change.key[1]})
        news.set()

    async def sees(*expected: str) -> None:
        while names != set(expected):
            news.clear()
            await news.wait()

    informer: Informer[SampleObject, str] = Informer(
        client,
        WatchSource(like.resource, SampleObject, lambda thing: thing.metadata.name, changed),
        on_problem=lambda _: news.set(),
    )
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(informer.run())
        while not informer.is_not_installed:
            news.clear()
            await news.wait()
        await client.create(CRDS, like.manifest)
        await informer.wait_synced()
        assert informer.list_error == ""
        await client.create(like.resource, {"metadata": {"name": "one", "namespace": namespace}})
        await sees("one")
        await remove_crds(client, like.name)
        await sees()
        run.cancel()
