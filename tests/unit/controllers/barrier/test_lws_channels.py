"""Groups of a LeaderWorkerSet on the embedded cluster: by the gate stream alone, by the annotation alone (K3, K5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobset_gate.fake.view import ObjectView
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from tests.fakes.embedded_controller import EmbeddedController, embedded_controller
from tests.fakes.lws_groups import SPACE, LwsGroups

SOON = 20.0
"""Virtual seconds; without a deadline a group waits for ever."""
SOURCES = ("jobset", "lws")
CHANNELS: dict[str, dict[str, Any]] = {
    "stream": {"stream": True, "options": {"sources": SOURCES, "patch_concurrency": 0}},
    "annotation": {"options": {"sources": SOURCES}},
}
GROUP = ("vllm-0", "vllm-0-1", "vllm-0-2")


async def until_run(at: EmbeddedController, *pods: str) -> None:
    """Until these pods' main containers run, and no other's."""

    def holds(found: list[dict[str, Any]]) -> bool:
        return {it["metadata"]["name"] for it in found if _runs(it)} == set(pods)

    async with ObjectView(at.client, PODS, SPACE) as view:
        await at.cluster.until(view.until(holds, SOON))


def _runs(pod: dict[str, Any]) -> bool:
    main = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
    return "running" in main.get("state", {})


async def until_said(groups: LwsGroups, status: str, begin: str = "") -> str:
    """Until the LeaderWorkerSet's condition has this status, and this at the beginning of its message: the message."""
    async with asyncio.timeout(SOON):
        while True:
            found = await groups.condition()
            if found.get("status") == status and found["message"].startswith(begin):
                return str(found["message"])
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("channel", CHANNELS)
async def test_each_channel_alone_starts_a_group_its_replacements_and_the_next_leaders(channel: str) -> None:
    async with embedded_controller(**CHANNELS[channel]) as at:
        groups = LwsGroups(at.client, stream=at.manager.stream_url)
        await groups.create()
        leader = await groups.create_leader()
        await groups.create_workers(leader, 1)
        await asyncio.sleep(SOON)
        await until_run(at)
        await groups.create_workers(leader, 2)
        await until_run(at, *GROUP)
        assert await until_said(groups, "True") == "all 1 groups have started"
        # A worker that is replaced passes at once.
        await groups.delete_pod("vllm-0-1")
        await groups.create_workers(leader, 1)
        await until_run(at, *GROUP)
        # The leader is deleted in the background: the next one comes before the old workers go.
        await groups.delete_leader()
        later = await groups.create_leader()
        await asyncio.sleep(SOON)
        await until_run(at, *GROUP[1:])
        await until_said(groups, "False", "0 of 1 groups have started; vllm/0: 1/3 pods started")
        await groups.collect()
        await groups.create_workers(later, 1)
        await asyncio.sleep(SOON)
        await until_run(at)
        await groups.create_workers(later, 2)
        await until_run(at, *GROUP)
        await until_said(groups, "True")


async def test_a_verdict_that_was_written_before_the_controller_was_killed_binds_no_pod_that_came_since() -> None:
    async with embedded_controller(options={"sources": SOURCES}) as at:
        groups = LwsGroups(at.client)
        await groups.create()
        await groups.create_group()
        await until_run(at, *GROUP)
        await at.stop()
        await groups.delete_leader()
        await groups.collect()
        leader = await groups.create_leader()
        await groups.create_workers(leader, 1)
        at.restart()
        await asyncio.sleep(SOON)
        await until_run(at)
        await groups.create_workers(leader, 2)
        await until_run(at, *GROUP)


async def test_groups_start_each_alone_and_the_condition_counts_them() -> None:
    async with embedded_controller(options={"sources": SOURCES}) as at:
        groups = LwsGroups(at.client, size=2)
        await groups.create(replicas=2)
        await groups.create_group(1)
        await until_run(at, "vllm-1", "vllm-1-1")
        message = "1 of 2 groups have started; vllm/0: its leader pod is not there, or has no barrier yet"
        assert await until_said(groups, "False", "1 of 2") == message
        await groups.create_group(0)
        assert await until_said(groups, "True") == "all 2 groups have started"


async def test_without_lws_in_the_cluster_everything_else_goes_on() -> None:
    async with embedded_controller(options={"sources": SOURCES}) as at:
        await at.make()
        assert (await at.until_verdict()).cause == "AllPodsStarted"
        with pytest.raises(NotFound):
            await at.client.get(CONFIGMAPS, "vllm-0.lws.group-scheduling", SPACE)
