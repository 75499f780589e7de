"""The admission cycle: in order, never the same room twice, and a successor finds what was admitted (G3)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from controllers.podgroups import scheduler
from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.informers import CONSUMING_PODS
from controllers.podgroups.pending import PendingQueue
from jobset_gate import names
from jobset_gate.kube.errors import Invalid, KubeError, ServerError, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS, NODES, PODS
from jobset_gate.podgroups.cycle import SchedulingCycle
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.model import Flavor, group_label
from jobset_gate.podgroups.record import AdmissionMode
from tests.fakes.podgroups.cluster import (
    OWNED,
    PLUGINS,
    PROBE,
    InMemoryCluster,
    add_node,
    asking,
    run_for,
    running_controller,
)
from tests.fakes.podgroups.filled_cache import FilledCache
from tests.fakes.podgroups.objects import config_map, key, node, pod
from tests.fakes.podgroups.sources import Json, alibaba

BIG = asking("2")


async def test_the_record_is_written_before_the_first_gate_is_removed(cluster: InMemoryCluster) -> None:
    """One write for the group and one for each pod; the last says that the group is satisfied."""
    add_node(cluster)
    async with running_controller(cluster):
        cluster.create_group("g", *"ab", minimum=2)
        await run_for()
        cluster.bind(*"ab")
        await run_for(60)
    kinds = [kind for _, kind, _, body in cluster.writes if names.POD_GROUP_RECORD in str(body) or kind == PODS]
    assert kinds == [PLUGINS, PODS, PODS, PLUGINS]


async def test_two_groups_are_never_promised_the_same_room(cluster: InMemoryCluster) -> None:
    """Both have gathered before the first look, and no pod is bound meanwhile."""
    add_node(cluster, cpu="4")
    cluster.create_group("one", "a", "b", minimum=2, spec=BIG)
    cluster.create_group("two", "c", "d", minimum=2, spec=BIG)
    async with running_controller(cluster) as running:
        await run_for(30)
        assert cluster.ungated_pods() == ["a", "b"]
        cluster.bind("a", "b")
        await run_for(30)
        assert cluster.ungated_pods() == ["a", "b"], "the room is taken for good"
        assert running.metric("waiting", reason=names.REASON_WAITING_FOR_CAPACITY) == 1
        add_node(cluster, "m", cpu="4")
        await run_for()
        assert cluster.ungated_pods() == ["a", "b", "c", "d"]


async def test_one_without_proof_is_tried_at_a_time_also_when_its_pods_are_replaced(cluster: InMemoryCluster) -> None:
    add_node(cluster, cpu="2")
    cluster.create_group("one", "a", "b", minimum=2, spec=BIG, meta=OWNED)
    async with running_controller(cluster, PROBE):
        await run_for()
        cluster.create_group("two", "c", "d", minimum=2, spec=BIG, meta=OWNED)
        cluster.bind("a")
        for name, successor in ("ax", "by"):
            cluster.remove(PODS, name)
            await run_for(5)
            cluster.create_group("one", successor, spec=BIG, meta=OWNED)
            await run_for(5)
        assert cluster.ungated_pods() == ["x", "y"]
        await run_for(60)
        assert cluster.ungated_pods() == ["c", "d"], "once the first is taken back"


async def test_room_is_reserved_from_the_moment_of_the_choice(cluster: InMemoryCluster) -> None:
    """A group of higher priority comes for the same room while the record is being written."""
    add_node(cluster, cpu="4")
    written, patch = asyncio.Event(), cluster.patch

    async def slow(resource: Any, *args: Any, **more: Any) -> Any:
        if resource == PLUGINS:
            await written.wait()
        return await patch(resource, *args, **more)

    cluster.patch = slow  # type: ignore[method-assign]
    cluster.create_group("one", "a", "b", minimum=2, spec=BIG)
    async with running_controller(cluster):
        await run_for(0.2)
        cluster.create_group("two", "c", "d", minimum=2, spec=BIG | {"priority": 9})
        await run_for(30)
        assert cluster.ungated_pods() == []
        written.set()
        await run_for(10)
        assert cluster.ungated_pods() == ["a", "b"]


async def test_a_pod_that_is_bound_makes_no_room_before_it_is_missing_in_the_nodes(cluster: InMemoryCluster) -> None:
    """The two watches of pods lag each other: neither order may promise its room again."""
    add_node(cluster, cpu="4")
    cluster.create_group("one", "a", minimum=1, spec=BIG)
    async with running_controller(cluster) as running:
        await run_for()
        running.paused_selector = CONSUMING_PODS
        cluster.bind("a")
        cluster.create_group("two", "c", "d", minimum=2, spec=BIG)
        await run_for(30)
        assert cluster.ungated_pods() == ["a"]


async def test_a_new_leader_reads_what_was_decided_before_it_decides(cluster: InMemoryCluster) -> None:
    """Its informers lag: they have not delivered the record of the group that has the only room."""
    add_node(cluster, cpu="4")
    cluster.create_group("one", "a", "b", minimum=2, spec=BIG)
    old = cluster.all(PLUGINS)
    async with running_controller(cluster):
        cluster.fault = lambda _, kind, *__: ServerError(500) if kind == PODS else None
        await run_for()
        assert cluster.record("one") is not None
    cluster.fault = lambda *_: None
    cluster.create_group("two", "c", "d", minimum=2, spec=BIG | {"priority": 9})
    old = [*old, *(it for it in cluster.all(PLUGINS) if it["metadata"]["name"] == "two")]
    async with running_controller(cluster, stale=old):
        await run_for(30)
        assert cluster.record("two") is None, "one place, one group"
        assert cluster.ungated_pods() == ["a", "b"]


@pytest.mark.parametrize(
    "where",
    [
        (GroupEvaluator, "evaluate"),
        (SchedulingCycle, "decide_candidate"),
        (PendingQueue, "candidate"),
        (PodGroupCache, "snapshot"),
    ],
    ids=str,
)
async def test_an_exception_about_one_group_stops_no_other(
    cluster: InMemoryCluster, monkeypatch: pytest.MonkeyPatch, where: tuple[type, str]
) -> None:
    add_node(cluster)
    kept = getattr(*where)
    mended: list[bool] = []

    def odd(self: Any, what: Any, *args: Any) -> Any:
        if "bad" in str(what) and not mended:
            raise ValueError("odd")
        return kept(self, what, *args)

    monkeypatch.setattr(*where, odd)
    cluster.create_group("bad", "a", minimum=1)
    cluster.create_group("good", "b", minimum=1)
    async with running_controller(cluster):
        await run_for(10)
        assert cluster.ungated_pods() == ["b"]
        cluster.create_group("other", "c", minimum=1)
        await run_for(20)
        assert cluster.ungated_pods() == ["b", "c"]
        if where[0] in (GroupEvaluator, SchedulingCycle):
            notes = cluster.stored(PLUGINS, "team", "bad")["metadata"]["annotations"]
            assert notes[names.POD_GROUP_STATE].endswith("ValueError('odd')")
        mended.append(True)
        await run_for(100)
        assert cluster.ungated_pods() == ["a", "b", "c"]


async def test_fit_opens_nothing_that_does_not_fit(cluster: InMemoryCluster) -> None:
    add_node(cluster, cpu="1")
    cluster.create_group("one", "a", minimum=1, spec=BIG)
    async with running_controller(cluster) as running:
        await run_for(600)
        assert cluster.ungated_pods() == []
        assert running.metric("longest_wait_seconds") >= 600
        cluster.patch_object(NODES, "n", {"status": {"allocatable": {"cpu": "2"}}}, "")
        await run_for()
        assert cluster.ungated_pods() == ["a"]


# --- Nodes that the anti-affinity of bound pods closes ----------------------------------------------------------------

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def loner(name: str = "loner", on: str = "n", topology: str = HOST, namespace: str = "team", **more: Any) -> Json:
    """A pod of nobody's group that keeps pods of the gang away."""
    term = {"labelSelector": {"matchLabels": {"app": "gang"}}, "topologyKey": topology, **more}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    return pod(name, labels={}, held="", gates=(), node=on, spec=spec, namespace=namespace)


