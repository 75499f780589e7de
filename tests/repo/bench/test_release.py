"""What `make bench-release` computes and writes, from recorded lines and numbers; that needs no cluster."""

import asyncio
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench.release import __main__ as program
from bench.release import (
    apiwrites,
    deployments,
    floor,
    gang,
    goals,
    heavy_image,
    page,
    picture,
    results,
    skews,
    tables,
    timestamps,
    usage,
)
from bench.release.gang import Rendering
from bench.release.methods import ANNOTATION, FLOOR, KEP, METHODS, STREAM, ReleaseMethod
from bench.release.plan import MeasurementPlan
from bench.release.results import FailedRun, ReleaseRun, Results, StartSkew, WaitingCost
from bench.release.timestamps import IncompleteLogs
from e2e import commands
from jobset_gate import names
from jobset_gate.injection import validate

RENDERING = Rendering("busybox:1", "http://gate.somewhere.svc:8082")
LAYERS = [
    "sha256:b67345889f99a6417cd42c32d0baa2b316cc8dd00e4cc2145ec3c7295236c555",
    "sha256:428d2bbab9e554e5f235c6d17345e40c0541393c4968c5ce5b9ca7d9489e2e8a",
]
CHAIN = "sha256:e1a6792e49ca52b5b926a3511bd8837e1093823d0e8704d113fc4ed209a1b1e0"
ANYWHERE = "0.0.0.0"  # noqa: S104 - to find it in arguments
SVG = "{http://www.w3.org/2000/svg}"

LOGS = """\
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:44.000000001Z waiting for the gang to start
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:46.5Z released
[pod/gang-workers-0-0-a/main] 2026-11-21T13:19:47.000000003Z started
[pod/gang-workers-0-1-b/group-scheduling-init] 2026-11-21T14:19:45.000000002+01:00 waiting for the gang to start
[pod/gang-workers-0-1-b/main] 2026-11-21T13:19:46.750000002Z started
failed to say more
"""


def run(way: ReleaseMethod = STREAM, number: int = 1, pods: int = 20, last: float = 3.0, **writes: int) -> ReleaseRun:
    told = {name.replace("_", " "): count for name, count in writes.items()}
    mains = tuple(last * part / pods for part in range(1, pods + 1))
    return ReleaseRun(number=number, way=way.key, pods=pods, gathering=2.0, told=last / 40, mains=mains, writes=told)


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
    assert found.told == 1.499999998


@pytest.mark.parametrize("gone", ["gang-workers-0-1-b/main", "gang-workers-0-0-a/group-scheduling-init"])
def test_a_gang_of_which_lines_are_missing_is_no_measurement(gone: str) -> None:
    text = "\n".join(line for line in LOGS.splitlines() if gone not in line)
    with pytest.raises(IncompleteLogs, match="of 2 have written"):
        timestamps.of_gang(timestamps.lines_of(text), barrier="group-scheduling-init", main="main", pods=2)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-11-21 13:19:44Z", "2026-11-21T13:19:44", "2026-11-21T13:19:44.Z"]
)
def test_what_is_no_moment_is_none(text: str) -> None:
    assert timestamps.stamp(text) is None


def test_the_figures_of_a_run() -> None:
    it = ReleaseRun(number=1, way="stream", pods=4, gathering=1.0, told=0.5, mains=(1.0, 2.0, 4.0, 5.0), writes={})
    assert (it.first, it.median, it.last, it.skew) == (1.0, 3.0, 5.0, 4.0)


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


def test_a_target_may_be_met_and_not_beyond_doubt() -> None:
    late = (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9)
    runs = [run(FLOOR, number, last=4.0) for number in range(10)]
    runs += [run(STREAM, number, last=4.0 + more) for number, more in enumerate(late)]
    assert goals.reached(measured(runs))[0].verdict == "met, not beyond doubt"


def test_the_fifteenfold_is_asked_for_at_20_pods_only() -> None:
    runs = [run(way, number, pods=60, last=9.0) for way in METHODS for number in range(10)]
    asked = {one.goal.text: one.goal.limit for one in goals.reached(measured(runs))}
    assert asked["(a)'s last to (c)'s"] is None
    assert asked["(c)'s last after (d)'s"] == 0.5


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
        "told": ("POST", "configmaps", "", ""),
    }
    lines = [line.format(*kinds[kind], count) for kind, count in counts.items()]
    return "\n".join(["# TYPE apiserver_request_total counter", *lines, 'other_total{verb="PATCH"} 9', ""])


