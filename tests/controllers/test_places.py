"""Places on the gate stream: for pods that wait, and not for everybody who has a gang's token (A6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from controllers.places import EACH, STRANGERS
from jobset_gate import verdicts
from jobset_gate.kube.store import Change
from jobset_gate.model import PodSeen, Stage
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.streams import TOKEN, TRAIN, Client, Gate, served, until
from tests.jobset_gate import gangs
from tests.jobset_gate.gangs import verdict, waiting_pod

PLENTY = 400


@pytest.fixture
async def gate(clock: VirtualClock) -> AsyncIterator[Gate]:
    """Of a gang of 10^9 pods, none of which is there, on a stream with 400 places."""
    async with served(Gate(clock, most=PLENTY)) as made:
        made.see(billion())
        yield made


def billion(**changes: Any) -> Any:
    return gangs.jobset(gangs.replicated_job(replicas=10**9), token=TOKEN, **changes)


async def held(gate: Gate, pods: list[str]) -> list[Client]:
    return [await (await gate.ask(pod)).held() for pod in pods]


async def taken(gate: Gate, pods: list[str]) -> int:
    """How many of these get a place."""
    return [await (await gate.ask(pod)).status() for pod in pods].count(200)


def see_jobset(gate: Gate, namespace: str, name: str) -> None:
    jobset = gangs.jobset(token=TOKEN, namespace=namespace, name=name)
    gate.index.on_jobset(Change((namespace, name), None, jobset))


# --- For whom ---------------------------------------------------------------------------------------------------------


async def test_a_gang_without_pods_has_a_few_places_whatever_its_spec_asks_for(gate: Gate) -> None:
    strangers = [f"made-up-{number}" for number in range(2 * STRANGERS)]
    assert await taken(gate, strangers) == STRANGERS
    assert gate.outcomes == ["unknown"] * STRANGERS
    assert len(await held(gate, gate.see_pods(50))) == 50, "and its pods have theirs"


@pytest.mark.parametrize(
    "state", [{"suspended": True}, {"finished": True}, {"deleting": True}, {"managed_elsewhere": True}]
)
async def test_a_gang_that_does_not_wait_has_no_place(gate: Gate, state: dict[str, bool]) -> None:
    gate.see(billion(**state))
    assert await taken(gate, [*gate.see_pods(2), "made-up"]) == 0
    assert gate.book.open == 0


async def test_what_is_decided_is_told_to_pods_of_a_gang_that_waits_no_more(gate: Gate) -> None:
    (pod,) = gate.see_pods(1)
    gate.see(billion(finished=True))
    gate.keep(verdict())
    client = await gate.ask(pod)
    assert await client.status() == 200
    assert await client.rest() == verdicts.render(verdict())


async def test_made_up_pods_of_a_decided_gang_are_not_kept_in_mind(gate: Gate) -> None:
    gate.keep(verdict())
    strangers = [f"made-up-{number}" for number in range(2 * STRANGERS)]
    assert await taken(gate, strangers) == STRANGERS
    assert not gate.book.told


async def test_a_pod_has_two_places_and_no_more(gate: Gate) -> None:
    (pod,) = gate.see_pods(1)
    assert await taken(gate, [pod] * (EACH + 1)) == EACH
    assert gate.outcomes == ["too_many"]


@pytest.mark.parametrize(
    "stranger",
    [
        waiting_pod(0, bound=False),
        waiting_pod(0, deleting=True),
        waiting_pod(0, phase="Failed"),
        waiting_pod(0, stage=Stage.PASSED),
        waiting_pod(0, jobset_uid=""),
        waiting_pod(0, jobset_uid="u-0"),
    ],
    ids=["on no node", "on its way out", "failed", "through", "made by nobody", "of another life"],
)
async def test_a_pod_that_does_not_wait_on_a_node_is_a_stranger(gate: Gate, stranger: PodSeen) -> None:
    await held(gate, [f"made-up-{number}" for number in range(STRANGERS)])
    gate.see_pod(stranger)
    assert await taken(gate, [stranger.uid]) == 0
    gate.see_pod(waiting_pod(0), stranger)
    assert await taken(gate, [stranger.uid]) == 1


# --- How many ---------------------------------------------------------------------------------------------------------


async def test_strangers_of_one_namespace_have_a_tenth_of_all_places_together(gate: Gate) -> None:
    for number in range(5):
        see_jobset(gate, "theirs", f"gang-{number}")
    asked = [
        await (await gate.ask(f"made-up-{number % STRANGERS}", gang=f"theirs/gang-{number // STRANGERS}")).status()
        for number in range(5 * STRANGERS)
    ]
    assert asked.count(200) == PLENTY // 10
    see_jobset(gate, "others", "train")
    assert await (await gate.ask("made-up", gang="others/train")).status() == 200


async def test_a_gang_may_take_all_places_with_pods_that_wait(gate: Gate) -> None:
    """The gang of ten thousand pods may be all there is in its namespace."""
    assert len(await held(gate, gate.see_pods(PLENTY))) == PLENTY
    see_jobset(gate, "others", "train")
    assert await (await gate.ask("made-up", gang="others/train")).status() == 429
    assert gate.outcomes == ["too_many"]


# --- Given back -------------------------------------------------------------------------------------------------------


async def test_what_ends_gives_its_place_back(gate: Gate) -> None:
    strangers = [f"made-up-{number}" for number in range(STRANGERS)]
    for client in await held(gate, strangers):
        await client.close()
    await until(lambda: gate.book.open == 0)
    assert (gate.book.places._gangs, gate.book.places._strangers, gate.book._requests) == ({}, {}, {})
    await held(gate, strangers)


@pytest.mark.parametrize("state", [None, {"suspended": True}, {"finished": True}, {"uid": "u-2"}])
async def test_the_places_of_a_gang_that_waits_no_more_are_taken_away(gate: Gate, state: dict[str, Any] | None) -> None:
    clients = await held(gate, [*gate.see_pods(20), "made-up"])
    gate.see(None if state is None else billion(**state))
    gate.book.clear(TRAIN)
    assert {await client.rest() for client in clients} == {""}
    await until(lambda: gate.book.open == 0)
    assert gate.announced == set()


async def test_the_place_of_a_pod_that_went_is_taken_away(gate: Gate) -> None:
    """Or somebody would make and delete pods one after another, and keep a place for each."""
    gone, stays = await held(gate, gate.see_pods(2))
    gate.index.on_pod(Change(("default", waiting_pod(0).name), waiting_pod(0), None))
    gate.book.clear(TRAIN)
    assert await gone.rest() == ""
    await until(lambda: gate.book.open == 1)
    await gate.book.tell(TRAIN, verdict())
    assert await stays.rest() == verdicts.render(verdict())


async def test_who_is_being_told_keeps_its_place_until_it_has_heard(gate: Gate) -> None:
    (client,) = await held(gate, gate.see_pods(1))
    await gate.book.tell(TRAIN, verdict())
    gate.see(billion(finished=True))
    gate.book.clear(TRAIN)
    assert await client.rest() == verdicts.render(verdict())
    await until(lambda: gate.outcomes == ["told"])
