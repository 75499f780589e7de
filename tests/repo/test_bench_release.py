"""What `make bench-release` computes and writes, from recorded lines and numbers; that needs no cluster."""

from pathlib import Path

import pytest

from bench.release import __main__ as program
from bench.release import page, picture, results, timestamps
from bench.release.methods import ANNOTATION, FLOOR, KEP, STREAM, ReleaseMethod
from bench.release.results import FailedRun, ReleaseRun, Results
from bench.release.timestamps import IncompleteLogs
from e2e import commands

LOGS = """\
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:44.000000001Z waiting for the gang to start
[pod/gang-workers-0-0-a/group-scheduling-init] 2026-11-21T13:19:46.5Z released
[pod/gang-workers-0-0-a/main] 2026-11-21T13:19:47.000000003Z started
[pod/gang-workers-0-1-b/group-scheduling-init] 2026-11-21T14:19:45.000000002+01:00 waiting for the gang to start
[pod/gang-workers-0-1-b/main] 2026-11-21T13:19:46.750000002Z started
failed to say more
"""


def run(way: ReleaseMethod, number: int, last: float) -> ReleaseRun:
    mains = tuple(last * part / 20 for part in range(1, 21))
    return ReleaseRun(number=number, way=way.key, pods=20, gathering=2.0, released=last / 40, mains=mains, writes={})


@pytest.fixture
def ten() -> Results:
    """Ten runs of all ways with 20 pods: the KEP is twenty times slower, patches by a half, the stream by 0.1 s."""
    machine = {"time": "2026-11-21T10:00:00+00:00", "cores": 2, "processor": "One", "system": "Linux", "load": 0.1}
    where = {"kubelet": "v1", "runtime": "containerd", "system": "Debian", "workers": 2}
    lasts = {KEP: 80.0, ANNOTATION: 6.0, STREAM: 4.1, FLOOR: 4.0}
    runs = [run(way, number, last + number / 10) for way, last in lasts.items() for number in range(10)]
    return Results(machine=machine, cluster=where, command="make bench-release", seed=7, runs=runs)


def test_moments_are_first_lines_to_the_nanosecond_whatever_the_time_zone() -> None:
    found = timestamps.of_gang(timestamps.lines_of(LOGS), barrier="group-scheduling-init", main="main", pods=2)
    assert found.starts[1] - found.starts[0] == 1_000_000_001
    assert [main - found.starts[1] for main in found.mains] == [1_750_000_000, 2_000_000_001]
    assert (found.after, found.gathering, found.released) == ((1.75, 2.000000001), 1.000000001, 1.499999998)
    for gone in ("gang-workers-0-1-b/main", "gang-workers-0-0-a/group-scheduling-init"):
        text = "\n".join(line for line in LOGS.splitlines() if gone not in line)
        with pytest.raises(IncompleteLogs, match="of 2 have written"):
            timestamps.of_gang(timestamps.lines_of(text), barrier="group-scheduling-init", main="main", pods=2)


def test_the_page_is_written_from_the_figures_and_tells_outcome_and_weakness(
    ten: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "handle_signals", lambda: None)
    ten.failures = [FailedRun(number=3, way="kep", pods=60, why="59 of 60 main containers ran after 300 s")]
    results.write(ten, tmp_path / "new" / "figures.json")
    places = ["--out", str(tmp_path / "page.md"), "--picture", str(tmp_path / "picture.svg")]
    assert program.main(["--from", str(tmp_path / "new" / "figures.json"), *places]) == 1, "a run has failed"
    text = (tmp_path / "page.md").read_text()
    assert text == page.written(ten, "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == picture.drawn(ten)
    assert "MISSED: (a)'s last to (b)'s, 20 pods" in capsys.readouterr().out
    assert "](picture.svg)" in text
    assert "```\nmake bench-release\n```" in text
    assert "2 cores of One" in text
    assert "3 of 4 targets met; missed: (a)'s last to (b)'s with 20 pods." in text
    assert "* (a), 60 pods, run 3: 59 of 60 main containers ran after 300 s" in text
    assert text.index("## What is weak") > text.index("| (d) the floor")
    assert "{" not in text
