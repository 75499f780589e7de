"""The two planes, by the same words: what every other test takes for granted."""

import asyncio
import os
from pathlib import Path

import pytest

from jobset_gate.kube.errors import AlreadyExists
from jobset_gate.kube.resources import CONFIGMAPS
from tests.plane.kubectl import KubectlFailed
from tests.plane.planes import Plane

CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"key": "value"}}


async def test_what_our_client_writes_kubectl_reads(plane: Plane, namespace: str) -> None:
    async with plane.client() as client:
        await client.create(CONFIGMAPS, CONFIGMAP, namespace)
    seen = await plane.kubectl("get", "configmap", "one", "-n", namespace, "-o", "json")
    assert seen.json["data"] == {"key": "value"}


async def test_what_kubectl_applies_our_client_reads(plane: Plane, namespace: str) -> None:
    await plane.kubectl("apply", "-n", namespace, "-f", "-", stdin=CONFIGMAP)
    async with plane.client() as client:
        seen = await client.get(CONFIGMAPS, "one", namespace)
    assert seen["data"] == {"key": "value"}


async def test_a_namespace_starts_without_objects_of_other_tests(plane: Plane, namespace: str) -> None:
    """Beside what the control plane itself puts there."""
    async with plane.client() as client:
        found = await client.list(CONFIGMAPS, namespace)
    assert {each["metadata"]["name"] for each in found["items"]} <= {"kube-root-ca.crt"}


async def test_a_name_is_taken_once(plane: Plane, namespace: str) -> None:
    async with plane.client() as client:
        await client.create(CONFIGMAPS, CONFIGMAP, namespace)
        with pytest.raises(AlreadyExists):
            await client.create(CONFIGMAPS, CONFIGMAP, namespace)


async def test_a_refusal_reaches_the_test_with_the_words_of_kubectl(plane: Plane, namespace: str) -> None:
    with pytest.raises(KubectlFailed, match='"absent" not found'):
        await plane.kubectl("get", "configmap", "absent", "-n", namespace)
    assert '"absent" not found' in await plane.kubectl.refused("get", "configmap", "absent", "-n", namespace)


async def test_a_cancelled_kubectl_is_gone(plane: Plane, namespace: str) -> None:
    """A watch that nobody waits for any more must not outlive its test."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(plane.kubectl("get", "configmaps", "-n", namespace, "--watch"), 0.5)
    assert [command for command in children() if "--watch" in command] == []


def children() -> list[str]:
    """Command lines of this process's children."""
    pids = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [Path(f"/proc/{pid}/cmdline").read_text() for pid in pids]
