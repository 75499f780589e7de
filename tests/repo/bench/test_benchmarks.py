"""Every benchmark runs and tells what it is to tell. How fast is no business of a test."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench import __main__ as program
from bench import abuse, crowd, decode, growth, latency, report, stream, webhook
from bench.report import ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import percentile
from jobset_gate import names
from jobset_gate.barrier import decode as read
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import BarrierStage, PendingReason
from jobset_gate.runtime.decoder import WatchEvent
from tests.plane.planes import Real, fresh_name

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


@pytest.mark.parametrize(("lean", "least", "most"), [(True, 8, 10), (False, 14, 17)])
def test_the_lines_are_all_different_and_of_the_size_that_is_told(lean: bool, least: float, most: float) -> None:
    lines = decode.corpus("any", 40, lean=lean).lines
    assert len(set(lines)) == 40
    assert all(least * 1024 <= len(line) <= most * 1024 for line in lines)


def test_the_lines_hold_pods_of_all_steps_as_the_rules_read_them() -> None:
    """A benchmark that decodes nothing would be fast."""
    decoder = msgspec.json.Decoder(WatchEvent[wire.Pod])
    lines = decode.corpus("any", 100, lean=False).lines
    pods = [read.pod(decoder.decode(line).object) for line in lines]
    assert {pod.stage for pod in pods} == {BarrierStage.WAITING, BarrierStage.RUNNING, BarrierStage.PASSED}
    assert {pod.pending.reason for pod in pods if pod.pending} == {PendingReason.UNSCHEDULED, PendingReason.STARTING}
    for pod, line in zip(pods, lines, strict=True):
        told = json.loads(line)["object"]
        meta, labels = told["metadata"], told["metadata"]["labels"]
        assert (pod.namespace, pod.name, pod.uid) == (meta["namespace"], meta["name"], meta["uid"])
        assert (pod.gang, pod.jobset_uid) == (labels[names.JS_NAME], labels[names.JS_UID])
        assert (pod.job_uid, pod.replicated_job) == (meta["ownerReferences"][0]["uid"], "workers")
        assert (str(pod.job_index), str(pod.index)) == (labels[names.JS_JOB_INDEX], labels[names.JOB_COMPLETION_INDEX])
        assert (pod.attempt, pod.epoch, pod.phase, pod.deleting) == (0, 0, told["status"]["phase"], False)
        assert pod.bound == ("nodeName" in told["spec"])
        assert pod.started == (pod.stage is not BarrierStage.WAITING) == (pod.created is None)
        assert (pod.main_since is not None) == (pod.stage is BarrierStage.PASSED)
    assert len({(pod.job_index, pod.index) for pod in pods}) == 100


async def test_decisions_are_timed_on_the_embedded_api_server_beside_bare_writes() -> None:
    (table,) = await latency.run(TINY, real=False)
    check(table)
    assert [row[0] for row in table.rows] == ["embedded"]
    assert len(table.samples["embedded decisions"]) == 2
    assert len(table.samples["embedded bare"]) == 2 * latency.BARE_WRITES
    assert len(table.targets) == 1


@pytest.mark.real
async def test_decisions_are_timed_on_the_real_api_server_with_the_same_code(real_plane: Real) -> None:
    namespace = fresh_name()
    try:
        async with latency.on_real(real_plane, namespace) as ground:
            found = await latency.measure(ground, TINY)
    finally:
        await real_plane.drop_namespace(namespace)
    check(latency.table({ground.name: found}, 20))
    assert len(found.decisions) == 2
    assert all(0 < seconds < 60 for seconds in found.decisions)
    assert len(found.bare) == 2 * latency.BARE_WRITES


async def test_a_crowd_is_measured_in_memory_processor_time_and_waiting() -> None:
    memory, cpu, loop = await crowd.run(TINY)
    for table in (memory, cpu, loop):
        check(table)
    assert [target.limit for target in (*memory.targets, *loop.targets)] == [200.0, 50.0, 50.0]
    pods = 2 * crowd.PODS_PER_GANG
    assert [row[1] for row in cpu.rows][:2] == [pods, pods - 2]
    last = dict(zip(cpu.columns, cpu.rows[-1], strict=True))
    assert last["pod events"] == 2 + 2 * pods
    assert isinstance(last["writes"], int)
    assert last["writes"] >= pods


async def test_the_webhook_is_compared_with_a_handler_that_does_nothing() -> None:
    one_by_one, saturated = await webhook.run(TINY)
    for table in (one_by_one, saturated):
        check(table)
        assert [str(row[0]).split()[0] for row in table.rows] == ["nothing,", "mutate", "mutate", "validate"]
    assert len(one_by_one.targets) == 2


async def test_growth_is_told_for_three_sizes() -> None:
    (table,) = await growth.run(TINY)
    check(table)
    assert len(table.rows) == 3
    pods, released = table.columns.index("pods"), table.columns.index("writes after it")
    for row in table.rows:
        size = int(str(row[pods]).replace(",", ""))
        written = row[released]
        assert isinstance(written, int)
        assert written >= size, "every pod is patched once"
    assert len(table.targets) == 6


async def test_the_gate_stream_is_compared_with_a_bare_server() -> None:
    (table,) = await stream.run(TINY)
    assert [row[0] for row in table.rows] == [stream.BARE, stream.OURS]
    assert [target.limit for target in table.targets] == [200.0, 1.0, 20.0]
    (told,) = table.samples[f"{stream.OURS} last answer"]
    assert 0 < told < 60
    assert json.loads(json.dumps(table.plain()))["name"] == stream.NAME


async def test_each_attack_is_told_beside_a_quiet_program_and_strangers_are_served_meanwhile() -> None:
    (table,) = await abuse.run(TINY)
    attacks = [f"controller: {name}" for name in abuse.CONTROLLER] + [f"webhook: {name}" for name in abuse.WEBHOOK]
    assert [row[0] for row in table.rows] == attacks
    assert {len(row) for row in table.rows} == {len(table.columns)}
    failed = table.columns.index("failed")
    assert {row[failed] for row in table.rows} == {0}
    assert all(len(table.samples[attack]) == 2 for attack in attacks)
    assert [target.limit for target in table.targets].count(abuse.MOST_MS) == 1
    assert json.loads(json.dumps(table.plain()))["name"] == abuse.NAME


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


@pytest.mark.parametrize(
    ("cell", "text"),
    [(1234, "1,234"), (1234.5, "1,234"), (12.345, "12.3"), (0.01234, "0.0123"), ("x", "x"), (None, "-")],
)
def test_numbers_are_shown_with_the_digits_that_count(cell: report.Cell, text: str) -> None:
    assert report.shown(cell) == text


@pytest.mark.parametrize(("percent", "value"), [(50, 5), (99, 10), (100, 10), (1, 1)])
def test_a_percentile_is_one_of_the_values(percent: float, value: float) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == value


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


@pytest.mark.parametrize("arguments", [["--scale", "0"], ["--only", "nothing"]])
def test_the_program_refuses_what_makes_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m bench" in capsys.readouterr().err
