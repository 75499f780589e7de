"""Words have their own queue: what cannot be said is tried again later, and nothing else waits for it (A6.3, A9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from controllers.barrier.status import PROGRESS_INTERVAL, ConditionWriter, GangStatusWriter
from jobset_gate.barrier.model import GangKey
from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.errors import (
    Conflict,
    Forbidden,
    InvalidResponse,
    KubeError,
    NotLeader,
    ServerError,
    Throttled,
    Unreachable,
)
from jobset_gate.kube.resources import EVENTS, JOBSETS
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.workqueue import WorkQueue
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.stored_objects import store_jobset, version_of
from tests.unit.controllers.barrier.test_conditions import STARTED, TRAIN, conditions, seen, waiting

SOON = 0.01


class StatusHarness:
    """A status writer at work, and what it has written."""

    def __init__(self, api: Api, memory: MemoryClient, clock: VirtualClock) -> None:
        self.api, self.failures = api, 0
        queue: WorkQueue[GangKey] = WorkQueue()
        self.writer = GangStatusWriter(
            ConditionWriter(memory.client, clock, version=version_of(api)), queue, on_failure=self._failed
        )
        self.want = self.writer.set_desired
        self.loop = Controller(
            "status", queue, self.writer.reconcile, ControllerMetrics(CollectorRegistry()), workers=2
        )
        self.jobset = store_jobset(api)

    def _failed(self) -> None:
        self.failures += 1

    @property
    def said(self) -> str:
        """The message of the condition as it is stored, "" if there is none."""
        return "".join(it["message"] for it in conditions(self.api))


@pytest.fixture
async def square(api: Api, memory: MemoryClient, clock: VirtualClock) -> AsyncIterator[StatusHarness]:
    made = StatusHarness(api, memory, clock)
    running = asyncio.create_task(made.loop.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_is_wanted_is_said_without_anybodys_waiting_for_it(
    square: StatusHarness, api_calls: CallBlocker
) -> None:
    api_calls.block()
    square.want(square.jobset, STARTED, "0.0")
    await asyncio.sleep(SOON)
    assert square.said == ""
    api_calls.unblock()
    await asyncio.sleep(SOON)
    assert square.said == STARTED.message
    assert len(square.api.all(EVENTS)) == 1


async def test_a_word_that_is_true_by_now_is_not_said_again(square: StatusHarness, api_calls: CallBlocker) -> None:
    square.want(square.jobset, waiting(1))
    await asyncio.sleep(SOON)
    square.want(seen(square.api, square.jobset), waiting(2))
    square.want(seen(square.api, square.jobset), waiting(1))
    await asyncio.sleep(2 * PROGRESS_INTERVAL)
    assert len(api_calls.calls) == 1


@pytest.mark.parametrize(
    "error", [ServerError(500), Forbidden(403), Unreachable("silence"), InvalidResponse("rubbish")]
)
async def test_what_could_not_be_said_is_counted_and_tried_again_after_a_while(
    square: StatusHarness, api_calls: CallBlocker, error: KubeError
) -> None:
    api_calls.fail = lambda _: error
    square.want(square.jobset, waiting(1))
    for _ in range(50):
        await asyncio.sleep(PROGRESS_INTERVAL / 100)
        square.want(square.jobset, waiting(2))
    assert (len(api_calls.calls), square.failures) == (1, 1), "whatever passes find meanwhile"
    api_calls.fail = lambda _: None
    await asyncio.sleep(PROGRESS_INTERVAL)
    assert square.said == "2/9 pods started"


async def test_a_jobset_that_changed_before_the_watch_showed_it_is_tried_again_soon_and_is_no_failure(
    square: StatusHarness, api_calls: CallBlocker
) -> None:
    """JobSet's controller writes the same status: its writes and ours meet now and then."""
    api_calls.fail = lambda call: Conflict(409) if call.kind == JOBSETS else None
    square.want(square.jobset, waiting(1))
    await asyncio.sleep(SOON)
    api_calls.fail = lambda _: None
    await asyncio.sleep(0.1)
    assert (square.said, square.failures) == ("1/9 pods started", 0)


async def test_a_server_that_says_when_to_come_back_is_believed(square: StatusHarness, api_calls: CallBlocker) -> None:
    api_calls.fail = lambda _: Throttled(429, retry_after=2.0)
    square.want(square.jobset, waiting(1))
    await asyncio.sleep(SOON)
    api_calls.fail = lambda _: None
    await asyncio.sleep(2.0)
    assert square.said == "1/9 pods started"


async def test_a_verdict_does_not_wait_for_progress_that_could_not_be_said(
    square: StatusHarness, api_calls: CallBlocker
) -> None:
    api_calls.fail = lambda _: ServerError(500)
    square.want(square.jobset, waiting(1))
    await asyncio.sleep(SOON)
    api_calls.fail = lambda _: None
    square.want(square.jobset, STARTED, "0.0")
    await asyncio.sleep(SOON)
    assert square.said == STARTED.message


async def test_the_last_word_wins_over_one_that_is_just_being_said(
    square: StatusHarness, api_calls: CallBlocker
) -> None:
    api_calls.block()
    square.want(square.jobset, waiting(1))
    await asyncio.sleep(SOON)
    square.want(square.jobset, STARTED, "0.0")
    api_calls.unblock()
    await asyncio.sleep(SOON)
    assert square.said == STARTED.message


async def test_a_verdict_is_reported_even_if_its_jobset_has_finished_meanwhile(
    square: StatusHarness, api_calls: CallBlocker
) -> None:
    """A gang that times out fails at once."""
    api_calls.fail = lambda _: ServerError(500)
    square.want(square.jobset, STARTED, "0.0")
    await asyncio.sleep(SOON)
    square.writer.quiesce(TRAIN)
    api_calls.fail = lambda _: None
    await asyncio.sleep(PROGRESS_INTERVAL)
    assert square.said == STARTED.message


async def test_progress_of_a_jobset_that_has_finished_is_not_reported(
    square: StatusHarness, api_calls: CallBlocker
) -> None:
    square.want(square.jobset, waiting(1))
    square.writer.quiesce(TRAIN)
    await asyncio.sleep(PROGRESS_INTERVAL)
    assert api_calls.calls == []


async def test_of_a_gang_that_is_gone_nothing_is_said_and_nothing_is_kept(
    square: StatusHarness, api_calls: CallBlocker
) -> None:
    api_calls.block()
    square.want(square.jobset, STARTED, "0.0")
    await asyncio.sleep(SOON)
    square.writer.forget_gang(TRAIN)
    api_calls.unblock()
    await asyncio.sleep(2 * PROGRESS_INTERVAL)
    writer = square.writer
    assert (writer._desired, writer._retry_at, writer._conditions._written) == ({}, {}, {})


async def test_in_a_namespace_that_goes_nothing_is_tried_again(square: StatusHarness, api_calls: CallBlocker) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace default is being terminated"}
    api_calls.fail = lambda _: Forbidden(403, details={"causes": [cause]})
    square.want(square.jobset, STARTED, "0.0")
    await asyncio.sleep(10 * PROGRESS_INTERVAL)
    assert (len(api_calls.calls), square.failures) == (1, 0)


async def test_who_no_longer_leads_stops(
    api: Api, memory: MemoryClient, api_calls: CallBlocker, clock: VirtualClock
) -> None:
    square = StatusHarness(api, memory, clock)
    api_calls.fail = lambda _: NotLeader("gone")
    square.want(square.jobset, STARTED, "0.0")
    with pytest.raises(ExceptionGroup) as ended:
        await square.loop.run()
    assert ended.group_contains(NotLeader)
