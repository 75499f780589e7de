"""The annotation channel reaches every pod that waits, gang by gang in turns, and again if it does not help (A6.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from controllers.barrier.verdict_patcher import (
    CONFIG_MAP_GRACE,
    DELIVERY_GRACE,
    REPATCH_AFTER,
    REPATCH_MAX,
    VerdictPatcher,
)
from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import GangKey, PodSeen
from jobset_gate.kube.errors import KubeError, NotFound, ServerError
from tests.fakes.background import in_background
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.gangs import verdict
from tests.fakes.memory_client import MemoryClient
from tests.fakes.stored_objects import notes, store_pods, verdict_on

TRAIN = GangKey("default", "train")
RELEASE = verdict()
TEXT = verdict_codec.render(RELEASE)
SOON = 0.01
"""Virtual seconds in which everything that can be sent is sent."""


class VerdictPatcherHarness:
    """Patches at work, and what became of them. `delivered`: pods that have the verdict by the stream, and when."""

    def __init__(self, memory: MemoryClient, calls: CallBlocker) -> None:
        self.api, self.calls = memory.api, calls
        self.outcomes: list[str] = []
        self.delivered: dict[tuple[GangKey, str], float] = {}
        self.patches = VerdictPatcher(
            memory.client,
            concurrency=4,
            on_patched=lambda _, outcome: self.outcomes.append(outcome),
            delivered=self.delivered,
        )

    async def send(self, *pods: PodSeen, fresh: bool = False) -> float | None:
        """A pass wants these pods to have the verdict; when the next one is due."""
        again = self.patches.set_waiting_pods(TRAIN, pods, RELEASE, fresh=fresh)
        await asyncio.sleep(SOON)
        return again


@pytest.fixture
async def sender(memory: MemoryClient, api_calls: CallBlocker) -> AsyncIterator[VerdictPatcherHarness]:
    made = VerdictPatcherHarness(memory, api_calls)
    async with in_background(made.patches.run()):
        yield made


async def test_a_fresh_verdict_goes_to_every_pod_that_waits(sender: VerdictPatcherHarness) -> None:
    pods = store_pods(sender.api, 10)
    again = await sender.send(*pods, fresh=True)
    assert {verdict_on(sender.api, pod) for pod in pods} == {TEXT}
    assert sender.outcomes == ["ok"] * 10
    assert again is not None
    assert 0 < again <= REPATCH_AFTER, "the next pass checks whether it helped"


async def test_a_pod_that_comes_later_gets_a_moment_to_see_the_configmap_first(sender: VerdictPatcherHarness) -> None:
    pods = store_pods(sender.api, 1)
    assert await sender.send(*pods) == pytest.approx(CONFIG_MAP_GRACE)
    assert sender.calls.calls == []
    await asyncio.sleep(CONFIG_MAP_GRACE)
    await sender.send(*pods)
    assert verdict_on(sender.api, pods[0]) == TEXT


async def test_a_pod_that_was_delivered_on_the_stream_is_patched_only_if_it_still_waits(
    sender: VerdictPatcherHarness,
) -> None:
    heard, deaf = store_pods(sender.api, 2)
    sender.delivered[TRAIN, heard.uid] = asyncio.get_running_loop().time()
    await sender.send(heard, deaf, fresh=True)
    for pause, patched in ((SOON, [deaf.name]), (DELIVERY_GRACE - 1, [deaf.name]), (1, [deaf.name, heard.name])):
        await asyncio.sleep(pause)
        await sender.send(heard)
        assert [call.name for call in sender.calls.calls] == patched


async def test_a_straggler_is_patched_ever_less_often_but_never_given_up(sender: VerdictPatcherHarness) -> None:
    pods = store_pods(sender.api, 1)
    await sender.send(*pods, fresh=True)
    for _ in range(30 * 60):
        await asyncio.sleep(1.0)
        await sender.send(*pods)
    assert 25 <= len(sender.calls.calls) <= 40
    before = len(sender.calls.calls)
    for _ in range(int(REPATCH_MAX) + 2):
        await asyncio.sleep(1.0)
        await sender.send(*pods)
    assert len(sender.calls.calls) == before + 1


async def test_a_pod_that_has_the_verdict_from_before_a_crash_is_not_patched_again_at_once(
    sender: VerdictPatcherHarness,
) -> None:
    (pod,) = store_pods(sender.api, 1)
    delivered = msgspec.structs.replace(pod, verdict=TEXT)
    await sender.send(delivered)
    await asyncio.sleep(CONFIG_MAP_GRACE)
    await sender.send(delivered)
    assert sender.calls.calls == []
    await asyncio.sleep(REPATCH_AFTER)
    await sender.send(delivered)
    assert notes(sender.api, pod)[names.NUDGE] == "1", "but it still waits: now it is"


async def test_a_pod_that_is_gated_alone_gets_the_verdict_with_its_own_address_once(
    sender: VerdictPatcherHarness,
) -> None:
    """The snapshot has its annotation translated back, so one that has it is recognized."""
    ring, release = GangKey("default", "ring.u-1", "startgroup"), verdict(attempt=3)
    one, another = store_pods(sender.api, 2)
    informed = msgspec.structs.replace(another, verdict=verdict_codec.render(release))
    sender.patches.set_waiting_pods(ring, [one, informed], release, fresh=True)
    await asyncio.sleep(SOON)
    assert [call.name for call in sender.calls.calls] == [one.name]
    assert verdict_on(sender.api, one) == f"release {one.uid} 0 3 AllPodsStarted\nas decided\n"


@pytest.mark.parametrize("error", [ServerError(500), NotFound(404)])
async def test_a_patch_that_failed_is_tried_again_when_the_pod_still_waits(
    sender: VerdictPatcherHarness, error: KubeError
) -> None:
    pods = store_pods(sender.api, 3)
    sender.calls.fail = lambda call: error if call.name == pods[0].name else None
    await sender.send(*pods, fresh=True)
    assert [bool(verdict_on(sender.api, pod)) for pod in pods] == [False, True, True]
    sender.calls.fail = lambda _: None
    await asyncio.sleep(REPATCH_AFTER)
    await sender.send(*pods[:1])
    assert verdict_on(sender.api, pods[0]) == TEXT
