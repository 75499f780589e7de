"""Condition and Event: once per fact, the Event first, progress not too often; what fails is tried again (A9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from controllers.barrier.status import PROGRESS_INTERVAL, WORDING_INTERVAL, GangStatusWriter
from jobset_gate import names
from jobset_gate.barrier.model import DesiredCondition, GangKey, WorkloadSeen
from jobset_gate.kube.errors import Conflict, Forbidden, KubeError, ServerError, Unreachable
from jobset_gate.kube.resources import EVENTS, JOBSETS
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.background import in_background
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import MemoryClient
from tests.fakes.present import present
from tests.fakes.stored_objects import store_jobset, version_of
from tests.fakes.wire_objects import read_jobset

TRAIN = GangKey("default", "train")
SOON = 0.01


def wanted(status: str, reason: str, message: str) -> DesiredCondition:
    return DesiredCondition(status=status, reason=reason, message=message)


STARTED = wanted("True", names.REASON_STARTED, "all 2 pods started (uid u-1, attempt 0, epoch 0)")
FAILED = wanted("False", names.REASON_TIMED_OUT, "timed out (uid u-1, attempt 0, epoch 0)")


def waiting(message: object) -> DesiredCondition:
    return wanted("False", names.REASON_WAITING, f"{message}/9 pods started")


def lacking(words: str, many: int = 2) -> DesiredCondition:
    return waiting(f"missing: {many} pods: {words} (workers-0/1, workers-0/2); 1")


class ConditionHarness:
    """A status writer at work, and what it has written."""

    def __init__(self, api: Api, memory: MemoryClient, clock: VirtualClock, calls: CallBlocker) -> None:
        self.api, self.memory, self.clock, self.calls = api, memory, clock, calls
        self.failures = 0
        queue: WorkQueue[GangKey] = WorkQueue()
        self.writer = GangStatusWriter(memory.client, clock, queue, version=version_of(api), on_failure=self._failed)
        self.want = self.writer.set_desired
        self.loop = Controller(
            "status", queue, self.writer.reconcile, ControllerMetrics(CollectorRegistry()), workers=2
        )
        self.jobset = store_jobset(api)

    def _failed(self) -> None:
        self.failures += 1

    async def report(self, condition: DesiredCondition, generation: str = "0.0") -> Json:
        """Asks for this condition of the JobSet as the watch shows it; the one that is stored a moment later."""
        self.want(self.seen, condition, generation)
        await asyncio.sleep(SOON)
        return self.stored

    @property
    def stored(self) -> Json:
        """The condition, {} if there is none."""
        jobset = self.api.get(JOBSETS, "train") or {}
        return next(iter(jobset.get("status", {}).get("conditions", ())), {})

    @property
    def said(self) -> str:
        return str(self.stored.get("message", ""))

    @property
    def seen(self) -> WorkloadSeen:
        """The JobSet once the watch has shown our condition."""
        stored = present(read_jobset(self.api.known(JOBSETS, "train")))
        return msgspec.structs.replace(self.jobset, condition=stored.condition)

    @property
    def verbs(self) -> list[str]:
        return [f"{call.verb} {call.kind.plural}" for call in self.calls.calls]


@pytest.fixture
async def square(
    api: Api, memory: MemoryClient, clock: VirtualClock, api_calls: CallBlocker
) -> AsyncIterator[ConditionHarness]:
    made = ConditionHarness(api, memory, clock, api_calls)
    async with in_background(made.loop.run()):
        yield made


# --- What is written, and when ---------------------------------------------------------------------------------------


async def test_a_condition_is_written_once_as_the_api_wants_it(square: ConditionHarness) -> None:
    assert await square.report(waiting(1)) == {
        "type": "GroupStarted",
        "status": "False",
        "reason": "WaitingForPods",
        "message": "1/9 pods started",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await square.report(waiting(1))
    await asyncio.sleep(WORDING_INTERVAL)
    assert square.verbs == ["patch jobsets"], "and waiting is no Event"


async def test_progress_is_reported_at_most_every_so_often_and_then_the_latest(square: ConditionHarness) -> None:
    await square.report(waiting(1))
    await asyncio.sleep(5)
    await square.report(waiting(2))
    await square.report(waiting(3))
    await asyncio.sleep(PROGRESS_INTERVAL - 6)
    assert square.said == "1/9 pods started"
    await asyncio.sleep(1)
    assert (square.said, len(square.verbs)) == ("3/9 pods started", 2)


async def test_numbers_in_others_words_are_no_news_for_minutes(square: ConditionHarness) -> None:
    """The scheduler counts all nodes of the cluster in its sentence: it changes whenever one of them comes or goes."""
    await square.report(lacking("Unscheduled: 0/39 nodes are available"))
    for nodes in range(20, 39):
        await asyncio.sleep(PROGRESS_INTERVAL - 2)
        await square.report(lacking(f"Unscheduled: 0/{nodes} nodes are available"))
    assert (len(square.verbs), "0/39" in square.said) == (1, True)
    await square.report(lacking("Unscheduled: 0/20 nodes are available", many=3))
    assert "missing: 3 pods: Unscheduled: 0/20 nodes" in square.said
    await square.report(lacking("Unscheduled: 0/10 nodes are available", many=3))
    await asyncio.sleep(WORDING_INTERVAL)
    assert "0/10 nodes" in square.said


async def test_a_kubelets_reason_is_reported_though_it_waited_at_the_first_read(square: ConditionHarness) -> None:
    await square.report(lacking('ImagePull: main: ImagePullBackOff: Back-off pulling image "x"'))
    await asyncio.sleep(PROGRESS_INTERVAL)
    await square.report(lacking('ImagePull: main: ErrImagePull: pulling "x": no such tag in the registry'))
    assert "no such tag" in square.said
    await asyncio.sleep(PROGRESS_INTERVAL)
    await square.report(lacking('ImagePull: main: ImagePullBackOff: Back-off pulling image "x"'))
    assert "no such tag" in square.said


@pytest.mark.parametrize(("first", "then"), [(waiting(1), STARTED), (STARTED, waiting(0))], ids=["verdict", "waiting"])
async def test_another_reason_is_reported_at_once(
    square: ConditionHarness, first: DesiredCondition, then: DesiredCondition
) -> None:
    await square.report(first)
    assert (await square.report(then))["reason"] == then.reason


async def test_the_time_of_transition_moves_only_when_the_status_does(square: ConditionHarness) -> None:
    await square.report(waiting(1))
    await asyncio.sleep(60)
    assert (await square.report(FAILED))["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    await asyncio.sleep(60)
    assert (await square.report(STARTED, "0.1"))["lastTransitionTime"] == "2026-01-01T00:02:00Z"


async def test_what_was_written_and_is_not_seen_is_written_again_but_slowly(square: ConditionHarness) -> None:
    """The watch has not shown it yet, or a user took it away."""
    await square.report(STARTED)
    square.api.change(JOBSETS, "train", lambda body: body["status"].update(conditions=[]))
    await square.report(STARTED)
    await asyncio.sleep(PROGRESS_INTERVAL - 1)
    assert (square.said, len(square.verbs)) == ("", 2)
    await asyncio.sleep(1)
    assert square.said == STARTED.message


async def test_the_next_jobset_of_the_name_is_reported_at_once_and_not_given_the_condition_of_the_old_one(
    square: ConditionHarness,
) -> None:
    await square.report(waiting(9))
    old = square.jobset
    square.api.remove(JOBSETS, "train")
    square.jobset = store_jobset(square.api)
    square.want(old, STARTED)
    await asyncio.sleep(SOON)
    assert square.stored == {}
    assert (await square.report(waiting(9)))["message"] == "9/9 pods started"


# --- Events ----------------------------------------------------------------------------------------------------------


async def test_the_event_comes_before_the_condition_and_is_reported_once_whatever_crashes_between(
    square: ConditionHarness,
) -> None:
    square.calls.fail = lambda call: ServerError(500) if call.kind == EVENTS else None
    await square.report(STARTED)
    assert square.verbs == ["create events"], "without the Event the condition is not written"
    square.calls.fail = lambda call: ServerError(500) if call.kind == JOBSETS else None
    await asyncio.sleep(PROGRESS_INTERVAL)
    assert square.verbs == ["create events"] * 2 + ["patch jobsets"]
    square.calls.fail = lambda _: None
    successor = GangStatusWriter(square.memory.client, square.clock, WorkQueue(), version=version_of(square.api))
    successor.set_desired(square.jobset, STARTED, "0.0")
    await successor.reconcile(TRAIN)
    assert len(square.api.all(EVENTS)) == 1
    assert square.stored["status"] == "True"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (names.REASON_STARTED, "Normal"),
        (names.REASON_BYPASSED, "Normal"),
        (names.REASON_TIMED_OUT, "Warning"),
        (names.REASON_INDEX_FAILED, "Warning"),
        (names.REASON_GATE_MISSING, "Warning"),
        (names.REASON_CONFIG_MAP_CONFLICT, "Warning"),
    ],
)
async def test_an_event_says_what_the_condition_says(square: ConditionHarness, reason: str, kind: str) -> None:
    condition = wanted("True" if kind == "Normal" else "False", reason, STARTED.message)
    await square.report(condition)
    (event,) = square.api.all(EVENTS)
    assert (event["type"], event["reason"], event["message"]) == (kind, condition.reason, condition.message)
    assert event["involvedObject"]["uid"] == square.jobset.uid
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"


# --- What cannot be said is tried again later, and nothing else waits for it -----------------------------------------


@pytest.mark.parametrize("error", [ServerError(500), Forbidden(403), Unreachable("silence")])
async def test_what_could_not_be_said_is_counted_and_tried_again_after_a_while(
    square: ConditionHarness, error: KubeError
) -> None:
    square.calls.fail = lambda _: error
    square.want(square.jobset, waiting(1))
    for _ in range(50):
        await asyncio.sleep(PROGRESS_INTERVAL / 100)
        square.want(square.jobset, waiting(2))
    assert (len(square.calls.calls), square.failures) == (1, 1), "whatever passes find meanwhile"
    square.calls.fail = lambda _: None
    await asyncio.sleep(PROGRESS_INTERVAL)
    assert square.said == "2/9 pods started"


async def test_a_jobset_that_changed_before_the_watch_showed_it_is_tried_again_soon_and_is_no_failure(
    square: ConditionHarness,
) -> None:
    """JobSet's controller writes the same status: its writes and ours meet now and then."""
    square.calls.fail = lambda call: Conflict(409) if call.kind == JOBSETS else None
    await square.report(waiting(1))
    square.calls.fail = lambda _: None
    await asyncio.sleep(0.1)
    assert (square.said, square.failures) == ("1/9 pods started", 0)


