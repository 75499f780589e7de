"""Reserved room, and the one unproven place of a domain, stay reserved until the outcome of a write is known (G3)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from controllers.podgroups import scheduler
from jobset_gate import names
from jobset_gate.kube.errors import Invalid, KubeError, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from jobset_gate.podgroups.model import Flavor
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
from tests.fakes.podgroups.objects import config_map, key
from tests.fakes.podgroups.sources import ALIBABA, ALIBABA_MINIMUM

BIG = asking("2")


# --- Pods without a record -------------------------------------------------------------------------------------------


async def test_a_gang_of_several_that_has_no_pod_left_still_has_its_room(cluster: InMemoryCluster) -> None:
    """Pods may replace them at any time: the admission holds for all gangs until all are gone."""
    gang = partial(cluster.create_gang, partners="one two", minimum=1, meta=OWNED, spec=BIG)
    add_node(cluster, cpu="4")
    async with running_controller(cluster):
        gang("one", "a")
        gang("two", "b")
        await run_for()
        assert cluster.ungated_pods() == ["a", "b"]
        cluster.bind("b")
        cluster.remove(PODS, "a")
        await run_for()
        cluster.create_group("other", "x", minimum=1, spec=BIG)
        await run_for(10)
        assert cluster.ungated_pods() == ["b"]
        gang("one", "a2")
        await run_for(5)
        assert sorted(cluster.ungated_pods()) == ["a2", "b"]


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
        for _ in range(30):  # somewhere in the midst of the pass
            await asyncio.sleep(0)
        await asyncio.sleep(scheduler.DEBOUNCE_SECONDS)
        for _ in range(5):
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
    cluster.put(
        CONFIGMAPS, config_map(of, labels={names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE}) | {"data": {}}
    )
    async with running_controller(cluster, PROBE) as running:
        cluster.create_group("stuck", "s", of=of, labels={ALIBABA: "stuck", ALIBABA_MINIMUM: "1"})
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
