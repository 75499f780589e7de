"""Patches of pods: in turns or in order, each on its own pod only.

That none is in flight after drain(): tests/unit/controllers/podgroups/test_ungater.py.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Conflict, Invalid, NotFound, NotLeader, Unreachable
from jobset_gate.runtime.pod_patcher import PodPatch, PodPatcher
from tests.fakes.background import in_background


class PatchClient:
    """Records patches; `answer` may raise or wait."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.in_flight = self.most_in_flight = 0
        self.fails: Callable[[str], Exception | None] = lambda _: None

    async def patch(self, _: object, name: str, __: str, *, body: dict[str, Any], **___: object) -> None:
        self.sent.append((name, body))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(1)
        finally:
            self.in_flight -= 1
        if (error := self.fails(name)) is not None:
            raise error


class PatcherHarness:
    def __init__(self, *, concurrency: int = 1, in_order: bool = False) -> None:
        self.client = PatchClient()
        self.unwanted: set[str] = set()
        self.outcomes: list[tuple[str, str, str]] = []
        self.patcher: PodPatcher[str] = PodPatcher(
            cast("Client", self.client), self.build, self.on_done, concurrency=concurrency, in_order=in_order
        )

    def build(self, key: str, uid: str) -> PodPatch | None:
        annotations = {"metadata": {"annotations": {"key": key}}}
        return None if uid in self.unwanted else PodPatch("team", f"pod-{uid}", uid, annotations)

    def on_done(self, key: str, uid: str, outcome: str) -> None:
        self.outcomes.append((key, uid, outcome))

    @property
    def order(self) -> list[str]:
        return [name.removeprefix("pod-") for name, _ in self.client.sent]


@asynccontextmanager
async def running(harness: PatcherHarness) -> AsyncIterator[PatcherHarness]:
    async with in_background(harness.patcher.run()):
        yield harness


@pytest.mark.parametrize(
    ("in_order", "order"), [(False, ["a0", "b0", "a1", "b1", "a2"]), (True, ["a0", "a1", "a2", "b0", "b1"])]
)
async def test_keys_take_turns_unless_they_go_in_order(in_order: bool, order: list[str]) -> None:
    async with running(PatcherHarness(in_order=in_order)) as it:
        for uid in ("a0", "a1", "a2", "b0", "b1"):
            it.patcher.enqueue(uid[0], uid)
        assert it.patcher.depth == 5
        await asyncio.sleep(10)
        assert it.order == order
        assert it.client.sent[0][1] == {"metadata": {"annotations": {"key": "a"}, "uid": "a0"}}


async def test_no_more_patches_are_in_flight_than_allowed() -> None:
    async with running(PatcherHarness(concurrency=3)) as it:
        for number in range(10):
            it.patcher.enqueue("a", str(number))
        await asyncio.sleep(10)
        assert (len(it.outcomes), it.client.most_in_flight) == (10, 3)


async def test_what_is_cleared_or_no_longer_wanted_is_not_sent() -> None:
    async with running(PatcherHarness()) as it:
        for uid in ("a0", "a1", "b0", "b1"):
            it.patcher.enqueue(uid[0], uid)
        it.unwanted.add("b0")
        await asyncio.sleep(0.5)
        it.patcher.clear("a")
        await asyncio.sleep(10)
        assert it.order == ["a0", "b1"]


async def test_another_pod_of_the_name_counts_as_gone_and_anything_else_as_an_error() -> None:
    errors = {
        "pod-gone": NotFound(404),
        "pod-other": Invalid(422, details={"causes": [{"field": "metadata.uid"}]}),
        "pod-invalid": Invalid(422),
        "pod-conflict": Conflict(409),
        "pod-lost": Unreachable("reset"),
    }
    async with running(PatcherHarness(concurrency=5)) as it:
        it.client.fails = errors.get
        for name in errors:
            it.patcher.enqueue("a", name.removeprefix("pod-"))
        await asyncio.sleep(2)
        assert {uid: outcome for _, uid, outcome in it.outcomes} == {
            "gone": "gone",
            "other": "gone",
            "invalid": "error",
            "conflict": "error",
            "lost": "error",
        }


async def test_without_the_lease_all_workers_end() -> None:
    it = PatcherHarness(concurrency=2)
    it.client.fails = lambda _: NotLeader("not surely ours")
    it.patcher.enqueue("a", "a0")
    with pytest.raises(ExceptionGroup) as stopped:
        await it.patcher.run()
    assert stopped.group_contains(NotLeader)