MARKS = frozenset({("team", (("app", "gang"), ("job", "x")))})


def test_a_pod_keeps_others_from_all_nodes_of_its_topology() -> None:
    made, body = FilledCache(), loner(on="a")
    made.nodes(*(node(it, labels={ZONE: zone}, cpu="4") for it, zone in (("a", "1"), ("b", "1"), ("c", "2"))))
    excluded = made.cache.nodes.excluded_nodes
    assert excluded(MARKS) == frozenset()
    made.pods(body)
    assert excluded(MARKS) == {"a"}
    assert excluded(frozenset({("team", (("app", "other"),)), ("elsewhere", (("app", "gang"),))})) == frozenset()
    made.pods(loner("wide", on="a", topology=ZONE, namespace="far", namespaceSelector={}))
    made.remove(PODS, body)
    assert excluded(MARKS) == {"a", "b"}


async def test_a_group_that_others_keep_away_is_not_opened_as_if_it_had_room(cluster: InMemoryCluster) -> None:
    """It would be opened, bound nowhere, and taken back again and again, its room kept from all others meanwhile."""
    add_node(cluster, cpu="4")
    cluster.put(PODS, loner())
    async with running_controller(cluster) as running:
        app = OWNED | {"labels": pod(of=key("gang"))["metadata"]["labels"] | {"app": "gang"}}
        cluster.create_group("gang", "a", "b", minimum=2, meta=app, spec=asking("1"))
        await run_for(5)
        assert cluster.ungated_pods() == ["loner"]
        why = running.controllers.pending.why_pending(key("gang"))
        assert why is not None
        assert why.message == "needs 2 cpu, 0 free; from 1 node others keep it away by their anti-affinity"
        cluster.create_group("others", "x", "y", "z", minimum=3, spec=asking("1"))
        await run_for(5)
        assert cluster.ungated_pods() == ["loner", "x", "y", "z"], "its room is nobody's"
        cluster.bind("x", "y", "z")
        cluster.put(NODES, node("m", cpu="4", memory="9Gi"))
        await run_for(5)
        assert cluster.recorded("gang").how is AdmissionMode.FIT, "there it is proven"


