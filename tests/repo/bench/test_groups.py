"""The benchmark of pod groups places them in all three ways and counts what that took. How fast is no business here."""

import json
from typing import cast

import pytest

from bench.groups import decision, placement, plan
from bench.groups.placement import PlacementRun
from bench.groups.plan import LoadShape, Placer
from bench.groups.request_counts import count_requests
from bench.report import ResultTable
from bench.scale import Scale
from jobset_gate import names
from tests.plane.audit import AuditedRequest

TINY = Scale(0.002)


def test_every_run_has_all_ways_and_none_has_a_better_place() -> None:
    ways = plan.order(6)
    runs = [ways[at : at + 3] for at in range(0, 18, 3)]
    assert len(set(map(tuple, runs))) == 6
    for three in (runs[:3], runs[3:]):
        assert all({run[place] for run in three} == set(Placer) for place in range(3))
    earlier = [run.index(Placer.FLOOR) < run.index(Placer.OURS) for run in runs]
    assert earlier == [True, False] * 3, "also where the number of runs is small"


def test_the_ways_differ_in_nothing_but_what_holds_the_pods_and_are_of_one_size() -> None:
    free, floor, ours = (plan.pod(way, 3, 1) for way in Placer)
    assert floor["spec"].pop("schedulingGates") == [{"name": plan.FLOOR_GATE}]
    assert free == floor
    assert len(json.dumps(free)) == len(json.dumps(ours))
    assert ours["metadata"]["labels"].pop(names.PLUGINS_NAME) == plan.group_name(3)
    assert free["metadata"]["labels"].pop(plan.UNKNOWN) == plan.group_name(3)
    assert free == ours


def test_a_tenth_has_the_same_groups_of_ten_and_the_same_ten_groups() -> None:
    assert plan.shapes(Scale()) == [LoadShape(1000, 10), LoadShape(10, 1000)]
    assert plan.shapes(Scale(0.1)) == [LoadShape(100, 10), LoadShape(10, 100)]


def request(verb: str, resource: str, name: str, code: int = 200) -> AuditedRequest:
    return AuditedRequest(verb, "", resource, "run", name, code, "/")


def test_writes_are_counted_by_pod_and_by_group() -> None:
    found = count_requests(
        [
            request("list", "pods", ""),
            request("patch", "podgroups", "g0"),
            request("patch", "podgroups", "g1", 409),
            request("patch", "podgroups", "g1"),
            request("patch", "pods", "g0-0"),
            request("patch", "pods", "g0-1"),
            request("patch", "pods", "g1-0"),
            request("patch", "pods", "g1-0"),
            request("patch", "podgroups", "g0"),
            request("patch", "podgroups/status", "g0"),
        ],
        pods=4,
        groups=["g0", "g1"],
    )
    assert (found.patches_per_pod, found.most_patches_of_a_pod) == (1.0, 2)
    assert (found.decisions_per_group, found.most_decisions_of_a_group) == (1.0, 1)
    assert found.writes_per_group == 2.0
    assert found.refused == 1


def test_the_ratio_is_that_of_the_geometric_means() -> None:
    def run(seconds: float) -> PlacementRun:
        return PlacementRun(created=1.0, bound=seconds, groups=[seconds], counted=count_requests([], 1, ["g0"]))

    table = placement.table(
        LoadShape(1, 1),
        {Placer.FREE: [run(1), run(2)], Placer.FLOOR: [run(2), run(8)], Placer.OURS: [run(4), run(4)]},
    )
    assert table.targets[0].value == pytest.approx(1.0)
    assert table.targets[0].limit == 1.1


class Timed:
    """A stage on which each run takes as long as is said."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = list(seconds)
        self.ways: list[Placer] = []

    async def measure(self, way: Placer, shape: LoadShape) -> PlacementRun:
        self.ways.append(way)
        seconds = self._seconds.pop(0)
        return PlacementRun(
            created=1.0, bound=seconds, groups=[seconds], counted=count_requests([], shape.size, ["g0"])
        )


async def test_the_first_run_on_a_fresh_api_server_is_not_counted() -> None:
    stage = Timed(100.0, *([2.0] * 18))
    table = await placement._shape(cast("placement.PlacementBenchmark", stage), LoadShape(1, 1), 6)
    assert stage.ways == [Placer.OURS, *plan.order(6)]
    assert {way: len(runs) for way, runs in table.samples.items()} == {f"{way} bound": 6 for way in Placer}
    assert table.targets[0].value == pytest.approx(1.0)
    assert any("the true one within 1.000 and 1.000 (95 %)" in note for note in table.notes)


def check(table: ResultTable) -> None:
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert json.loads(json.dumps(table.plain()))["rows"]


async def test_a_decision_is_timed_for_groups_alike_and_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "GROUPS", 20)
    monkeypatch.setattr(plan, "NODES", 20)
    (table,) = await decision.run(TINY)
    check(table)
    assert [row[1] for row in table.rows] == [20] * 6
    opened = [row[2] for row in table.rows]
    assert all(isinstance(some, int) and some > 0 for some in opened[:3]), "those that have room"
    assert opened[3:] == [0, 0, 0]


@pytest.mark.real
async def test_groups_are_placed_in_all_three_ways_with_one_patch_a_pod_and_one_decision_a_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "shapes", lambda _: [LoadShape(2, 3)])
    (table,) = await placement.run(TINY, runs=1)
    check(table)
    assert [row[0] for row in table.rows] == list(plan.TITLES.values())
    free, floor, ours = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert free["PATCHes"] is None
    assert (floor["PATCHes"], floor["decided"]) == (1, 0)
    assert (ours["PATCHes"], ours["decided"]) == (1, 1)
    assert [target.value for target in table.targets[1:]] == [1, 1]