def test_writes_are_what_the_metrics_rose_by() -> None:
    before = apiwrites.written(metrics(patched=5, status=100))
    after = apiwrites.written(metrics(patched=25, status=180, dry=7, leases=50, read=1000, told=1))
    assert apiwrites.between(before, after) == {"PATCH pods": 20, "PATCH pods/status": 80, "POST configmaps": 1}


def test_codes_of_one_kind_of_write_are_added_up() -> None:
    both = metrics(patched=5) + metrics(patched=2).replace('code="200"', 'code="409"')
    assert apiwrites.written(both) == {"PATCH pods": 7}


def test_ours_are_those_that_the_floor_did_not_have() -> None:
    pairs = [
        (run(ANNOTATION, 1, PATCH_pods=20, POST_events=151), run(FLOOR, 1, POST_events=150)),
        (run(ANNOTATION, 2, PATCH_pods=20, POST_events=149), run(FLOOR, 2, POST_events=150)),
        (run(ANNOTATION, 3, PATCH_pods=22, POST_events=151), run(FLOOR, 3, POST_events=150)),
    ]
    found = apiwrites.ours(pairs)
    assert (found["PATCH pods"], found["POST events"], found["PUT configmaps"]) == (20, 1, 0)
    assert found[apiwrites.ALL] == 21


def summary(second: int, cpu: int, **more: Any) -> dict[str, Any]:
    barrier = {
        "name": names.BARRIER_CONTAINER,
        "cpu": {"time": f"2026-11-21T13:20:{second:02}Z", "usageCoreNanoSeconds": cpu},
        "memory": {"workingSetBytes": 4 * 2**20, "rssBytes": 2**20},
    }
    pod = {"podRef": {"name": "p", "namespace": "ours"}, "containers": [barrier, {"name": "main"}], **more}
    strange = {"podRef": {"name": "p", "namespace": "other"}, "containers": [barrier]}
    return {"pods": [pod, strange, {"podRef": {"name": "new", "namespace": "ours"}}]}


def test_costs_are_averages_between_two_looks() -> None:
    before = usage.of_barriers(summary(10, 1_000_000_000), "ours")
    after = usage.of_barriers(summary(40, 1_240_000_000), "ours")
    assert list(before) == ["p"]
    assert usage.average(before, after) == usage.Average(seconds=30, millicores=8.0, rss=1.0, working_set=4.0)


def test_two_looks_at_the_same_moment_are_no_measurement() -> None:
    found = usage.of_barriers(summary(10, 5), "ours")
    with pytest.raises(ValueError, match="looked at twice"):
        usage.average(found, found)


def test_a_container_that_has_not_been_looked_at_has_no_usage() -> None:
    assert usage.of_barriers(summary(10, 5, containers=[{"name": names.BARRIER_CONTAINER}]), "ours") == {}


# --- Gangs and controllers -------------------------------------------------------------------------------------------


def rendered(way: ReleaseMethod, **more: Any) -> Mapping[str, Any]:
    return gang.of(way, RENDERING, name="gang", pods=3, node="one", token="t" * 20, **more)