# --- Pods without a record -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lost", "left"), [("one", "two"), ("two", "one")])
async def test_a_gang_of_several_that_has_no_pod_left_still_has_its_room(
    cluster: InMemoryCluster, lost: str, left: str
) -> None:
    """Pods may replace them at any time: the admission holds for all gangs until all are gone."""
    gang = partial(cluster.create_gang, partners="one two", minimum=1, meta=OWNED, spec=BIG)
    add_node(cluster, cpu="4")
    async with running_controller(cluster):
        for name in ("one", "two"):
            gang(name, f"{name}-0")
        await run_for()
        assert cluster.ungated_pods() == ["one-0", "two-0"]
        cluster.remove(PODS, f"{lost}-0")
        if lost == "one":
            cluster.bind(f"{left}-0")
        else:  # before the record was copied to an object of its own
            copy = names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key("two", Flavor.KOORDINATOR))
            cluster.remove(CONFIGMAPS, copy)
        cluster.create_group("other", "x", minimum=1, spec=BIG)
        await run_for(10)
        assert cluster.ungated_pods() == [f"{left}-0"]
        gang(lost, f"{lost}-1")
        await run_for(5)
        assert sorted(cluster.ungated_pods()) == sorted([f"{left}-0", f"{lost}-1"])


# --- During an admission cycle ----------------------------------------------------------------------------------------


