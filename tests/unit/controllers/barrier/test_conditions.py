"""The condition and its Event are reported once per fact, progress not too often, the Event first (A9)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from controllers.barrier.status import PROGRESS_INTERVAL, WORDING_INTERVAL, ConditionWriter
from jobset_gate import names
from jobset_gate.barrier.model import ConditionSeen, DesiredCondition, GangKey, JobSetSeen
from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.errors import ServerError
from jobset_gate.kube.resources import EVENTS, JOBSETS
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import MemoryClient
from tests.fakes.stored_objects import store_jobset, version_of

TRAIN = GangKey("default", "train")
STARTED = DesiredCondition(
    status="True", reason=names.REASON_STARTED, message="all 2 pods started (uid u-1, attempt 0, epoch 0)"
)
FAILED = DesiredCondition(
    status="False", reason=names.REASON_TIMED_OUT, message="timed out (uid u-1, attempt 0, epoch 0)"
)


def waiting(started: int) -> DesiredCondition:
    return DesiredCondition(status="False", reason=names.REASON_WAITING, message=f"{started}/9 pods started")


@pytest.fixture
def jobset(api: Api) -> JobSetSeen:
    return store_jobset(api)


@pytest.fixture
def statuses(api: Api, memory: MemoryClient, clock: VirtualClock) -> ConditionWriter:
    return ConditionWriter(memory.client, clock, version=version_of(api))


def stored(api: Api) -> Json:
    jobset = api.get(JOBSETS, "train")
    assert jobset is not None
    (condition,) = jobset["status"]["conditions"]
    found: Json = condition
    return found


def conditions(api: Api) -> list[Json]:
    jobset = api.get(JOBSETS, "train")
    assert jobset is not None
    found: list[Json] = jobset.get("status", {}).get("conditions", [])
    return found


def seen(api: Api, jobset: JobSetSeen) -> JobSetSeen:
    """The JobSet once the watch has shown our condition."""
    now = stored(api)
    reported = ConditionSeen(
        status=now["status"], reason=now["reason"], message=now["message"], since=now["lastTransitionTime"]
    )
    return msgspec.structs.replace(jobset, condition=reported)


def verbs(api_calls: CallBlocker) -> list[str]:
    return [f"{call.verb} {call.kind.plural}" for call in api_calls.calls]


# --- The condition --------------------------------------------------------------------------------------------------


async def test_a_condition_is_written_with_our_manager_as_the_api_wants_it(
    api: Api, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    assert await statuses.write_condition(jobset, waiting(1)) is None
    assert stored(api) == {
        "type": "GroupStarted",
        "status": "False",
        "reason": "WaitingForPods",
        "message": "1/9 pods started",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


async def test_a_condition_that_stands_is_not_written_again(
    api: Api, api_calls: CallBlocker, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    await statuses.write_condition(jobset, waiting(1))
    before = len(api_calls.calls)
    assert await statuses.write_condition(seen(api, jobset), waiting(1)) is None
    assert len(api_calls.calls) == before


async def test_progress_is_reported_at_most_every_so_often_and_then_the_latest(
    api: Api, api_calls: CallBlocker, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    await statuses.write_condition(jobset, waiting(1))
    await asyncio.sleep(5)
    assert await statuses.write_condition(seen(api, jobset), waiting(2)) == pytest.approx(PROGRESS_INTERVAL - 5)
    assert await statuses.write_condition(seen(api, jobset), waiting(3)) == pytest.approx(PROGRESS_INTERVAL - 5)
    assert len(api_calls.calls) == 1
    await asyncio.sleep(PROGRESS_INTERVAL - 5)
    assert await statuses.write_condition(seen(api, jobset), waiting(3)) is None
    assert stored(api)["message"] == "3/9 pods started"


def lacking(words: str, many: int = 2) -> DesiredCondition:
    message = f"1/9 pods started; missing: {many} pods: Unscheduled: {words} (workers-0/1, workers-0/2); next: look"
    return DesiredCondition(status="False", reason=names.REASON_WAITING, message=message)


async def test_numbers_in_others_words_are_no_news_for_minutes(
    api: Api, api_calls: CallBlocker, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    """The scheduler counts all nodes of the cluster in its sentence: it changes whenever one of them comes or goes."""
    await statuses.write_condition(jobset, lacking("0/39 nodes are available"))
    await asyncio.sleep(PROGRESS_INTERVAL)
    for nodes in range(20, 39):
        wait = await statuses.write_condition(seen(api, jobset), lacking(f"0/{nodes} nodes are available"))
        assert wait == pytest.approx(WORDING_INTERVAL - PROGRESS_INTERVAL)
    assert len(api_calls.calls) == 1
    assert await statuses.write_condition(seen(api, jobset), lacking("0/20 nodes are available", many=3)) is None
    assert stored(api)["message"].startswith("1/9 pods started; missing: 3 pods: Unscheduled: 0/20 nodes")
    await asyncio.sleep(WORDING_INTERVAL)
    assert await statuses.write_condition(seen(api, jobset), lacking("0/10 nodes are available", many=3)) is None
    assert "0/10 nodes" in stored(api)["message"]


async def test_a_kubelets_reason_is_reported_though_it_waited_at_the_first_read(
    api: Api, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    def pull(words: str) -> DesiredCondition:
        return msgspec.structs.replace(
            lacking(""), message=f"1/9 pods started; missing: 1 pod: ImagePull: main: {words}"
        )

    await statuses.write_condition(jobset, pull('ImagePullBackOff: Back-off pulling image "x"'))
    await asyncio.sleep(PROGRESS_INTERVAL)
    assert (
        await statuses.write_condition(
            seen(api, jobset), pull('ErrImagePull: pulling "x": no such tag in the registry')
        )
        is None
    )
    await asyncio.sleep(PROGRESS_INTERVAL)
    wait = await statuses.write_condition(seen(api, jobset), pull('ImagePullBackOff: Back-off pulling image "x"'))
    assert wait == pytest.approx(WORDING_INTERVAL - PROGRESS_INTERVAL)
    assert "no such tag" in stored(api)["message"]


@pytest.mark.parametrize(("first", "then"), [(waiting(1), STARTED), (STARTED, waiting(0))], ids=["verdict", "waiting"])
async def test_another_reason_is_reported_at_once(
    api: Api, statuses: ConditionWriter, jobset: JobSetSeen, first: DesiredCondition, then: DesiredCondition
) -> None:
    await statuses.write_condition(jobset, first, "0.0")
    assert await statuses.write_condition(seen(api, jobset), then, "0.0") is None
    assert stored(api)["reason"] == then.reason


async def test_the_time_of_transition_moves_only_when_the_status_does(
    api: Api, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    await statuses.write_condition(jobset, waiting(1))
    await asyncio.sleep(60)
    await statuses.write_condition(seen(api, jobset), FAILED, "0.0")
    assert stored(api)["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    await asyncio.sleep(60)
    await statuses.write_condition(seen(api, jobset), STARTED, "0.1")
    assert stored(api)["lastTransitionTime"] == "2026-01-01T00:02:00Z"


async def test_what_was_written_is_not_written_again_while_the_watch_has_not_shown_it(
    api_calls: CallBlocker, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    await statuses.write_condition(jobset, STARTED, "0.0")
    before = len(api_calls.calls)
    again = await statuses.write_condition(jobset, STARTED, "0.0")
    assert again == pytest.approx(PROGRESS_INTERVAL)
    assert len(api_calls.calls) == before


async def test_a_condition_that_a_user_took_away_is_reported_again_but_slowly(
    api: Api, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    await statuses.write_condition(jobset, STARTED, "0.0")
    api.change(JOBSETS, "train", lambda body: body["status"].update(conditions=[]))
    assert await statuses.write_condition(jobset, STARTED, "0.0") == pytest.approx(PROGRESS_INTERVAL)
    await asyncio.sleep(PROGRESS_INTERVAL)
    assert await statuses.write_condition(jobset, STARTED, "0.0") is None
    assert stored(api)["status"] == "True"


async def test_the_next_jobset_of_the_name_is_reported_at_once(
    api: Api, api_calls: CallBlocker, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    await statuses.write_condition(jobset, waiting(9))
    api.remove(JOBSETS, "train")
    successor = store_jobset(api)
    assert await statuses.write_condition(successor, waiting(9)) is None
    assert stored(api)["message"] == "9/9 pods started"
    assert len(api_calls.calls) == 2


async def test_a_new_jobset_is_not_given_the_condition_of_its_namesake(
    api: Api, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    api.remove(JOBSETS, "train")
    store_jobset(api)
    assert await statuses.write_condition(jobset, waiting(1)) is None
    assert conditions(api) == []


async def test_a_jobset_that_is_gone_is_no_error(api: Api, statuses: ConditionWriter, jobset: JobSetSeen) -> None:
    api.remove(JOBSETS, "train")
    assert await statuses.write_condition(jobset, STARTED, "0.0") is None


async def test_forgetting_a_gang_forgets_when_it_was_reported(
    api_calls: CallBlocker, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    await statuses.write_condition(jobset, waiting(1))
    statuses.forget_gang(TRAIN)
    assert statuses.write_delay(jobset, waiting(1)) == 0.0


# --- Events ---------------------------------------------------------------------------------------------------------


async def test_the_event_comes_before_the_condition(
    api_calls: CallBlocker, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    """A crash between the two repeats both; the other way round it would swallow the Event."""
    await statuses.write_condition(jobset, STARTED, "0.0")
    assert verbs(api_calls) == ["create events", "patch jobsets"]


async def test_without_the_event_the_condition_is_not_written(
    api: Api, api_calls: CallBlocker, statuses: ConditionWriter, jobset: JobSetSeen
) -> None:
    api_calls.fail = lambda call: ServerError(500) if call.kind == EVENTS else None
    with pytest.raises(ServerError):
        await statuses.write_condition(jobset, STARTED, "0.0")
    assert verbs(api_calls) == ["create events"]


async def test_a_successor_after_a_crash_tells_no_second_event(
    api: Api, memory: MemoryClient, clock: VirtualClock, api_calls: CallBlocker, jobset: JobSetSeen
) -> None:
    api_calls.fail = lambda call: ServerError(500) if call.kind == JOBSETS else None
    with pytest.raises(ServerError):
        await ConditionWriter(memory.client, clock, version=version_of(api)).write_condition(jobset, STARTED, "0.0")
    api_calls.fail = lambda _: None
    await asyncio.sleep(100)
    await ConditionWriter(memory.client, clock, version=version_of(api)).write_condition(jobset, STARTED, "0.0")
    assert len(api.all(EVENTS)) == 1
    assert stored(api)["status"] == "True"


async def test_each_generation_has_its_own_event(api: Api, statuses: ConditionWriter, jobset: JobSetSeen) -> None:
    await statuses.write_condition(jobset, STARTED, "0.0")
    later = msgspec.structs.replace(STARTED, message="all 2 pods started (attempt 1, epoch 0)")
    await statuses.write_condition(seen(api, jobset), later, "1.0")
    assert len(api.all(EVENTS)) == 2


async def test_waiting_is_no_event(api: Api, statuses: ConditionWriter, jobset: JobSetSeen) -> None:
    await statuses.write_condition(jobset, waiting(1))
    assert api.all(EVENTS) == []


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        (STARTED, "Normal"),
        (msgspec.structs.replace(STARTED, reason=names.REASON_BYPASSED), "Normal"),
        (FAILED, "Warning"),
        (msgspec.structs.replace(FAILED, reason=names.REASON_GATE_MISSING), "Warning"),
        (msgspec.structs.replace(FAILED, reason=names.REASON_CONFIG_MAP_CONFLICT), "Warning"),
    ],
)
async def test_an_event_says_what_the_condition_says(
    api: Api, statuses: ConditionWriter, jobset: JobSetSeen, condition: DesiredCondition, kind: str
) -> None:
    await statuses.write_condition(jobset, condition, "0.0")
    (event,) = api.all(EVENTS)
    assert (event["type"], event["reason"], event["message"]) == (kind, condition.reason, condition.message)
    assert event["involvedObject"]["uid"] == jobset.uid
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