def pod_spec(jobset: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return spec


def plain(jobset: Mapping[str, Any], way: ReleaseMethod) -> str:
    return json.dumps(jobset, sort_keys=True).replace(way.namespace, "NAMESPACE")


def test_gangs_differ_in_nothing_but_the_way_they_are_told() -> None:
    kep, stream, low = (rendered(way) for way in (KEP, STREAM, FLOOR))
    assert plain(kep, KEP) == plain(rendered(ANNOTATION), ANNOTATION)
    held = [{one["name"] for one in pod_spec(jobset)["initContainers"][0]["env"]} for jobset in (kep, low)]
    assert held[1] - held[0] == {floor.POLL_INTERVAL, floor.PODS}
    assert held[0] <= held[1]
    for jobset in (kep, stream, low):
        pod_spec(jobset)["initContainers"][0] = "the barrier"
    pod_spec(low)["volumes"].pop()
    assert plain(kep, KEP) == plain(stream, STREAM) == plain(low, FLOOR)


def test_gangs_of_one_name_share_no_folder_on_the_host() -> None:
    """The files of the earlier one would count."""
    ones = [gang.of(FLOOR, RENDERING, name="gang", pods=3, node="one", token=token) for token in ("a", "b")]
    first, second = (pod_spec(one)["volumes"][-1]["hostPath"]["path"] for one in ones)
    assert first != second


def test_only_the_streams_barriers_know_of_a_stream() -> None:
    barriers = {way: pod_spec(rendered(way))["initContainers"][-1] for way in METHODS}
    known = {way: {one["name"]: one.get("value") for one in barrier["env"]} for way, barrier in barriers.items()}
    assert [way for way in METHODS if names.ENV_STREAM in known[way]] == [STREAM]
    assert known[STREAM][names.ENV_STREAM] == f"{RENDERING.stream_url}/v1/gangs/{STREAM.namespace}/gang/{'t' * 20}"


@pytest.mark.parametrize("way", METHODS)
def test_the_webhook_would_have_let_them_in(way: ReleaseMethod) -> None:
    assert validate.field_errors(dict(rendered(way)), None) == [] or way is FLOOR


def test_a_gang_one_short_has_a_pod_that_no_node_will_have() -> None:
    jobs = rendered(FLOOR, absent=True)["spec"]["replicatedJobs"]
    spec = jobs[1]["template"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/hostname": "no-one"}
    assert {"name": floor.PODS, "value": "4"} in pod_spec(rendered(FLOOR, absent=True))["initContainers"][0]["env"]


async def test_the_floors_barriers_wait_for_the_last_one_and_for_nobody_else(tmp_path: Path) -> None:
    began = []
    try:
        for name in ("a", "b", "c"):
            assert not (tmp_path / names.VERDICT_FILE).exists()
            began.append(await floors_barrier(tmp_path, name, pods=3))
        for process in began:
            assert await process.wait() == 0
    finally:
        for process in began:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def floors_barrier(folder: Path, name: str, *, pods: int) -> asyncio.subprocess.Process:
    """Once it waits."""
    told = {floor.POLL_INTERVAL: str(folder), floor.PODS: str(pods), "HOSTNAME": name, "PATH": os.environ["PATH"]}
    generation = {names.ENV_UID: "uid", names.ENV_ATTEMPT: "0", names.ENV_EPOCH: "0"}
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", floor.script(), env=told | generation, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdout
    assert await process.stdout.readline() == b"waiting for the gang to start\n"
    return process


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
    assert len(orders) > 3, "shuffled anew in each run"
    assert MeasurementPlan(runs=3, kep_runs=9).kep_runs == 9
    assert sum(way is KEP for _, pods, way in MeasurementPlan(runs=3, kep_runs=9).gangs() if pods == 60) == 3


def test_the_command_says_what_is_unusual_and_names_no_file() -> None:
    assert MeasurementPlan().words == []
    words = MeasurementPlan(sizes=(8, 20), ways=(STREAM, FLOOR), runs=3).words
    assert words == ["--pods", "8,20", "--runs", "3", "--ways", "stream,floor"]


def test_prefetch_takes_turns_with_none() -> None:
    assert sorted(MeasurementPlan(skew_runs=2).skews()) == [(1, False), (1, True), (2, False), (2, True)]


# --- Tables, page, picture -------------------------------------------------------------------------------------------


def test_a_table_has_every_way_and_the_peer_that_was_measured_elsewhere(ten: Results) -> None:
    table = tables.speed(ten, 20)
    assert [str(row[0])[:3] for row in table.rows] == ["(a)", "(b)", "(c)", "(d)", "Job"]
    assert table.rows[2][1:] == [
        10,
        "0.11 (0.10 to 0.12)",
        "0.23 (0.21 to 0.24)",
        "2.39 (2.20 to 2.57)",
        "4.55 (4.20 to 4.90)",
        "4.32 (3.99 to 4.65)",
    ]
    assert table.rows[4][5] == "2.9 to 3.1"
    assert "two cores" in table.notes[0]


def test_nothing_measured_is_no_table() -> None:
    assert [table.name for table in tables.every(measured([run(STREAM)]))] == ["speed-20"]


def test_costs_and_skews_have_tables_of_their_own() -> None:
    cost = WaitingCost(way="stream", pods=20, seconds=60, millicores=4.5, rss=0.3, working_set=1.5, left=0)
    both = [
        StartSkew(number=number, prefetch=prefetch, waited=9.0, warm=(0.0, 0.1), cold=(late, late + 0.2))
        for number in range(1, 4)
        for prefetch, late in ((True, 0.3), (False, 7.0 + number))
    ]
    found = {
        table.name: table for table in tables.every(measured([run(STREAM)], costs=[cost], skews=both, image="big"))
    }
    assert found["costs"].rows[0] == ["(c) gate stream, as installed", 20, 4.5, 0.3, 1.5, "nothing"]
    assert [row[2] for row in found["skews"].rows] == ["9.20", "0.50"]
    assert found["skews"].notes == ["The image: big."]


def test_skew_is_read_from_the_lines_of_both_nodes() -> None:
    line = "[pod/g-{0}-0-{1}-x/{2}] 2026-11-21T13:00:0{3}Z x\n"
    text = "".join(
        line.format(job, pod, container, second)
        for job, start in (("warm", "5.0"), ("cold", "8.0"))
        for pod in (0, 1)
        for container, second in ((names.BARRIER_CONTAINER, "1.5"), ("main", start))
    )
    found = skews.of_lines(timestamps.lines_of(text), number=1, prefetch=False, jobset="g")
    assert (found.waited, found.warm, found.cold, found.skew) == (3.5, (0.0, 0.0), (3.0, 3.0), 3.0)
    with pytest.raises(IncompleteLogs):
        skews.of_lines(timestamps.lines_of(text), number=1, prefetch=False, jobset="other")


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


def test_a_markdown_table_has_as_many_cells_in_each_line(ten: Results) -> None:
    for table in tables.every(ten):
        lines = [line for line in page.markdown(table).splitlines() if line.startswith("|")]
        assert len(lines) == len(table.rows) + 2
        assert {line.count("|") for line in lines} == {len(table.columns) + 1}


def test_the_picture_has_a_row_for_each_way_and_size(ten: Results) -> None:
    ten.runs += [run(way, number, pods=60, last=9.0) for way in (STREAM, FLOOR) for number in range(10)]
    root = ET.fromstring(picture.drawn(ten))  # noqa: S314 - our own
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert [text for text in said if "pods on" in text] == ["20 pods on one node", "60 pods on one node"]
    assert [text[:3] for text in said if re.match(r"\([a-d]\)", text)] == ["(a)", "(b)", "(c)", "(d)", "(c)", "(d)"]
    assert "last 80 s" in said
    width, height = (float(root.attrib[key]) for key in ("width", "height"))
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= width
        assert 0 <= float(text.attrib["y"]) <= height


def test_the_axis_is_even_in_logarithms() -> None:
    axis = picture.LogAxis([0.6, 80])
    assert axis.ticks == [0.5, 1, 2, 5, 10, 20, 50, 100]
    places = [axis.place(second) for second in (0.5, 5, 50)]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1])
    assert (axis.place(0.5), axis.place(100)) == (axis.left, axis.right)
    assert axis.place(50**0.5) == pytest.approx((axis.left + axis.right) / 2)


