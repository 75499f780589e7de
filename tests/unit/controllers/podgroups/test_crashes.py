"""The controller dies between any two of its writes; a successor finishes, and admits no group twice (G3, G4).

Each scenario is played on virtual time with a death at one write after the other, until there are no more.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import PODS, Resource
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState, decode_record
from jobset_gate.settings import Groups
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.podgroups.cluster import (
    OFF,
    OWNED,
    PROBE,
    InMemoryCluster,
    add_node,
    asking,
    running_controller,
)
from tests.fakes.podgroups.manifests import record_text
from tests.fakes.podgroups.objects import key
from tests.fakes.podgroups.sources import ALIBABA, ALIBABA_MINIMUM, GANG, PLUGINS, Json

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
LONG = 120.0
"""Seconds in which each scenario comes to its end."""

STEP_SECONDS = 0.5
"""Seconds between two looks of scheduler and owner."""


class DyingClient:
    """The API as one process sees it. After its end it hears nothing, and nothing of its reaches the server."""

    def __init__(self, cluster: InMemoryCluster, last_write: int, *, lands: bool) -> None:
        self._cluster, self._last_write, self._lands = cluster, last_write, lands
        self.writes: list[str] = []
        self.dead = asyncio.Event()
        self._never = asyncio.Event()

    def without_retries(self) -> DyingClient:
        return self

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def call(resource: Resource, *args: Any, **more: Any) -> Any:
            if self.dead.is_set():
                await self._never.wait()
            if verb not in ("get", "list"):
                self.writes.append(f"{verb} {resource.plural}")
                if len(self.writes) == self._last_write:
                    await self._end(verb, resource, *args, **more)
            return await getattr(self._cluster, verb)(resource, *args, **more)

        return call

    async def _end(self, verb: str, *args: Any, **more: Any) -> None:
        if self._lands:
            await getattr(self._cluster, verb)(*args, **more)
        self.dead.set()
        await self._never.wait()


class RecordHistory:
    """Every record that ever stood anywhere, and how many of the groups that compete were open at once at most."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.records: list[AdmissionRecord] = []
        self.open_together = 0
        self._cluster = cluster
        cluster.api.listeners.append(self._on_change)

    def _on_change(self, _: Resource, __: Json | None, body: Json | None) -> None:
        self.open_together = max(self.open_together, sum(may_be_bound(self._cluster, it) for it in COMPETING))
        if body and (text := record_text(body)):
            self.records.append(decode_record(text))

    def admissions(self) -> dict[tuple[str, int], set[float]]:
        """By gang and generation: when each was decided. Twice would be once too often."""
        found: dict[tuple[str, int], set[float]] = {}
        for one in self.records:
            for gang, generation in one.gangs:
                found.setdefault((gang.name, generation), set()).add(one.at)
        return found


COMPETING = ("tried", "other")
"""Groups of two pods on a node that has room for one."""


def may_be_bound(cluster: InMemoryCluster, group: str) -> bool:
    """It is open without its minimum, or a pod of it may be bound at any time."""
    pods = [it for it in cluster.all(PODS) if it["metadata"]["labels"].get(PLUGINS) == group]
    record = cluster.record(group) if pods else None
    bound = sum(map(has_node, pods))
    is_open = record is not None and record.stage is AdmissionState.OPEN and record.satisfied is None
    return (is_open and bound < 2) or any(not it["spec"]["schedulingGates"] and not has_node(it) for it in pods)


