"""The informer on a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import CONFIGMAPS
from tests.fakes.informer_harness import running_informer


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
