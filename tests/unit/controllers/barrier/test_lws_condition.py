"""The condition of a LeaderWorkerSet: what it says of all groups, and when it is written (K7, A9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import DesiredCondition, Generation, Verdict, VerdictKind
from jobset_gate.kube.errors import ServerError
from jobset_gate.kube.resources import LEADER_WORKER_SETS
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate.sources import lws_condition
from jobset_gate.sources.lws_condition import GroupState
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.lws_controller import (
    GROUP,
    PARENT,
    LwsController,
    leader_pod,
    leader_worker_set,
    worker_pod,
    worker_set,
)
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.start_group_controller import RUNS, SPACE
from tests.fakes.wire_objects import TEN_O_CLOCK

STARTED = DesiredCondition(status="True", reason="AllPodsStarted", message="all 8 pods started (uid A)")
WAITS = DesiredCondition(status="False", reason="WaitingForPods", message="5/8 pods started; missing: 3 pods")
FAILED = messages.decided(
    Verdict(kind=VerdictKind.TIMEOUT, generation=Generation("A", 0, 0), cause="TimedOut", message="timed out after 60s")
)
NO_LEADER = "its leader pod is not there, or has no barrier yet"
NOT_LOOKED_AT = "False", "WaitingForPods", "0 of 1 groups have started; vllm/0: no pass has looked at it yet"


@pytest.fixture
async def vllm(api: Api, memory: MemoryClient) -> LwsController:
    made = LwsController(api, memory, VirtualClock(asyncio.get_running_loop(), TEN_O_CLOCK + 32))
    made.show(leader_worker_set())
    return made


# --- What it says ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "groups", "said"),
    [
        (2, {0: (9, STARTED), 1: (9, STARTED)}, ("True", "AllPodsStarted", "all 2 groups have started")),
        (0, {}, ("True", "AllPodsStarted", "all 0 groups have started")),
        (
            3,
            {0: (9, STARTED), 1: (8, WAITS), 2: (7, FAILED)},
            ("False", "TimedOut", "1 of 3 groups have started; vllm/2: timed out after 60s"),
        ),
        (
            2,
            {0: (7, WAITS), 1: (7, FAILED)},
            ("False", "WaitingForPods", "0 of 2 groups have started; vllm/0: 5/8 pods started; missing: 3 pods"),
        ),
        (
            4,
            {0: (9, STARTED), 1: (9, STARTED), 3: (9, STARTED)},
            ("False", "WaitingForPods", f"3 of 4 groups have started; vllm/2: {NO_LEADER}"),
        ),
        (1, {0: (9, None)}, NOT_LOOKED_AT),
    ],
    ids=["all", "none wanted", "the longest wait", "two that came together", "a leader is missing", "not looked at"],
)
def test_it_counts_the_groups_and_names_the_one_that_waits_longest(
    replicas: int, groups: dict[int, tuple[float, DesiredCondition | None]], said: tuple[str, str, str]
) -> None:
    seen = {index: GroupState(waits_since=since, condition=one) for index, (since, one) in groups.items()}
    found = lws_condition.condition("vllm", replicas, seen)
    assert (found.status, found.reason, found.message) == said


def test_of_a_billion_groups_those_that_are_there_are_looked_at() -> None:
    found = lws_condition.condition("vllm", 10**9, {0: GroupState(waits_since=1, condition=STARTED)})
    assert found.message.startswith("1 of 1000000000 groups have started; vllm/1: ")


# --- What is written, and when ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("started", "status"), [(0, "True"), (2, "False")])
async def test_a_surplus_group_of_a_rolling_update_does_not_count(
    vllm: LwsController, started: int, status: str
) -> None:
    vllm.start_group("A", RUNS, group=started)
    await vllm.reconcile(key=GROUP._replace(name=f"vllm-{started}"))
    await vllm.reconcile(leader_pod("C", RUNS, group=2 - started), key=GROUP._replace(name=f"vllm-{2 - started}"))
    assert (await vllm.write_condition())[0] == status


async def test_it_has_no_observed_generation_and_keeps_conditions_of_others(vllm: LwsController) -> None:
    theirs = {"type": "Available", "status": "True"}
    vllm.show(leader_worker_set(status={"conditions": [theirs]}))
    await vllm.write_condition()
    found = vllm.api.known(LEADER_WORKER_SETS, "vllm", SPACE)["status"]["conditions"]
    kept, ours = sorted(found, key=lambda it: str(it["type"]))
    assert (kept, set(ours)) == (theirs, {"type", "status", "reason", "message", "lastTransitionTime"})
    (call,) = [it for it in vllm.memory.calls if it.verb == "patch"]
    assert (call.subresource, set(call.body["metadata"])) == ("status", {"resourceVersion"})


async def test_another_leader_turns_it_false_at_once(vllm: LwsController) -> None:
    vllm.start_group("A", RUNS, group=0)
    await vllm.reconcile(key=GROUP._replace(name="vllm-0"))
    assert (await vllm.write_condition())[0] == "True"
    vllm.remove("vllm-0", "vllm-0-1")
    vllm.show(leader_pod("B", group=0))
    assert await vllm.write_condition() == NOT_LOOKED_AT


async def test_a_leader_that_ends_turns_it_false(vllm: LwsController, monkeypatch: pytest.MonkeyPatch) -> None:
    vllm.start_group("A", RUNS, group=0)
    key = GROUP._replace(name="vllm-0")
    await vllm.reconcile(key=key)
    assert (await vllm.write_condition())[0] == "True"
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(vllm.conditions, "on_change", asked.append)
    await vllm.reconcile(leader_pod("A", RUNS, group=0, meta={"deletionTimestamp": "2026-08-01T10:00:31Z"}), key=key)
    assert asked == [(SPACE, "vllm")], "by the pass"
    assert (await vllm.write_condition())[0] == "False"


async def test_a_successor_says_the_same_before_any_pass(vllm: LwsController) -> None:
    vllm.start_group("A", RUNS, group=0)
    await vllm.reconcile(key=GROUP._replace(name="vllm-0"))
    said = await vllm.write_condition()
    later = LwsController(vllm.api, vllm.memory, vllm.clock)
    calls = len(vllm.memory.calls)
    assert (await later.write_condition(), len(vllm.memory.calls)) == (said, calls)


async def test_progress_is_written_at_most_every_interval(vllm: LwsController) -> None:
    key = GROUP._replace(name="vllm-0")
    await vllm.reconcile(worker_set(group=0), leader_pod("A", RUNS, group=0, size=3), worker_pod(1, group=0), key=key)
    before = await vllm.write_condition()
    await vllm.reconcile(worker_pod(1, "A", RUNS, group=0), key=key)
    assert await vllm.write_condition() == before
    assert await vllm.conditions.reconcile(PARENT) == 15.0
    await asyncio.sleep(15)
    assert (await vllm.write_condition())[2].startswith("0 of 1 groups have started; vllm/0: 2/3 pods started")


async def test_one_that_has_changed_since_is_written_after_it_was_seen(vllm: LwsController) -> None:
    vllm.api.change(LEADER_WORKER_SETS, "vllm", lambda it: it["spec"].update(replicas=2), namespace=SPACE)
    with pytest.raises(Requeue, match="has changed since it was cached"):
        await vllm.conditions.reconcile(PARENT)
    assert (await vllm.write_condition())[2].startswith("0 of 2 groups")


async def test_a_refused_write_is_tried_again_later(vllm: LwsController, api_calls: CallBlocker) -> None:
    api_calls.fail = lambda call: ServerError(500) if call.verb == "patch" else None
    assert await vllm.conditions.reconcile(PARENT) == 15.0
    vllm.show(leader_worker_set(2))
    assert await vllm.conditions.reconcile(PARENT) == 15.0, "whatever else has changed"
    assert [call.verb for call in api_calls.calls] == ["patch"]
    api_calls.fail = lambda _: None
    await asyncio.sleep(15)
    assert (await vllm.write_condition())[0] == "False"


@pytest.mark.parametrize("gone", [None, {"deletionTimestamp": "2026-08-01T10:00:31Z"}, {"annotations": {}}])
async def test_nothing_is_written_on_one_that_is_no_more_or_has_no_config(vllm: LwsController, gone: Any) -> None:
    if gone is None:
        vllm.api.remove(LEADER_WORKER_SETS, "vllm", namespace=SPACE)
    else:
        body = leader_worker_set()
        vllm.api.put(LEADER_WORKER_SETS, body | {"metadata": body["metadata"] | gone})
    vllm.watch()
    assert await vllm.conditions.reconcile(PARENT) is None
    assert [it for it in vllm.memory.calls if it.verb == "patch"] == []


async def test_it_is_removed_with_the_config_and_never_written_without_one(vllm: LwsController) -> None:
    await vllm.write_condition()
    left = vllm.api.known(LEADER_WORKER_SETS, "vllm", SPACE)["status"]
    before = len(vllm.memory.calls)
    vllm.show(leader_worker_set(notes={names.CONFIG: None}, status=left))
    await vllm.write_condition()
    (call,) = vllm.memory.calls[before:]
    assert (call.verb, call.subresource, call.body["status"]) == ("patch", "status", {"conditions": []})
    vllm.show(leader_worker_set(notes={names.CONFIG: None}))
    await vllm.write_condition()
    assert len(vllm.memory.calls) == before + 1
