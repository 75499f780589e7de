"""One place chooses who is opened: in order, never the same room twice, and what was decided is found again (G3)."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from controllers.groups import opener
from controllers.groups.index import GroupIndex
from controllers.groups.lobby import Lobby
from controllers.groups.watches import HAVE_ROOM
from jobset_gate import names
from jobset_gate.groups.candidates import Check
from jobset_gate.groups.model import Design
from jobset_gate.groups.opening import Pass
from jobset_gate.groups.outlook import Outlook
from jobset_gate.groups.record import How, Stage, parse
from jobset_gate.kube.errors import ServerError
from jobset_gate.kube.resources import CONFIGMAPS, NODES, PODS
from jobset_gate.settings import Groups
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import PLUGINS, Keeper, SmallCluster, add_node, keeping, settled
from tests.jobset_gate.groups.builders import GANG
from tests.jobset_gate.groups.objects import key

BIG = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
"""The spec of a pod that asks for two processors."""


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


def gang(cluster: SmallCluster, name: str, *pods: str, gangs: str = "", **more: Any) -> None:
    """A gang of Koordinator's annotations that needs as many pods as there are."""
    notes = {f"{GANG}name": name, f"{GANG}min-available": str(len(pods))} | ({f"{GANG}groups": gangs} if gangs else {})
    of = key(name, Design.KOORDINATOR)
    cluster.gather(name, *pods, of=of, labels={}, notes=notes, **more)


async def test_nothing_is_opened_before_the_minimum_is_there(cluster: SmallCluster) -> None:
    add_node(cluster)
    async with keeping(cluster) as keeper:
        cluster.gather("g", "a", "b", minimum=3)
        await settled()
        assert cluster.record() is None
        assert keeper.metric("waiting", reason=names.REASON_GATHERING) == 1
        assert keeper.metric("held_pods") == 2
        cluster.gather("g", "c")
        await settled()
        assert cluster.open() == ["a", "b", "c"]
        assert keeper.metric("opened_total", how="Fit") == 1


async def test_there_is_one_decision_for_a_group_and_one_patch_for_a_pod(cluster: SmallCluster) -> None:
    add_node(cluster)
    async with keeping(cluster):
        cluster.gather("g", *"abc", minimum=3)
        await settled()
        cluster.bind(*"abc")
        await settled(60)
        assert cluster.wrote("patch", PLUGINS, names.GANG_RECORD) == 2, "the decision, and that it is satisfied"
        assert cluster.wrote("patch", PODS) == 3


