"""Places on the gate stream: for pods that wait, and not for everybody who has a gang's token (A6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from controllers.barrier.stream.registry import MAX_PER_POD, MAX_UNKNOWN_PER_GANG
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import BarrierStage, PodSeen
from jobset_gate.runtime.store import ObjectChange
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes import gangs
from tests.fakes.gangs import verdict, waiting_pod
from tests.fakes.gate_stream import TOKEN, TRAIN, ServedStream, StreamClient, serving, until

PLENTY = 400


@pytest.fixture
async def gate(clock: VirtualClock) -> AsyncIterator[ServedStream]:
    """Of a gang of 10^9 pods, none whose is there, on a stream with 400 places."""
    async with serving(ServedStream(clock, most=PLENTY)) as made:
        made.set_jobset(billion())
        yield made


def billion(**changes: Any) -> Any:
    return gangs.jobset(gangs.replicated_job(replicas=10**9), token=TOKEN, **changes)


async def held(gate: ServedStream, pods: list[str]) -> list[StreamClient]:
    return [await (await gate.connect_and_ask(pod)).held() for pod in pods]


async def taken(gate: ServedStream, pods: list[str], gang: str = "default/train") -> int:
    """How many of these get a place."""
    return [await (await gate.connect_and_ask(pod, gang=gang)).status() for pod in pods].count(200)


def see_jobset(gate: ServedStream, namespace: str, name: str) -> None:
    jobset = gangs.jobset(token=TOKEN, namespace=namespace, name=name)
    gate.index.on_workload(ObjectChange((namespace, name), None, jobset))


# --- For which client -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state", [{"suspended": True}, {"finished": True}, {"deleting": True}, {"managed_elsewhere": True}]
)
async def test_a_gang_that_does_not_wait_has_no_place(gate: ServedStream, state: dict[str, bool]) -> None:
    gate.set_jobset(billion(**state))
    assert await taken(gate, [*gate.add_pods(2), "made-up"]) == 0
    assert gate.book.count_open("jobset") == 0


async def test_made_up_pods_of_a_decided_gang_are_not_kept_in_mind(gate: ServedStream) -> None:
    gate.store_verdict(verdict())
    strays = [f"made-up-{number}" for number in range(2 * MAX_UNKNOWN_PER_GANG)]
    assert await taken(gate, strays) == MAX_UNKNOWN_PER_GANG
    assert not gate.book.deliveries


async def test_a_pod_has_two_places_and_no_more(gate: ServedStream) -> None:
    (pod,) = gate.add_pods(1)
    assert await taken(gate, [pod] * (MAX_PER_POD + 1)) == MAX_PER_POD
    assert gate.outcomes == ["too_many"]


@pytest.mark.parametrize(
    "unrelated",
    [
        waiting_pod(0, bound=False),
        waiting_pod(0, deleting=True),
        waiting_pod(0, phase="Failed"),
        waiting_pod(0, stage=BarrierStage.PASSED),
        waiting_pod(0, workload_uid=""),
        waiting_pod(0, workload_uid="u-0"),
    ],
    ids=["on no node", "on its way out", "failed", "through", "made by nobody", "of another life"],
)
async def test_a_pod_that_does_not_wait_on_a_node_is_unknown(gate: ServedStream, unrelated: PodSeen) -> None:
    await held(gate, [f"made-up-{number}" for number in range(MAX_UNKNOWN_PER_GANG)])
    gate.add_pod(unrelated)
    assert await taken(gate, [unrelated.uid]) == 0
    gate.add_pod(waiting_pod(0), unrelated)
    assert await taken(gate, [unrelated.uid]) == 1


# --- How many ---------------------------------------------------------------------------------------------------------


async def test_unknown_pods_of_one_namespace_have_a_tenth_of_all_places_together(gate: ServedStream) -> None:
    for number in range(5):
        see_jobset(gate, "theirs", f"gang-{number}")
    strays = [f"made-up-{number}" for number in range(MAX_UNKNOWN_PER_GANG)]
    assert sum([await taken(gate, strays, f"theirs/gang-{number}") for number in range(5)]) == PLENTY // 10
    see_jobset(gate, "others", "train")
    assert await taken(gate, ["made-up"], "others/train") == 1


async def test_a_gang_may_take_all_places_with_pods_that_wait(gate: ServedStream) -> None:
    """The gang of ten thousand pods may be all there is in its namespace."""
    assert len(await held(gate, gate.add_pods(PLENTY))) == PLENTY
    see_jobset(gate, "others", "train")
    assert await (await gate.connect_and_ask("made-up", gang="others/train")).status() == 429
    assert gate.outcomes == ["too_many"]


# --- Given back -------------------------------------------------------------------------------------------------------


async def test_what_ends_gives_its_place_back(gate: ServedStream) -> None:
    strays = [f"made-up-{number}" for number in range(MAX_UNKNOWN_PER_GANG)]
    for client in await held(gate, strays):
        await client.close()
    await until(lambda: gate.book.count_open("jobset") == 0)
    await held(gate, strays)


@pytest.mark.parametrize("state", [None, {"suspended": True}, {"finished": True}, {"uid": "u-2"}])
async def test_the_places_of_a_gang_that_waits_no_more_are_taken_away(
    gate: ServedStream, state: dict[str, Any] | None
) -> None:
    clients = await held(gate, [*gate.add_pods(20), "made-up"])
    gate.set_jobset(None if state is None else billion(**state))
    gate.book.drop_stale_requests(TRAIN)
    assert {await client.rest() for client in clients} == {""}
    await until(lambda: gate.book.count_open("jobset") == 0)
    assert gate.announced == set()


async def test_the_place_of_a_pod_that_went_is_taken_away(gate: ServedStream) -> None:
    """A tenant could make and delete pods one after another, and keep a place for each."""
    gone, stays = await held(gate, gate.add_pods(2))
    gate.index.on_pod(ObjectChange(("default", waiting_pod(0).name), waiting_pod(0), None))
    gate.book.drop_stale_requests(TRAIN)
    assert await gone.rest() == ""
    await until(lambda: gate.book.count_open("jobset") == 1)
    await gate.book.answer_requests(TRAIN, verdict())
    assert await stays.rest() == verdict_codec.render(verdict())


async def test_who_is_being_answered_keeps_its_place_until_it_has_heard(gate: ServedStream) -> None:
    (client,) = await held(gate, gate.add_pods(1))
    await gate.book.answer_requests(TRAIN, verdict())
    gate.set_jobset(billion(finished=True))
    gate.book.drop_stale_requests(TRAIN)
    assert await client.rest() == verdict_codec.render(verdict())
    await until(lambda: gate.outcomes == ["told"])