async def test_nodes_and_reservations_are_read_in_one_moment(
    cluster: InMemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that is bound between two slices would be in neither, if the nodes were older."""
    monkeypatch.setattr(scheduler, "SLICE_SECONDS", -1.0)  # others have their turn after every group
    add_node(cluster, cpu="4")
    async with running_controller(cluster):
        cluster.create_group("one", "a", "b", minimum=2, spec=BIG)
        await run_for()
        assert cluster.ungated_pods() == ["a", "b"]
        for number in range(20):
            cluster.create_group(f"few{number}", f"few{number}", minimum=2)
        cluster.create_group("two", "c", "d", minimum=2, spec=BIG)
        await asyncio.sleep(scheduler.DEBOUNCE_SECONDS)
        for _ in range(5):  # somewhere in the midst of the pass
            await asyncio.sleep(0)
        cluster.bind("a", "b")
        await run_for(5)
        assert cluster.ungated_pods() == ["a", "b"]


# --- Admissions with an unknown outcome ------------------------------------------------------------------------------


async def test_a_decision_in_doubt_keeps_its_promise_until_the_api_can_be_read(cluster: InMemoryCluster) -> None:
    down = False
    get, tell = cluster.get, cluster.on_change
    cluster.create_group("one", "a", minimum=1)

    async def read(resource: Any, name: str, *where: Any, **more: Any) -> Any:
        if down and resource == PLUGINS and name == "one":
            raise Unreachable("down")
        return await get(resource, name, *where, **more)

    def fate(_: str, kind: Any, name: str, body: Any) -> KubeError | str | None:
        nonlocal down, tell
        if kind != PLUGINS or name != "one":
            return None
        if down:
            return Unreachable("down")
        down, tell = True, cluster.on_change
        cluster.on_change = lambda resource, old, new: None if resource == PLUGINS else tell(resource, old, new)
        return "lost"  # and no watch tells of it either

    cluster.get, cluster.fault = read, fate  # type: ignore[method-assign]
    async with running_controller(cluster, PROBE):
        await run_for(0.3)
        assert down
        cluster.create_group("two", "b", minimum=1, spec={"priority": 9})
        tell(PLUGINS, None, cluster.stored(PLUGINS, "team", "two"))
        await run_for(30)
        assert cluster.record("two") is None, "perhaps the first one was opened, and so it was"
        down = False
        cluster.on_change = tell
        cluster.fault = lambda *_: None
        await run_for(10)
        assert cluster.ungated_pods() == ["a"]


async def test_an_admission_that_cannot_be_recorded_stops_no_other_and_backs_off(cluster: InMemoryCluster) -> None:
    """A ConfigMap that a user has made immutable."""
    of, tries = key("stuck", Flavor.ALIBABA), 0

    def fate(verb: str, kind: Any, _: str, body: Any) -> KubeError | None:
        nonlocal tries
        if (verb, kind) != ("patch", CONFIGMAPS):
            return None
        tries += "data" in body
        return Invalid(422, "Invalid", "field is immutable", details={"causes": [{"field": "data"}]})

    cluster.fault = fate
    labels = {names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE}
    cluster.put(CONFIGMAPS, config_map(of, labels=labels) | {"data": {}})
    async with running_controller(cluster, PROBE) as running:
        cluster.create_group("stuck", "s", of=of, labels=alibaba("stuck", "1"))
        await run_for(5)
        cluster.create_group("g", "a", minimum=1)
        await run_for(5)
        assert cluster.ungated_pods() == ["a"]
        add_node(cluster)
        cluster.bind("a")
        await run_for(50)
        assert 4 <= tries <= 8
        assert running.metric("waiting", reason=names.REASON_NOT_RECORDED) == 1
        cluster.fault = lambda *_: None
        await run_for(70)
        assert cluster.ungated_pods() == ["s", "a"]
