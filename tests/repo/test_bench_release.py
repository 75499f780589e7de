"""What `make bench-release` computes and writes, from recorded lines and numbers; that needs no cluster."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.release import __main__ as program
from bench.release import (
    apiwrites,
    deployments,
    floor,
    gang,
    goals,
    page,
    picture,
    results,
    timestamps,
)
from bench.release.gang import Rendering
from bench.release.methods import ANNOTATION, FLOOR, KEP, METHODS, STREAM, ReleaseMethod
from bench.release.plan import MeasurementPlan
from bench.release.results import FailedRun, ReleaseRun, Results
from bench.release.timestamps import IncompleteLogs
from e2e import commands

RENDERING = Rendering("busybox:1", "http://gate.somewhere.svc:8082")
ANYWHERE = "0.0.0.0"  # noqa: S104 - to find it in arguments

LOGS = """\
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:44.000000001Z waiting for the gang to start
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:46.5Z released
[pod/gang-workers-0-0-a/main] 2026-11-21T13:19:47.000000003Z started
[pod/gang-workers-0-1-b/group-scheduling-init] 2026-11-21T14:19:45.000000002+01:00 waiting for the gang to start
[pod/gang-workers-0-1-b/main] 2026-11-21T13:19:46.750000002Z started
failed to say more
"""


def run(way: ReleaseMethod = STREAM, number: int = 1, pods: int = 20, last: float = 3.0, **writes: int) -> ReleaseRun:
    found = {name.replace("_", " "): count for name, count in writes.items()}
    mains = tuple(last * part / pods for part in range(1, pods + 1))
    return ReleaseRun(
        number=number, way=way.key, pods=pods, gathering=2.0, released=last / 40, mains=mains, writes=found
    )


def measured(runs: list[ReleaseRun], **more: Any) -> Results:
    machine = {"time": "2026-11-21T10:00:00+00:00", "cores": 2, "processor": "One", "system": "Linux", "load": 0.1}
    where = {"kubelet": "v1", "runtime": "containerd", "system": "Debian", "workers": 2}
    return Results(machine=machine, cluster=where, command="make bench-release", seed=7, runs=runs, **more)


@pytest.fixture
def ten() -> Results:
    """Ten runs of all ways with 20 pods: the KEP is twenty times slower, patches by a half, the stream by 0.1 s."""
    lasts = {KEP: 80.0, ANNOTATION: 6.0, STREAM: 4.1, FLOOR: 4.0}
    return measured([run(way, number, last=last + number / 10) for way, last in lasts.items() for number in range(10)])


# --- Moments ---------------------------------------------------------------------------------------------------------


def test_moments_are_first_lines_to_the_nanosecond_whatever_the_time_zone() -> None:
    found = timestamps.of_gang(timestamps.lines_of(LOGS), barrier="group-scheduling-init", main="main", pods=2)
    assert found.starts[1] - found.starts[0] == 1_000_000_001
    assert [main - found.starts[1] for main in found.mains] == [1_750_000_000, 2_000_000_001]
    assert found.after == (1.75, 2.000000001)
    assert found.gathering == 1.000000001
    assert found.released == 1.499999998


@pytest.mark.parametrize("gone", ["gang-workers-0-1-b/main", "gang-workers-0-0-a/group-scheduling-init"])
def test_a_gang_of_which_lines_are_missing_is_no_measurement(gone: str) -> None:
    text = "\n".join(line for line in LOGS.splitlines() if gone not in line)
    with pytest.raises(IncompleteLogs, match="of 2 have written"):
        timestamps.of_gang(timestamps.lines_of(text), barrier="group-scheduling-init", main="main", pods=2)


# --- Pairs, targets --------------------------------------------------------------------------------------------------


def test_ways_are_compared_run_by_run() -> None:
    """Medians of the ways apart would say 0: what slows down a whole run must not count."""
    slow = [run(STREAM, number, last=float(number)) for number in (1, 2, 3)]
    quick = [run(FLOOR, number, last=number - 0.25) for number in (1, 2, 3)]
    (found,) = goals.reached(measured([*slow, *quick, run(STREAM, 4, last=99)]))
    assert (found.goal.one, found.goal.other, found.found.runs) == (STREAM, FLOOR, 3)
    assert found.found.median == pytest.approx(0.25)
    assert found.verdict == "met, too few runs to be sure"


def test_what_was_to_be_reached_is_met_or_missed(ten: Results) -> None:
    verdicts = {one.goal.text: one.verdict for one in goals.reached(ten)}
    assert verdicts == {
        "(c)'s last after (d)'s": "met",
        "(b)'s last to (d)'s": "met",
        "(a)'s last to (b)'s": "MISSED",
        "(a)'s last to (c)'s": "met",
    }


# --- API writes and costs --------------------------------------------------------------------------------------------


def metrics(**counts: int) -> str:
    line = 'apiserver_request_total{{code="200",component="apiserver",dry_run="{3}",group="",resource="{1}",'
    line += 'scope="resource",subresource="{2}",verb="{0}",version="v1"}} {4}'
    kinds = {
        "patched": ("PATCH", "pods", "", ""),
        "status": ("PATCH", "pods", "status", ""),
        "dry": ("PATCH", "pods", "", "All"),
        "leases": ("PUT", "leases", "", ""),
        "read": ("GET", "pods", "", ""),
        "posted": ("POST", "configmaps", "", ""),
    }
    lines = [line.format(*kinds[kind], count) for kind, count in counts.items()]
    return "\n".join(["# TYPE apiserver_request_total counter", *lines, 'other_total{verb="PATCH"} 9', ""])


def test_writes_are_what_the_metrics_rose_by() -> None:
    before = apiwrites.written(metrics(patched=5, status=100))
    after = apiwrites.written(metrics(patched=25, status=180, dry=7, leases=50, read=1000, posted=1))
    assert apiwrites.between(before, after) == {"PATCH pods": 20, "PATCH pods/status": 80, "POST configmaps": 1}


# --- Gangs and controllers -------------------------------------------------------------------------------------------


def rendered(way: ReleaseMethod, **more: Any) -> Mapping[str, Any]:
    return gang.of(way, RENDERING, name="gang", pods=3, node="one", token="t" * 20, **more)


def pod_spec(jobset: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return spec


def plain(jobset: Mapping[str, Any], way: ReleaseMethod) -> str:
    return json.dumps(jobset, sort_keys=True).replace(way.namespace, "NAMESPACE")


def test_gangs_differ_in_nothing_but_how_they_learn_the_verdict() -> None:
    kep, stream, low = (rendered(way) for way in (KEP, STREAM, FLOOR))
    assert plain(kep, KEP) == plain(rendered(ANNOTATION), ANNOTATION)
    held = [{one["name"] for one in pod_spec(jobset)["initContainers"][0]["env"]} for jobset in (kep, low)]
    assert held[1] - held[0] == {floor.POLL_INTERVAL, floor.PODS}
    assert held[0] <= held[1]
    for jobset in (kep, stream, low):
        pod_spec(jobset)["initContainers"][0] = "the barrier"
    pod_spec(low)["volumes"].pop()
    assert plain(kep, KEP) == plain(stream, STREAM) == plain(low, FLOOR)


def test_controllers_differ_in_nothing_but_their_channels() -> None:
    keeping = [way for way in METHODS if way.has_controller]
    made = {way: [word.replace(way.namespace, "NAMESPACE") for word in deployments.arguments(way)] for way in keeping}
    assert made[KEP] == [*made[ANNOTATION], "--patch-concurrency", "0"]
    assert made[STREAM] == [*made[ANNOTATION], "--stream-host", ANYWHERE, "--stream-port", "8082"]


# --- Plan ------------------------------------------------------------------------------------------------------------


def test_each_run_has_every_way_once_and_the_kep_seldom_where_it_takes_long() -> None:
    plan = MeasurementPlan(runs=10, kep_runs=4, seed=3)
    gangs = list(plan.gangs())
    assert len(gangs) == len(set(gangs)) == 10 * 4 + 10 * 3 + 4
    assert gangs == list(plan.gangs())
    assert sorted(number for number, pods, way in gangs if way is KEP and pods == 20) == list(range(1, 11))
    orders = {tuple(way.key for number, pods, way in gangs if (number, pods) == (each, 20)) for each in range(1, 11)}
    assert len(orders) > 3, "shuffled in each run"
    assert MeasurementPlan(runs=3, kep_runs=9).kep_runs == 9
    assert sum(way is KEP for _, pods, way in MeasurementPlan(runs=3, kep_runs=9).gangs() if pods == 60) == 3


# --- Tables, page, picture -------------------------------------------------------------------------------------------


def test_the_page_tells_command_ground_outcome_and_weakness(ten: Results) -> None:
    ten.failures = [FailedRun(number=3, way="kep", pods=60, why="59 of 60 main containers ran after 300 s")]
    text = page.written(ten, "release.svg")
    assert "](release.svg)" in text
    assert "```\nmake bench-release\n```" in text
    assert "2 cores of One" in text
    assert "3 of 4 targets met; missed: (a)'s last to (b)'s with 20 pods." in text
    assert "* (a), 60 pods, run 3: 59 of 60 main containers ran after 300 s" in text
    assert text.index("## What is weak") > text.index("| (d) the floor")
    assert "{" not in text


# --- The program -----------------------------------------------------------------------------------------------------


def test_the_page_can_be_written_from_the_figures(
    ten: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "handle_signals", lambda: None)
    results.write(ten, tmp_path / "new" / "figures.json")
    places = ["--out", str(tmp_path / "page.md"), "--picture", str(tmp_path / "picture.svg")]
    assert program.main(["--from", str(tmp_path / "new" / "figures.json"), *places]) == 0
    assert (tmp_path / "page.md").read_text() == page.written(ten, "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == picture.drawn(ten)
    assert "MISSED: (a)'s last to (b)'s, 20 pods" in capsys.readouterr().out
