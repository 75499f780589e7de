"""The controller dies between any two of its writes; a successor finishes, and admits no group twice (G3, G4).

Each scenario is played on virtual time with a death at one write after the other, until there are no more.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import PODS, Resource
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState, decode_record
from jobset_gate.settings import Groups
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.memory_client import Answer, Call, MemoryClient
from tests.fakes.podgroups.cluster import OFF, OWNED, PROBE, InMemoryCluster, add_node, asking, running_controller
from tests.fakes.podgroups.manifests import record_text
from tests.fakes.podgroups.objects import key
from tests.fakes.podgroups.sources import PLUGINS, Json, alibaba

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
LONG = 120.0
"""Seconds in which each scenario comes to its end."""

STEP_SECONDS = 0.5
"""Seconds between two looks of scheduler and owner."""


class Death:
    """Ends a controller's process at one of its writes: it hears nothing then, and nothing of it reaches the API."""

    def __init__(self, last_write: int, *, lands: bool) -> None:
        self._last_write, self._lands = last_write, lands
        self.writes: list[str] = []
        self.dead = asyncio.Event()

    async def __call__(self, call: Call) -> Answer:
        await asyncio.sleep(0)
        if self.dead.is_set():
            await asyncio.Event().wait()
        if call.verb in ("get", "list"):
            return Answer.DONE
        self.writes.append(f"{call.verb} {call.kind.plural}")
        if len(self.writes) < self._last_write:
            return Answer.DONE
        self.dead.set()
        if not self._lands:
            await asyncio.Event().wait()
        return Answer.LOST


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


async def recreate_pods(cluster: InMemoryCluster, makes: Makes) -> None:
    """Recreates each of these pods when it is gone."""
    while True:
        there = {it["metadata"]["name"] for it in cluster.all(PODS)}
        for name, make in makes.items():
            if name not in there:
                make(name)
        await asyncio.sleep(STEP_SECONDS)


Makes = Mapping[str, Callable[[str], None]]
Make = Callable[[InMemoryCluster], Makes]
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


def plugins(cluster: InMemoryCluster) -> Makes:
    cluster.create_group("g", minimum=3, terms={"scheduleTimeoutSeconds": 8})
    return dict.fromkeys("abc", partial(cluster.create_group, "g", meta=OWNED))


def in_a_config_map(cluster: InMemoryCluster) -> Makes:
    make = partial(cluster.create_group, "g", of=key(flavor=Flavor.ALIBABA), labels=alibaba("g", "3"), meta=OWNED)
    return dict.fromkeys("abc", make)


def koordinator(cluster: InMemoryCluster, **said: str) -> Makes:
    """Two gangs of two pods each that open together, in ConfigMaps."""
    gang = partial(cluster.create_gang, partners="one two", minimum=2, said={"waiting-time": "8s", **said}, meta=OWNED)
    return dict.fromkeys("ab", partial(gang, "one")) | dict.fromkeys("cd", partial(gang, "two"))


def competing(cluster: InMemoryCluster) -> Makes:
    add_node(cluster, cpu="1")
    for name in COMPETING:
        cluster.create_group(name, minimum=2, terms={"scheduleTimeoutSeconds": 8})
    make = {name: partial(cluster.create_group, name, meta=OWNED, spec=asking("1")) for name in COMPETING}
    return {f"{name}-{number}": make[name] for name in COMPETING for number in range(2)}


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
    "placed, in a ConfigMap": Scenario(in_a_config_map, room=3, ends=all_bound(3)),
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
    death = Death(last_write, lands=lands)
    doomed = MemoryClient(cluster.api, death)
    if scenario.room_later:
        asyncio.get_running_loop().call_later(15, room.__setitem__, 0, scenario.room_later)
    end = clock() + LONG
    async with running_controller(cluster, scenario.settings, client=doomed.client):
        while True:
            if death.dead.is_set() or scenario.ends(cluster, chronicle):
                break
            await asyncio.sleep(1)
        with suppress(TimeoutError):  # words come last
            async with asyncio.timeout(6):
                await death.dead.wait()
    async with running_controller(cluster, scenario.settings):
        while not scenario.ends(cluster, chronicle):
            assert clock() < end, f"not at its end after {death.writes}: {chronicle.records[-3:]}"
            await asyncio.sleep(1)
    for other in others:
        other.cancel()
    twice = {which: when for which, when in chronicle.admissions().items() if len(when) > 1}
    assert not twice, f"decided twice after {death.writes}"
    assert chronicle.open_together <= 1, f"one without proof at a time, after {death.writes}"
    return death.dead.is_set()