def has_node(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName"))


async def bind_ungated(cluster: InMemoryCluster, room: list[int]) -> None:
    """Binds ungated pods, as long as there is room for one more; `room` may grow."""
    while True:
        taken = sum(map(has_node, cluster.all(PODS)))
        for one in cluster.all(PODS):
            if not one["spec"]["schedulingGates"] and not has_node(one) and taken < room[0]:
                cluster.bind(one["metadata"]["name"])
                taken += 1
        await asyncio.sleep(STEP_SECONDS)


async def recreate_pods(cluster: InMemoryCluster, makes: dict[str, Callable[[str], None]]) -> None:
    """Recreates each of these pods when it is gone."""
    while True:
        there = {it["metadata"]["name"] for it in cluster.all(PODS)}
        for name, make in makes.items():
            if name not in there:
                make(name)
        await asyncio.sleep(STEP_SECONDS)


Make = Callable[[InMemoryCluster], dict[str, Callable[[str], None]]]
"""Puts up the groups; gives how to make each pod."""


@dataclass(frozen=True)
class Scenario:
    """What is put up, how many pods have room, and how it has to end."""

    make: Make
    room: int
    ends: Callable[[InMemoryCluster, RecordHistory], bool]
    room_later: int = 0
    """From 15 seconds on."""
    settings: Groups = OFF


def plugins(cluster: InMemoryCluster) -> dict[str, Callable[[str], None]]:
    cluster.create_group("g", minimum=3, terms={"scheduleTimeoutSeconds": 8})
    return {name: partial(cluster.create_group, "g", meta=OWNED) for name in "abc"}


def alibaba(cluster: InMemoryCluster) -> dict[str, Callable[[str], None]]:
    labels = {ALIBABA: "g", ALIBABA_MINIMUM: "3"}
    of = key(flavor=Flavor.ALIBABA)
    return {name: partial(cluster.create_group, "g", of=of, labels=labels, meta=OWNED) for name in "abc"}


def koordinator(cluster: InMemoryCluster, **said: str) -> dict[str, Callable[[str], None]]:
    """Two gangs of two pods each that open together, in ConfigMaps."""
    made: dict[str, Callable[[str], None]] = {}
    for name, pods in (("one", "ab"), ("two", "cd")):
        notes = {f"{GANG}name": name, f"{GANG}min-available": "2", f"{GANG}groups": '["team/one","team/two"]'}
        notes |= {f"{GANG}waiting-time": "8s"} | {GANG + each: value for each, value in said.items()}
        of = key(name, Flavor.KOORDINATOR)
        made |= {pod: partial(cluster.create_group, name, of=of, labels={}, notes=notes, meta=OWNED) for pod in pods}
    return made


def competing(cluster: InMemoryCluster) -> dict[str, Callable[[str], None]]:
    add_node(cluster, cpu="1")
    made: dict[str, Callable[[str], None]] = {}
    for name in COMPETING:
        cluster.create_group(name, minimum=2, terms={"scheduleTimeoutSeconds": 8})
        made |= {f"{name}-{it}": partial(cluster.create_group, name, meta=OWNED, spec=asking("1")) for it in range(2)}
    return made


def all_bound(many: int) -> Callable[[InMemoryCluster, RecordHistory], bool]:
    """All have a node, and that is written down."""

    def ends(cluster: InMemoryCluster, chronicle: RecordHistory) -> bool:
        bound = sum(map(has_node, cluster.all(PODS)))
        last = chronicle.records[-1] if chronicle.records else None
        return bound == many and any(it.satisfied is not None for it in chronicle.records) and last is not None

    return ends


def given_up(cluster: InMemoryCluster, chronicle: RecordHistory) -> bool:
    """Taken back whole, all held and marked, and not to be tried again."""
    pods = cluster.all(PODS)
    marked = [it for it in pods if (it["metadata"]["annotations"] or {}).get(names.KOORDINATOR_TIMED_OUT) == "true"]
    held = [it for it in pods if it["spec"]["schedulingGates"]]
    closed = any(it.stage is AdmissionState.CLOSED and not it.retry for it in chronicle.records)
    return closed and len(pods) == len(marked) == len(held) == 4


def left_alone(cluster: InMemoryCluster, chronicle: RecordHistory) -> bool:
    """Nobody is taken back, and the one without a node is marked."""
    pods = cluster.all(PODS)
    marked = [it for it in pods if (it["metadata"]["annotations"] or {}).get(names.KOORDINATOR_TIMED_OUT) == "true"]
    never = all(it.stage is AdmissionState.OPEN for it in chronicle.records)
    return never and len(marked) == 1 and not has_node(marked[0])


SCENARIOS = {
    "placed": Scenario(plugins, room=3, ends=all_bound(3)),
    "placed, in a ConfigMap": Scenario(alibaba, room=3, ends=all_bound(3)),
    "a GangGroup placed": Scenario(koordinator, room=4, ends=all_bound(4)),
    "late, taken back, and placed later": Scenario(plugins, room=1, room_later=3, ends=all_bound(3)),
    "a GangGroup late and given up": Scenario(koordinator, room=3, ends=given_up),
    "NonStrict and late": Scenario(partial(koordinator, mode="NonStrict"), room=3, ends=left_alone),
    "two without proof": Scenario(competing, room=1, room_later=4, ends=all_bound(4), settings=PROBE),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_successor_finishes_whatever_write_was_the_last(clock: VirtualClock, scenario: str) -> None:
    """Deep: a death at every write, landed and lost; else at every seventh, in turns."""
    deaths, first = 0, 1 if DEEP else 1 + [*SCENARIOS].index(scenario)
    for last_write in range(first, 200, 1 if DEEP else 7):
        for lands in (True, False) if DEEP else (bool(deaths % 2),):
            if not await play(clock, SCENARIOS[scenario], last_write, lands=lands):
                assert deaths >= (5 if DEEP else 1), "admission, gates and all that"
                return
            deaths += 1


async def play(clock: VirtualClock, scenario: Scenario, last_write: int, *, lands: bool) -> bool:
    """One telling; gives whether there was anybody to die."""
    cluster = InMemoryCluster(clock)
    chronicle = RecordHistory(cluster)
    room = [scenario.room]
    makes = scenario.make(cluster)
    others = [asyncio.create_task(bind_ungated(cluster, room)), asyncio.create_task(recreate_pods(cluster, makes))]
    client = DyingClient(cluster, last_write, lands=lands)
    if scenario.room_later:
        asyncio.get_running_loop().call_later(15, room.__setitem__, 0, scenario.room_later)
    end = clock() + LONG
    async with running_controller(cluster, scenario.settings, client=client):
        await death_or(client, lambda: scenario.ends(cluster, chronicle))
        with suppress(TimeoutError):  # words come last
            async with asyncio.timeout(6):
                await client.dead.wait()
    async with running_controller(cluster, scenario.settings):
        while not scenario.ends(cluster, chronicle):
            assert clock() < end, f"not at its end after {client.writes}: {chronicle.records[-3:]}"
            await asyncio.sleep(1)
    for other in others:
        other.cancel()
    twice = {which: when for which, when in chronicle.admissions().items() if len(when) > 1}
    assert not twice, f"decided twice after {client.writes}"
    assert chronicle.open_together <= 1, f"one without proof at a time, after {client.writes}"
    return client.dead.is_set()


async def death_or(client: DyingClient, end: Callable[[], bool]) -> None:
    """Until it is dead, or the scenario came to its end without it."""
    while True:
        if client.dead.is_set() or end():
            return
        await asyncio.sleep(1)