async def test_the_last_word_wins_over_one_that_is_just_being_said(square: ConditionHarness) -> None:
    square.calls.block()
    await square.report(waiting(1))
    square.want(square.jobset, STARTED, "0.0")
    square.calls.unblock()
    await asyncio.sleep(SOON)
    assert square.said == STARTED.message


async def test_a_verdict_is_reported_even_if_its_jobset_has_finished_meanwhile(square: ConditionHarness) -> None:
    """A gang that times out fails at once."""
    square.calls.fail = lambda _: ServerError(500)
    await square.report(STARTED)
    square.writer.quiesce(TRAIN)
    square.calls.fail = lambda _: None
    await asyncio.sleep(PROGRESS_INTERVAL)
    assert square.said == STARTED.message


async def test_of_a_gang_that_is_gone_nothing_is_written_or_kept(square: ConditionHarness) -> None:
    square.calls.block()
    await square.report(STARTED)
    square.writer.forget_gang(TRAIN)
    square.calls.unblock()
    await asyncio.sleep(2 * PROGRESS_INTERVAL)
    writer = square.writer
    assert (writer._desired, writer._retry_at, writer._written) == ({}, {}, {})


async def test_in_a_namespace_that_goes_nothing_is_tried_again(square: ConditionHarness) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace default is being terminated"}
    square.calls.fail = lambda _: Forbidden(403, details={"causes": [cause]})
    square.want(square.jobset, STARTED, "0.0")
    await asyncio.sleep(10 * PROGRESS_INTERVAL)
    assert (len(square.calls.calls), square.failures) == (1, 0)
