"""What the benchmarks compute and print; `.ci/run` runs a tenth of each."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench import __main__ as program
from bench import decode, intervals, report
from bench.groups import placement, plan
from bench.groups.placement import PlacementRun
from bench.groups.plan import LoadShape, Placer
from bench.groups.request_counts import count_requests
from bench.intervals import Interval
from bench.report import ResultTable, ResultTarget
from bench.scale import Scale
from jobset_gate import names
from jobset_gate.barrier import decode as read
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import BarrierStage, PendingReason
from jobset_gate.runtime.decoder import WatchEvent
from tests.plane.audit import AuditedRequest

TINY = Scale(0.002)


def numbers(table: ResultTable) -> list[float]:
    """All numbers of a table, which all are of something that was measured or counted."""
    return [cell for row in table.rows for cell in row if isinstance(cell, int | float)]


def check(table: ResultTable) -> None:
    """What is true of every table."""
    assert table.rows
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert all(isinstance(row[0], str) for row in table.rows)
    assert all(number >= 0 for number in numbers(table))
    assert json.loads(json.dumps(table.plain()))["name"] == table.name
    for target in table.targets:
        assert target.value > 0
        assert target.limit > 0


async def test_decoding_is_compared_with_msgspec_and_kubernetes_asyncio_at_both_sizes() -> None:
    tables = await decode.run(TINY)
    assert len(tables) == 2
    for table in tables:
        check(table)
        assert [target.limit for target in table.targets] == [1.5]
        ways = " ".join(str(row[0]) for row in table.rows)
        assert "msgspec" in ways
        assert "kubernetes-asyncio" in ways


def test_the_lines_hold_pods_of_all_steps_as_the_rules_read_them() -> None:
    """A benchmark that decodes nothing would be fast."""
    decoder = msgspec.json.Decoder(WatchEvent[wire.Pod])
    lines = decode.corpus("any", 100, lean=False).lines
    pods = [read.pod(decoder.decode(line).object) for line in lines]
    assert {pod.stage for pod in pods} == {BarrierStage.WAITING, BarrierStage.RUNNING, BarrierStage.PASSED}
    assert {pod.pending.reason for pod in pods if pod.pending} == {PendingReason.UNSCHEDULED, PendingReason.STARTING}
    for pod, line in zip(pods, lines, strict=True):
        stored = json.loads(line)["object"]
        meta, labels = stored["metadata"], stored["metadata"]["labels"]
        assert (pod.namespace, pod.name, pod.uid) == (meta["namespace"], meta["name"], meta["uid"])
        assert (pod.gang, pod.jobset_uid) == (labels[names.JS_NAME], labels[names.JS_UID])
        assert (pod.job_uid, pod.replicated_job) == (meta["ownerReferences"][0]["uid"], "workers")
        assert (str(pod.job_index), str(pod.index)) == (labels[names.JS_JOB_INDEX], labels[names.JOB_COMPLETION_INDEX])
        assert (pod.attempt, pod.epoch, pod.phase, pod.deleting) == (0, 0, stored["status"]["phase"], False)
        assert pod.bound == ("nodeName" in stored["spec"])
        assert pod.started == (pod.stage is not BarrierStage.WAITING) == (pod.created is None)
        assert (pod.main_since is not None) == (pod.stage is BarrierStage.PASSED)
    assert len({(pod.job_index, pod.index) for pod in pods}) == 100


def test_the_interval_of_ten_runs_leaves_out_one_at_each_end() -> None:
    assert intervals.of([5, 1, 9, 3, 7, 10, 2, 8, 6, 4]) == Interval(5.5, 2, 9, 10)
    assert intervals.coverage(10, 2) == pytest.approx(1 - 22 / 1024)


# --- Pod groups ------------------------------------------------------------------------------------------------------


def test_the_ways_differ_in_nothing_but_what_holds_the_pods_and_are_of_one_size() -> None:
    free, floor, ours = (plan.pod(way, 3, 1) for way in Placer)
    assert floor["spec"].pop("schedulingGates") == [{"name": plan.FLOOR_GATE}]
    assert free == floor
    assert len(json.dumps(free)) == len(json.dumps(ours))
    assert ours["metadata"]["labels"].pop(names.PLUGINS_NAME) == plan.group_name(3)
    assert free["metadata"]["labels"].pop(plan.UNKNOWN) == plan.group_name(3)
    assert free == ours


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


# --- The program around them -----------------------------------------------------------------------------------------


@pytest.fixture
def table() -> ResultTable:
    return ResultTable(
        "one", "One thing", ["way", "us"], [["baseline", 2.0], ["ours", 3.0]], [ResultTarget("ratio", 1.5, 1.5)]
    )


@pytest.fixture
def said(table: ResultTable, capsys: pytest.CaptureFixture[str]) -> Callable[[ResultTable], str]:
    def say(changed: ResultTable = table) -> str:
        report.show(changed, Console(width=100))
        return capsys.readouterr().out

    return say


def test_a_table_ends_with_its_target_and_whether_it_was_met(
    table: ResultTable, said: Callable[[ResultTable], str]
) -> None:
    text = said(table)
    assert text.index("baseline") < text.index("ours") < text.index("target: ratio: 1.5 (limit 1.5): met")
    missed = replace(table, targets=[ResultTarget("ratio", 1.6, 1.5)])
    assert "target: ratio: 1.6 (limit 1.5): NOT MET" in said(missed)


def test_the_program_prints_and_writes_what_was_chosen(
    table: ResultTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And ends well although a target was missed: a busy machine is no error."""
    missed = replace(table, targets=[ResultTarget("ratio", 1.6, 1.5)])

    async def benchmark(scale: Scale) -> list[ResultTable]:
        assert scale == Scale(0.1)
        return [missed]

    monkeypatch.setattr(program, "benchmarks", lambda **_: {"one": benchmark, "other": NotImplemented})
    assert program.main(["--only", "one", "--scale", "0.1", "--out", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    assert "0 of 1 targets met" in out
    (file,) = (tmp_path / "new").iterdir()
    written = json.loads(file.read_text())
    assert written["scale"] == 0.1
    assert written["machine"]["cores"] >= 1
    assert [one["name"] for one in written["tables"]] == ["one"]
    assert written["tables"][0]["targets"][0]["met"] is False
