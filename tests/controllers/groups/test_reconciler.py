"""What was decided is carried out, the wait limit is kept, and what is over is cleared away (G3, G4); virtual time."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.groups.candidates import Check
from jobset_gate.groups.model import Design
from jobset_gate.groups.record import Record, Stage
from jobset_gate.kube.errors import ServerError
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, NODES, PODS
from jobset_gate.settings import Groups
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import PLUGINS, SmallCluster, add_node, keeping, settled
from tests.jobset_gate.groups.builders import ALIBABA, ALIBABA_MINIMUM, GANG
from tests.jobset_gate.groups.objects import key, node

OFF = Groups(capacity_check=Check.OFF)
MADE = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u-r", "controller": True}]
}
"""Of pods that a controller makes: such are taken back."""
PROBE = Groups(capacity_check=Check.PROBE)
IN = {zone: {"nodeSelector": {"zone": zone}} for zone in ("short", "stuck")}
"""Pods that go to different nodes, so that both may be tried at once."""


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


def recorded(cluster: SmallCluster) -> Record:
    found = cluster.record()
    assert found is not None
    return found


def marked(cluster: SmallCluster) -> list[str]:
    return [
        it["metadata"]["name"]
        for it in cluster.all(PODS)
        if (it["metadata"]["annotations"] or {}).get(names.KOORDINATOR_TIMED_OUT) == "true"
    ]


async def test_a_pod_above_the_minimum_that_somebody_else_holds_too_is_left_to_them(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        both = [{"name": names.GANG_GATE}, {"name": "other.dev/gate"}]
        cluster.gather("g", "a-theirs", minimum=2, spec={"schedulingGates": both})
        cluster.gather("g", "b", "c")
        await settled(2)
        assert cluster.open() == ["b", "c"]
        cluster.bind("b", "c")
        await settled(2)
        assert cluster.pod("a-theirs")["spec"]["schedulingGates"] == both[1:]


# --- The limit -------------------------------------------------------------------------------------------------------


async def test_time_under_somebody_elses_gate_does_not_count(cluster: SmallCluster) -> None:
    """Also not that of a pod that has come in the place of one that was opened; but not for ever."""
    async with keeping(cluster, PROBE):
        for name, pod in (("short", "b"), ("stuck", "d")):
            cluster.put(NODES, node(name, cpu="100m", labels={"zone": name}))
            cluster.gather(name, f"{pod}-0", f"{pod}-1", minimum=2, meta=MADE, spec=IN[name])
            await settled()
            cluster.bind(f"{pod}-0")
            cluster.remove(PODS, f"{pod}-1")
            cluster.gather(
                name, f"{pod}-2", meta=MADE, spec=IN[name], gates=(names.GANG_GATE, "kueue.x-k8s.io/admission")
            )
        await settled(600)
        assert [it.stage for it in map(cluster.record, ("short", "stuck")) if it] == [Stage.OPEN, Stage.OPEN]
        cluster.change(PODS, "b-2", {"spec": {"schedulingGates": []}})
        await settled(50)
        assert (found := cluster.record("short"))
        assert found.stage is Stage.OPEN
        await settled(15)
        assert (found := cluster.record("short"))
        assert found.rolled_back == 1
        await settled(3600)
        assert (found := cluster.record("stuck"))
        assert found.rolled_back == 1


# --- Members that come later -----------------------------------------------------------------------------------------


async def test_whoever_comes_before_the_minimum_is_bound_waits_for_that(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
        cluster.bind("a")
        cluster.gather("g", "late")
        await settled(10)
        assert cluster.open() == ["a", "b"]
        cluster.bind("b")
        await settled()
        assert cluster.open() == ["a", "b", "late"]


async def test_but_who_takes_the_place_of_one_that_is_gone_passes(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
        cluster.bind("a")
        cluster.remove(PODS, "b")
        await settled()
        cluster.gather("g", "c")
        await settled()
        assert cluster.open() == ["a", "c"]


async def test_after_all_members_are_gone_the_next_ones_gather_anew_though_none_was_ever_bound(
    cluster: SmallCluster,
) -> None:
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
        cluster.remove(PODS, "a")
        cluster.remove(PODS, "b")
        cluster.gather("g", "c")  # before anybody has looked
        await settled(10)
        assert cluster.open() == []
        cluster.gather("g", "d")
        await settled()
        assert cluster.open() == ["c", "d"]
        assert recorded(cluster).generation == 2


async def test_a_group_is_not_over_because_the_watch_still_tells_of_its_pods_as_held(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF) as keeper:

        def lag(verb: str, kind: Any, *_: object) -> None:
            if (verb, kind) == ("patch", PODS):
                keeper.deaf_to = names.GANG

        cluster.fate = lag
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
        cluster.change(PLUGINS, "g", {"metadata": {"labels": {"look": "again"}, "annotations": {"look": "again"}}})
        await settled(10)
        assert cluster.open() == ["a", "b"]
        assert recorded(cluster).stage is Stage.OPEN


async def test_a_successor_opens_only_pods_that_are_older_than_the_decision(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        cluster.fate = lambda _, kind, *__: ServerError(500) if kind == PODS else None
        cluster.gather("g", "a", "b", minimum=2)
        await settled(5)
        assert recorded(cluster).stage is Stage.OPEN
    cluster.fate = lambda *_: None
    cluster.remove(PODS, "a")
    cluster.remove(PODS, "b")
    cluster.gather("g", "c")
    async with keeping(cluster, OFF):
        await settled(10)
        assert cluster.open() == []
        cluster.gather("g", "d")
        await settled()
        assert cluster.open() == ["c", "d"]


async def test_a_successor_finishes_what_was_begun(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        cluster.fate = lambda _, kind, name, __: ServerError(500) if kind == PODS and name != "a" else None
        cluster.gather("g", *"abc", minimum=3)
        await settled(5)
        assert cluster.open() == ["a"]
    cluster.fate = lambda *_: None
    async with keeping(cluster, OFF):
        await settled()
        assert cluster.open() == ["a", "b", "c"]
        assert recorded(cluster).generation == 1


async def test_a_gang_whose_pods_were_all_replaced_is_part_of_its_gang_group_as_long_as_another_runs(
    cluster: SmallCluster,
) -> None:
    both = '["team/one","team/two"]'

    def gang(name: str, *pods: str) -> None:
        notes = {f"{GANG}name": name, f"{GANG}min-available": "1", f"{GANG}groups": both}
        cluster.gather(name, *pods, of=key(name, Design.KOORDINATOR), labels={}, notes=notes, meta=MADE)

    async with keeping(cluster, OFF):
        gang("one", "a")
        gang("two", "b")
        await settled()
        cluster.bind("a", "b")
        await settled()
        cluster.remove(PODS, "b")
        await settled()
        gang("two", "c")
        await settled(5)
        assert cluster.open() == ["a", "c"]
        cluster.bind("c")
        for name in "ac":
            cluster.remove(PODS, name)
        await settled(5)
        assert cluster.all(CONFIGMAPS) == [], "now all of it is over"


# --- The wait limit --------------------------------------------------------------------------------------------------


async def test_the_limit_runs_from_the_last_gate_removed(cluster: SmallCluster) -> None:
    refused = ["b"]
    cluster.fate = lambda _, kind, name, __: ServerError(500) if kind == PODS and name in refused else None
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", "b", minimum=2, terms={"scheduleTimeoutSeconds": 60}, meta=MADE)
        await settled(1)
        cluster.bind("a")
        await settled(100)
        assert recorded(cluster).stage is Stage.OPEN, "one gate is still there"
        refused.clear()
        await settled(50)
        assert cluster.open() == ["a", "b"]
        assert recorded(cluster).stage is Stage.OPEN
        await settled(45)
        assert recorded(cluster).stage is Stage.CLOSED
        assert cluster.all(PODS) == []


async def test_who_takes_anothers_place_does_not_set_the_limit_back(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", "b", minimum=2, meta=MADE)
        await settled(50)
        cluster.remove(PODS, "b")
        cluster.gather("g", "c", meta=MADE)
        await settled(5)
        assert cluster.open() == ["a", "c"]
        await settled(10)
        assert recorded(cluster).stage is Stage.CLOSED


@pytest.mark.parametrize("crowd", [0, 9])
async def test_a_group_whose_pod_group_was_made_anew_has_a_limit_of_its_own(cluster: SmallCluster, crowd: int) -> None:
    """Nothing of what was known of the one before counts: neither since when, nor that its minimum was bound."""
    async with keeping(cluster, OFF):
        for number in range(crowd):  # while many are being placed some writes are put off
            cluster.gather(f"o{number}", f"o{number}", minimum=1, meta=MADE)
        cluster.gather("g", "a", "b", minimum=2, meta=MADE)
        await settled()
        cluster.bind("a", "b")
        await settled(50)
        cluster.remove(PLUGINS, "g")
        cluster.gather("g", minimum=2)
        cluster.remove(PODS, "a")
        cluster.remove(PODS, "b")
        await settled(3)
        cluster.gather("g", "c", "d", meta=MADE)
        await settled(40)
        assert {"c", "d"} <= set(cluster.open())
        assert (recorded(cluster).stage, recorded(cluster).satisfied) == (Stage.OPEN, None)


async def test_the_back_off_doubles_and_ends_with_success(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF) as keeper:
        cluster.gather("g", "a", "b", minimum=2, meta=MADE)
        opened = []
        for number in range(4):
            while not cluster.open():
                await settled(0.5)
            opened.append(cluster.clock())
            while cluster.all(PODS):
                await settled(0.5)
            cluster.gather("g", f"a{number}", f"b{number}", meta=MADE)
        pauses = [later - earlier - 60 for earlier, later in itertools.pairwise(opened)]
        assert [round(it, -1) for it in pauses] == [10, 20, 40]
        assert keeper.metric("rolled_back_total") == 4
        await settled(90)
        cluster.bind("a3", "b3")
        await settled()
        assert recorded(cluster).rolled_back == 0


async def test_a_bare_pod_is_never_taken_back_and_the_group_says_so(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF) as keeper:
        cluster.gather("g", "made", meta=MADE, minimum=2)
        cluster.gather("g", "bare")
        await settled(70)
        assert [it["metadata"]["name"] for it in cluster.all(PODS)] == ["bare"]
        assert recorded(cluster).stage is Stage.ROLLING_BACK
        assert keeper.metric("waiting", reason=names.REASON_ROLLBACK_BLOCKED) == 1
        cluster.remove(PODS, "bare")
        await settled(5)
        assert recorded(cluster).stage is Stage.CLOSED


async def test_a_group_that_was_taken_back_keeps_its_back_off_when_all_of_it_is_gone_for_a_moment(
    cluster: SmallCluster,
) -> None:
    """Its record lies in a ConfigMap, which goes when the group is over; but this one is not."""
    labels = {ALIBABA: "g", ALIBABA_MINIMUM: "1"}
    of = key(design=Design.ALIBABA)
    async with keeping(cluster, Groups(capacity_check=Check.OFF, wait_seconds=60)):
        cluster.gather("g", "a", of=of, labels=labels, meta=MADE)
        await settled(61)
        assert cluster.all(PODS) == []
        assert len(cluster.all(CONFIGMAPS)) == 1
        cluster.gather("g", "b", of=of, labels=labels, meta=MADE)
        await settled(5)
        assert cluster.open() == []
        await settled(10)
        assert cluster.open() == ["b"]
        cluster.bind("b")
        await settled()
        cluster.remove(PODS, "b")
        await settled()
        assert cluster.all(CONFIGMAPS) == []


async def test_of_a_gang_group_the_longest_limit_holds_and_all_gangs_are_taken_back(cluster: SmallCluster) -> None:
    both = '["team/one","team/two"]'

    def gang(name: str, wait: str, *pods: str) -> None:
        notes = {f"{GANG}name": name, f"{GANG}min-available": str(len(pods))}
        notes |= {f"{GANG}groups": both, f"{GANG}waiting-time": wait}
        cluster.gather(name, *pods, of=key(name, Design.KOORDINATOR), labels={}, notes=notes, meta=MADE)

    async with keeping(cluster, OFF):
        gang("one", "30s", "a")
        gang("two", "90s", "b", "c")
        await settled()
        cluster.bind("a", "b")
        await settled(80)
        assert len(cluster.all(PODS)) == 3
        await settled(15)
        assert cluster.all(PODS) == []
        gang("one", "30s", "d")
        await settled(600)
        assert cluster.open() == [], "Koordinator's gangs are not tried again"
        assert marked(cluster) == ["d"]


# --- Telling ---------------------------------------------------------------------------------------------------------


async def test_after_five_minutes_of_gathering_there_is_one_event_and_no_limit(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", minimum=2)
        await settled(290)
        assert not events(cluster, names.REASON_GATHERING)
        await settled(3600)
        assert len(events(cluster, names.REASON_GATHERING)) == 1
        cluster.gather("g", "b")
        await settled()
        assert cluster.open() == ["a", "b"]


def events(cluster: SmallCluster, reason: str) -> list[Any]:
    return [it for it in cluster.all(EVENTS) if it["reason"] == reason]


async def test_another_writer_of_the_same_object_costs_nothing_but_another_try(cluster: SmallCluster) -> None:
    """A status written between our look and our write; the record is as it was."""
    add_node(cluster)
    touched: list[str] = []

    def touch(verb: str, kind: Any, name: str, body: Any) -> None:
        if verb == "patch" and kind == PLUGINS and not touched:
            touched.append(name)
            cluster.change(PLUGINS, name, {"status": {"phase": "Pending"}})

    cluster.fate = touch
    async with keeping(cluster):
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
        assert touched
        assert cluster.open() == ["a", "b"]
        assert recorded(cluster).generation == 1


async def test_a_new_leader_whose_watch_lags_does_not_take_an_open_group_for_one_that_is_over(
    cluster: SmallCluster,
) -> None:
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", "b", minimum=2)
        await settled()
    pods = [cluster.pod(name) for name in "ab"]
    for name in "ab":
        cluster.remove(PODS, name)
    async with keeping(cluster, OFF):
        await settled(5)
        for body in pods:
            cluster.put(PODS, body)  # only now its watch tells of them
        await settled(30)
        assert recorded(cluster).stage is Stage.OPEN
        assert recorded(cluster).generation == 1