async def test_after_a_long_pass_others_get_their_turn_before_the_next(
    cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_node(cluster)
    async with keeping(cluster):
        monkeypatch.setattr(opener, "perf_counter", count(step=10).__next__)  # each look seems to take that long
        cluster.gather("first", "first-0", minimum=1)
        await settled(opener.DEBOUNCE * 1.5)
        assert cluster.record("first") is not None
        cluster.gather("next", "next-0", minimum=1)
        await settled(opener.LONGEST_REST - opener.DEBOUNCE)
        assert cluster.record("next") is None
        await settled(opener.DEBOUNCE)
        assert cluster.record("next") is not None
        await settled()
        cluster.gather("last", "last-0", minimum=1)
        await settled(opener.DEBOUNCE * 1.5)
        assert cluster.record("last") is not None, "who has rested enough begins at once"


async def test_the_decision_is_written_before_the_first_gate_goes(cluster: SmallCluster) -> None:
    add_node(cluster)
    async with keeping(cluster):
        cluster.gather("g", *"ab", minimum=2)
        await settled()
    kinds = [resource for _, resource, _, body in cluster.writes if names.GANG_RECORD in str(body) or resource == PODS]
    assert kinds[:3] == [PLUGINS, PODS, PODS]


async def test_two_groups_are_never_promised_the_same_room(cluster: SmallCluster) -> None:
    """Both have gathered before the first look, and no pod is bound meanwhile."""
    add_node(cluster, cpu="4")
    cluster.gather("one", "a", "b", minimum=2, spec=BIG)
    cluster.gather("two", "c", "d", minimum=2, spec=BIG)
    async with keeping(cluster) as keeper:
        await settled(30)
        assert cluster.open() == ["a", "b"]
        cluster.bind("a", "b")
        await settled(30)
        assert cluster.open() == ["a", "b"], "the room is taken for good"
        assert keeper.metric("waiting", reason=names.REASON_WAITING_FOR_CAPACITY) == 1
        add_node(cluster, "m", cpu="4")
        await settled()
        assert cluster.open() == ["a", "b", "c", "d"]


async def test_room_is_promised_from_the_moment_of_the_choice(cluster: SmallCluster) -> None:
    """While the decision is being written, somebody more important comes for the same room."""
    add_node(cluster, cpu="4")
    written, patch = asyncio.Event(), cluster.patch

    async def slow(resource: Any, *args: Any, **more: Any) -> Any:
        if resource == PLUGINS:
            await written.wait()
        return await patch(resource, *args, **more)

    cluster.patch = slow  # type: ignore[method-assign]
    cluster.gather("one", "a", "b", minimum=2, spec=BIG)
    async with keeping(cluster):
        await settled(0.2)
        cluster.gather("two", "c", "d", minimum=2, spec=BIG | {"priority": 9})
        await settled(30)
        assert cluster.open() == []
        written.set()
        await settled(10)
        assert cluster.open() == ["a", "b"]


async def test_when_the_decision_was_not_written_after_all_the_room_is_free_for_others(cluster: SmallCluster) -> None:
    add_node(cluster, cpu="4")
    cluster.fate = lambda _, kind, name, __: ServerError(503) if kind == PLUGINS and name == "one" else None
    cluster.gather("one", "a", "b", minimum=2, spec=BIG)
    async with keeping(cluster):
        await settled(0.2)
        cluster.gather("two", "c", "d", minimum=2, spec=BIG)
        await settled()
        assert cluster.open() == ["c", "d"]


async def test_a_pod_that_is_bound_makes_no_room_before_it_is_missing_in_the_nodes(cluster: SmallCluster) -> None:
    """The two watches of pods lag each other: neither order may promise its room again."""
    add_node(cluster, cpu="4")
    cluster.gather("one", "a", minimum=1, spec=BIG)
    async with keeping(cluster) as keeper:
        await settled()
        keeper.deaf_to = HAVE_ROOM
        cluster.bind("a")
        cluster.gather("two", "c", "d", minimum=2, spec=BIG)
        await settled(30)
        assert cluster.open() == ["a"]


async def test_a_new_leader_reads_what_was_decided_before_it_decides(cluster: SmallCluster) -> None:
    """Its watches lag: they have not told of the decision that the last leader took on the only room."""
    add_node(cluster, cpu="4")
    cluster.gather("one", "a", "b", minimum=2, spec=BIG)
    old = cluster.all(PLUGINS)
    async with keeping(cluster):
        cluster.fate = lambda _, kind, *__: ServerError(500) if kind == PODS else None
        await settled()
        assert cluster.record("one") is not None
    cluster.fate = lambda *_: None
    cluster.gather("two", "c", "d", minimum=2, spec=BIG | {"priority": 9})
    old = [*old, *(it for it in cluster.all(PLUGINS) if it["metadata"]["name"] == "two")]
    async with keeping(cluster, stale=old):
        await settled(30)
        assert cluster.record("two") is None, "one place, one group"
        assert cluster.open() == ["a", "b"]


async def test_a_standby_keeps_nothing_of_groups_that_came_and_went(cluster: SmallCluster) -> None:
    keeper = Keeper(cluster, Groups())
    for number in range(20):
        cluster.gather(f"g{number}", f"p{number}", minimum=1)
        await settled(0.3)
        for kind, name in ((PODS, f"p{number}"), (PLUGINS, f"g{number}")):
            cluster.remove(kind, name)
    add_node(cluster)
    await settled(5)
    adds = keeper.registry.get_sample_value("workqueue_adds_total", {"name": "group", "controller": "group"})
    assert adds == 0
    assert not keeper.part._opener._lobby.dirty, "what is kept for nothing shows nowhere else"


@pytest.mark.parametrize(
    "where", [(Outlook, "of"), (Pass, "consider"), (Lobby, "candidate"), (GroupIndex, "observe")], ids=str
)
async def test_a_fault_of_ours_that_shows_on_one_group_stops_no_other(
    cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch, where: tuple[type, str]
) -> None:
    add_node(cluster)
    kept = getattr(*where)
    mended: list[bool] = []

    def odd(self: Any, what: Any, *args: Any) -> Any:
        if "bad" in str(what) and not mended:
            raise ValueError("odd")
        return kept(self, what, *args)

    monkeypatch.setattr(*where, odd)
    cluster.gather("bad", "a", minimum=1)
    cluster.gather("good", "b", minimum=1)
    async with keeping(cluster):
        await settled(10)
        assert cluster.open() == ["b"]
        cluster.gather("other", "c", minimum=1)
        await settled(20)
        assert cluster.open() == ["b", "c"]
        if where[0] in (Outlook, Pass):
            notes = cluster.there(PLUGINS, "team", "bad")["metadata"]["annotations"]
            assert notes[names.GANG_STATE].endswith("ValueError('odd')"), "whoever asks is told"
        mended.append(True)
        await settled(100)
        assert cluster.open() == ["a", "b", "c"]


async def test_probe_opens_what_does_not_fit_one_after_the_other(cluster: SmallCluster) -> None:
    cluster.gather("one", "a", minimum=1, spec=BIG)
    cluster.gather("two", "b", minimum=1, spec=BIG)
    async with keeping(cluster, Groups(capacity_check=Check.PROBE)) as keeper:
        await settled(30)
        assert cluster.open() == ["a"]
        add_node(cluster, cpu="2")
        cluster.bind("a")
        await settled()
        assert cluster.open() == ["a", "b"]
        assert keeper.metric("opened_total", how="Probe") == 2


async def test_fit_opens_nothing_that_does_not_fit(cluster: SmallCluster) -> None:
    add_node(cluster, cpu="1")
    cluster.gather("one", "a", minimum=1, spec=BIG)
    async with keeping(cluster) as keeper:
        await settled(600)
        assert cluster.open() == []
        assert keeper.metric("longest_wait_seconds") >= 600
        cluster.change(NODES, "n", {"status": {"allocatable": {"cpu": "2"}}}, "")
        await settled()
        assert cluster.open() == ["a"]


async def test_a_decision_whose_answer_is_lost_is_found_and_not_taken_twice(cluster: SmallCluster) -> None:
    add_node(cluster)
    lost: list[str] = []

    def lose(verb: str, kind: Any, name: str, body: Any) -> str | None:
        if kind == PLUGINS and names.GANG_RECORD in str(body) and not lost:
            lost.append(name)
            return "lost"
        return None

    cluster.fate = lose
    async with keeping(cluster):
        cluster.gather("g", *"ab", minimum=2)
        await settled()
        assert cluster.open() == ["a", "b"]
        assert cluster.wrote("patch", PLUGINS, names.GANG_RECORD) == 1


async def test_a_decision_that_is_refused_is_tried_again(cluster: SmallCluster) -> None:
    add_node(cluster)
    cluster.fate = lambda _, kind, *__: ServerError(503) if kind == PLUGINS else None
    async with keeping(cluster):
        cluster.gather("g", *"ab", minimum=2)
        await settled(5)
        assert cluster.open() == []
        cluster.fate = lambda *_: None
        await settled(5)
        assert cluster.open() == ["a", "b"]


async def test_gangs_of_a_gang_group_are_opened_by_one_write_on_the_first_ones_home(cluster: SmallCluster) -> None:
    add_node(cluster)
    both = '["team/one","team/two"]'
    async with keeping(cluster):
        gang(cluster, "two", "c", "d", gangs=both)
        await settled()
        assert cluster.open() == []
        gang(cluster, "one", "a", gangs=both)
        await settled()
        assert cluster.open() == ["c", "d", "a"]
        first, copy = [parse(it["data"]["record"]) for it in cluster.all(CONFIGMAPS)]
        assert [(it.name, generation) for it, generation in first.gangs] == [("one", 1), ("two", 1)]
        assert copy.gangs == first.gangs
        assert (first.minimum, copy.minimum) == (1, 2)


async def test_a_one_sided_list_holds_up_nobody_else(cluster: SmallCluster) -> None:
    add_node(cluster)
    async with keeping(cluster) as keeper:
        gang(cluster, "one", "a", gangs='["team/one","team/two"]')
        gang(cluster, "two", "b")
        await settled()
        assert cluster.open() == ["b"]
        assert keeper.metric("waiting", reason=names.REASON_INVALID_GANG_GROUP) == 1


async def test_off_opens_whatever_has_gathered_and_asks_for_no_nodes(cluster: SmallCluster) -> None:
    async with keeping(cluster, Groups(capacity_check=Check.OFF)):
        cluster.gather("g", *"ab", minimum=2, spec=BIG)
        await settled()
        assert cluster.open() == ["a", "b"]
        found = cluster.record()
        assert found is not None
        assert (found.how, found.stage) == (How.OFF, Stage.OPEN)


async def test_what_is_bound_meanwhile_is_reckoned_once_before_anybody_is_held_up_for_it(
    cluster: SmallCluster,
) -> None:
    """As missing on its node, and no more as still to be placed."""
    add_node(cluster, cpu="6")
    cluster.gather("one", "a", "b", minimum=2, spec=BIG)
    async with keeping(cluster) as keeper:
        await settled()
        cluster.bind("a")
        await settled()
        cluster.gather("two", "c", minimum=1, spec=BIG)
        await settled()
        assert cluster.open() == ["a", "b", "c"]
        assert keeper.metric("opened_total", how="Fit") == 2