def test_no_runs_are_no_picture() -> None:
    with pytest.raises(ValueError, match="no run"):
        picture.drawn(measured([]))


def test_a_snapshot_is_named_by_all_layers_below_it() -> None:
    """Of a real image, and as containerd named its snapshot."""
    assert heavy_image.chain_of(LAYERS[:1]) == LAYERS[0]
    assert heavy_image.chain_of(LAYERS) == CHAIN


# --- The program -----------------------------------------------------------------------------------------------------


def test_the_page_can_be_written_anew_from_the_figures(
    ten: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "handle_signals", lambda: None)
    results.write(ten, tmp_path / "new" / "figures.json")
    places = ["--out", str(tmp_path / "page.md"), "--picture", str(tmp_path / "picture.svg")]
    assert program.main(["--from", str(tmp_path / "new" / "figures.json"), *places]) == 0
    assert (tmp_path / "page.md").read_text() == page.written(ten, "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == picture.drawn(ten)
    assert "MISSED: (a)'s last to (b)'s, 20 pods" in capsys.readouterr().out


def test_a_gang_that_was_not_measured_makes_it_fail(
    ten: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "handle_signals", lambda: None)
    ten.failures = [FailedRun(number=1, way="kep", pods=20, why="late")]
    results.write(ten, tmp_path / "figures.json")
    places = ["--out", str(tmp_path / "page.md"), "--picture", str(tmp_path / "picture.svg")]
    assert program.main(["--from", str(tmp_path / "figures.json"), *places]) == 1


@pytest.mark.parametrize("arguments", [["--ways", "stream,pigeon"], ["--pods", "0"], ["--pods", "many"]])
def test_the_program_refuses_what_makes_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m bench.release" in capsys.readouterr().err
