"""Events about groups: each fact once, never too often, no old news; what fails is tried again (G5, G4)."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import msgspec
import pytest

from controllers.podgroups.status import (
    EVENT_SPACING,
    MAX_EVENT_AGE,
    QUIET_SECONDS,
    STATUS_RETRY_SECONDS,
    WRITE_BURST,
    WRITES_PER_SECOND,
)
from jobset_gate import names
from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.errors import Forbidden, ServerError
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.podgroups.objects import key, pod, record
from tests.fakes.podgroups.snapshots import KEP24_KEY, bound, group_snapshot, kep24_pod, opened, timestamp
from tests.fakes.podgroups.sources import Json
from tests.fakes.podgroups.status_api import StatusApi, status_harness

G = key()
SOON = 0.5


@pytest.fixture
def board() -> StatusApi:
    return StatusApi()


def seen(board: StatusApi, *pods: Json, **more: Any) -> GroupSnapshot:
    return group_snapshot(*pods, group=copy.deepcopy(board.group), **more)


def decided(clock: VirtualClock, **more: Any) -> AdmissionRecord:
    """Of now."""
    return msgspec.structs.replace(record((G, 1)), at=clock(), **more)


def waits(reason: str, message: str = "x") -> GroupReason:
    return GroupReason(reason=reason, message=message)


async def test_opening_and_satisfaction_are_told_once_each_and_with_how_long_it_took(
    board: StatusApi, clock: VirtualClock
) -> None:
    async with status_harness(board, clock) as at:
        done = decided(clock, satisfied=clock() + 1.5)
        for _ in range(3):
            at.report_group(seen(board, bound("a"), bound("b"), bound("c"), record=done))
            await asyncio.sleep(SOON)
        assert board.event_list() == [("Opened", "g"), ("Satisfied", "g")]
        assert board.events[1]["message"] == "3 pods are bound, 1.5 s after the group was opened"
        assert board.events[0]["involvedObject"]["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"


async def test_the_same_group_opened_again_is_told_again(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        at.report_group(seen(board, record=decided(clock, satisfied=clock())))
        await asyncio.sleep(SOON)
        await asyncio.sleep(EVENT_SPACING)
        again = decided(clock, satisfied=clock(), generation=2, gangs=((G, 2),))
        at.report_group(seen(board, record=again))
        await asyncio.sleep(SOON)
        assert [reason for reason, _ in board.event_list()] == ["Opened", "Satisfied"] * 2


async def test_nothing_is_told_while_the_pods_are_placed(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        placing = decided(clock)
        for _ in range(18):
            at.report_group(seen(board, opened("a"), opened("b"), opened("c"), record=placing))
            await asyncio.sleep(SOON)
        assert board.events == []
        await asyncio.sleep(QUIET_SECONDS)
        assert board.event_list() == [("Opened", "g")]


async def test_another_leader_does_not_tell_old_news(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        old = decided(clock, satisfied=clock())
        await asyncio.sleep(MAX_EVENT_AGE + 1)
        at.report_group(seen(board, bound("a"), bound("b"), bound("c"), record=old))
        await asyncio.sleep(SOON)
        assert board.events == []


async def test_another_leader_tells_what_was_told_already_under_the_same_name(
    board: StatusApi, clock: VirtualClock
) -> None:
    for _ in range(2):
        async with status_harness(board, clock) as at:
            at.report_group(seen(board, pod("a")), waits(names.REASON_WAITING_FOR_CAPACITY))
            await asyncio.sleep(SOON)
    assert board.event_list() == [("WaitingForCapacity", "g")]


async def test_reasons_that_come_and_go_are_told_once_a_generation(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        for number in range(5):
            at.report_group(seen(board, pod("a")), waits(names.REASON_WAITING_FOR_CAPACITY, f"needs {number} cpu"))
            await asyncio.sleep(EVENT_SPACING + 1)
            at.report_group(seen(board, pod("a")), waits(names.REASON_BEHIND_OTHER, f"behind {number}"))
            await asyncio.sleep(EVENT_SPACING + 1)
        assert board.event_list() == [("WaitingForCapacity", "g"), ("BehindOther", "g")]


async def test_what_is_wrong_is_told_anew_when_it_is_something_else_but_not_too_often(
    board: StatusApi, clock: VirtualClock
) -> None:
    async with status_harness(board, clock) as at:
        for number in range(3):
            at.report_group(seen(board, pod("a")), waits(names.REASON_INVALID_GROUP, f"bad {number}"))
            await asyncio.sleep(SOON)
        assert board.event_list() == [("InvalidGroup", "g"), ("InvalidGroup", "a")]
        await asyncio.sleep(EVENT_SPACING)
        assert {it["message"] for it in board.events} == {"bad 0", "bad 2"}


async def test_gathering_is_told_after_five_minutes_if_it_still_does(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        made = pod("a", meta={"creationTimestamp": timestamp(clock())})
        at.report_group(seen(board, made))
        await asyncio.sleep(299)
        assert board.events == []
        await asyncio.sleep(2)
        assert board.event_list() == [("Gathering", "g")]


async def test_pods_of_a_small_kep_24_group_are_each_told_once(board: StatusApi, clock: VirtualClock) -> None:
    board.group["spec"] = {"minMembers": 9}
    first, second = (kep24_pod(it, meta={"creationTimestamp": timestamp(clock())}) for it in "ab")
    async with status_harness(board, clock) as at:
        at.report_group(seen(board, first, of=KEP24_KEY))
        await asyncio.sleep(6)
        assert board.event_list() == [("Unschedulable", "a")]
        for _ in range(3):
            at.report_group(seen(board, first, second, of=KEP24_KEY))
            await asyncio.sleep(6)
        assert board.event_list() == [("Unschedulable", "a"), ("Unschedulable", "b")]
        assert {it["type"] for it in board.events} == {"Warning"}
        assert board.tries.count("event") == 2  # nor asked for again


async def test_a_roll_back_is_a_warning(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        at.report_group(
            seen(board, pod("a"), record=decided(clock, stage=AdmissionState.CLOSED, why="1 of 3 pods were bound"))
        )
        await asyncio.sleep(SOON)
        assert [(it["reason"], it["type"]) for it in board.events] == [("RolledBack", "Warning")]


async def test_a_thousand_groups_are_told_of_at_a_pace(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        for number in range(200):
            one = msgspec.structs.replace(board_less(number), record=decided(clock, satisfied=clock()))
            at.report_group(one)
        await asyncio.sleep(1)
        assert len(board.events) <= WRITE_BURST + 2 * WRITES_PER_SECOND
        await asyncio.sleep(2 * 200 / WRITES_PER_SECOND)
        assert len(board.events) == 400


def board_less(number: int) -> GroupSnapshot:
    """A group without a PodGroup: no status is written."""
    of = key(f"g{number}")
    return group_snapshot(pod(f"p{number}", of=of), of=of)


async def test_what_fails_is_tried_again_later_and_counted(board: StatusApi, clock: VirtualClock) -> None:
    board.fail = lambda _: ServerError(500, "InternalError", "no")
    async with status_harness(board, clock) as at:
        at.report_group(seen(board, pod("a")), waits(names.REASON_WAITING_FOR_CAPACITY))
        await asyncio.sleep(SOON)
        assert (at.failures, board.events) == (1, [])
        board.fail = lambda _: None
        await asyncio.sleep(STATUS_RETRY_SECONDS)
        assert board.event_list() == [("WaitingForCapacity", "g")]


async def test_a_namespace_that_goes_is_left_alone(board: StatusApi, clock: VirtualClock) -> None:
    details = {"causes": [{"reason": "NamespaceTerminating"}]}
    board.fail = lambda _: Forbidden(403, "Forbidden", "goes", details=details)
    async with status_harness(board, clock) as at:
        at.report_group(seen(board, pod("a")), waits(names.REASON_WAITING_FOR_CAPACITY))
        await asyncio.sleep(10 * STATUS_RETRY_SECONDS)
        assert at.failures == 0


async def test_a_group_that_is_gone_is_not_spoken_of(board: StatusApi, clock: VirtualClock) -> None:
    async with status_harness(board, clock) as at:
        made = pod("a", meta={"creationTimestamp": timestamp(clock())})
        at.report_group(seen(board, made))
        at.forget_group(G)
        await asyncio.sleep(400)
        assert board.writes == []
