"""A whole start group on the embedded cluster: by the gate stream alone, and by the annotation alone (K3, K5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobset_gate.kube.resources import PODS
from tests.fakes.embedded_controller import EmbeddedController, embedded_controller
from tests.fakes.object_view import ObjectView
from tests.fakes.start_groups import StartGroup

SOON = 10.0
"""Virtual seconds; without a deadline a group waits for ever."""
ON, OFF = ("jobset", "startgroup"), ("jobset",)
CHANNELS: dict[str, dict[str, Any]] = {
    "stream": {"stream": True, "options": {"sources": ON, "patch_concurrency": 0}},
    "annotation": {"options": {"sources": ON}},
}


async def until_run(at: EmbeddedController, *pods: str) -> None:
    """Until these pods' main containers run, and no other's."""

    def holds(found: list[dict[str, Any]]) -> bool:
        return {it["metadata"]["name"] for it in found if _runs(it)} == set(pods)

    async with ObjectView(at.client, PODS, "default") as view:
        await at.cluster.until(view.until(holds, SOON))


def _runs(pod: dict[str, Any]) -> bool:
    main = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
    return "running" in main.get("state", {})


async def until_gone(at: EmbeddedController) -> None:
    async with ObjectView(at.client, PODS, "default") as view:
        await at.cluster.until(view.until(lambda pods: not pods, SOON))


async def restart(at: EmbeddedController, sources: tuple[str, ...]) -> None:
    """The controller with other sources."""
    await at.stop()
    at.restart(sources=sources)


@pytest.mark.parametrize("channel", CHANNELS)
async def test_each_channel_alone_starts_a_group_its_replacements_and_its_next_attempt(channel: str) -> None:
    async with embedded_controller(**CHANNELS[channel]) as at:
        group = StartGroup(at.client, at.manager.stream_url)
        await group.create()
        await until_run(at, "set-0", "set-1", "set-2")
        await group.delete_pods([1])
        await until_run(at, "set-0", "set-2")
        await group.create_pods([1])
        await until_run(at, "set-0", "set-1", "set-2")
        await group.delete_pods(range(3))
        await until_gone(at)
        await group.create_pods([0, 1])
        await asyncio.sleep(SOON)
        await until_run(at)
        await group.create_pods([2])
        await until_run(at, "set-0", "set-1", "set-2")


async def test_without_its_source_a_group_waits_and_with_it_again_it_starts_or_gathers_again() -> None:
    async with embedded_controller(options={"sources": OFF}) as at:
        group = StartGroup(at.client)
        await group.create()
        await asyncio.sleep(SOON)
        await until_run(at)
        await restart(at, ON)
        await until_run(at, "set-0", "set-1", "set-2")
        await restart(at, OFF)
        await group.delete_pods([1])
        await until_run(at, "set-0", "set-2")
        await group.create_pods([1])
        await asyncio.sleep(SOON)
        await until_run(at, "set-0", "set-2")
        await restart(at, ON)
        await until_run(at, "set-0", "set-1", "set-2")
        await restart(at, OFF)
        await group.delete_pods(range(3))
        await until_gone(at)
        await group.create_pods([0, 1])
        await restart(at, ON)
        await asyncio.sleep(SOON)
        await until_run(at)
        await group.create_pods([2])
        await until_run(at, "set-0", "set-1", "set-2")
