"""`demo` in real time and at small scale: its facts, its looks, and that it would notice if something went wrong."""

import asyncio
import io
import json
import os
import pty
import re
import socket
import struct
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from fcntl import ioctl

import pytest

from jobset_gate.cli.demo import gang as story
from jobset_gate.cli.demo.frame import PlainDisplay
from jobset_gate.cli.demo.gang import MISSING, GangPlan
from jobset_gate.cli.exits import ExitCode
from jobset_gate.fake.kubelet import FakeNode
from tests.fakes.demo_process import COLOUR, ENVIRONMENT, ESCAPE, everything, interrupted, started
from tests.fakes.service_process import TIMEOUT

SMALL = ("demo", "--pods", "4", "--jobs", "2", "--seconds", "1")


async def test_json_ends_with_one_line_of_facts_and_the_story_is_plain_text() -> None:
    async with started(*SMALL, "-o", "json") as process, asyncio.timeout(TIMEOUT):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    (line,) = out.decode().splitlines()
    facts = json.loads(line)
    latency = facts.pop("decision_latency_seconds")
    assert -5 < latency < 5
    assert 0 <= facts.pop("patched") <= 8
    assert 1 < facts.pop("seconds") < TIMEOUT
    assert facts == {"gangs": 2, "pods": 17, "released": 1, "timed_out": 1}
    printed = err.decode()
    assert "8/8 started, 0 held, 8 running (workers-0 4/4, workers-1 4/4)" in printed
    assert "Released: all 8 pods started." in printed
    (verdict,) = [each for each in printed.splitlines() if "Timed out after" in each]
    assert "7/9 pods started; missing: " in verdict
    assert [slot for slot in MISSING if slot not in verdict] == []
    assert "ImagePullBackOff" in verdict
    assert "Insufficient nvidia.com/gpu" in verdict
    assert "\x1b" not in printed
    assert "WRONG" not in printed


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
async def test_a_narrow_terminal_gets_bars_that_fit(variables: dict[str, str], coloured: bool) -> None:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 44, 0, 0))
    environment = {key: value for key, value in ENVIRONMENT.items() if key not in ("COLUMNS", "LINES", "FORCE_COLOR")}
    environment |= {"TERM": "xterm-256color", **variables}
    async with started(*SMALL, terminal=theirs, env=environment) as process, asyncio.timeout(TIMEOUT):
        os.close(theirs)
        shown = await asyncio.to_thread(everything, ours)
        assert await process.wait() == 0
    assert bool(COLOUR.search(shown)) == coloured
    bars = [line for line in re.split(r"[\r\n]+", ESCAPE.sub("", shown)) if "━" in line]
    assert {line.split()[0] for line in bars} == {"workers-0", "workers-1", "driver-0"}
    assert max(len(line) for line in bars) <= 44
    assert "4/4" in bars[0] + bars[-1] + "".join(bars)


LONG, SHORT = ("demo", "--pods", "10", "--seconds", "60"), ("demo", "--pods", "2", "--jobs", "1", "--seconds", "0.5")


@pytest.mark.parametrize(
    ("arguments", "words", "after"),
    [
        (LONG, "what runs in a cluster", 0.0),
        (LONG, " started, ", 0.0),
        (LONG, " started, ", 0.05),
        (SHORT, "Released: ", 0.0),
        (SHORT, "2. Gang", 0.3),
    ],
)
async def test_ctrl_c_at_any_moment_ends_it_with_all_ports_closed(
    arguments: tuple[str, ...], words: str, after: float
) -> None:
    code, text, wrong = await interrupted(*arguments, words=words, after=after)
    assert (code, wrong) == (130, b"")
    assert text.endswith("interrupted\n")
    found = re.search(r"https://127\.0\.0\.1:(\d+)", text)
    assert found
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(found[1])))


async def test_a_cancellation_that_comes_while_the_screen_is_cleared_is_not_lost() -> None:
    async def shown() -> None:
        async with PlainDisplay(io.StringIO()).following(list, str):
            await asyncio.sleep(0)

    for turns in range(10):
        showing = asyncio.create_task(shown())
        for _ in range(turns):
            await asyncio.sleep(0)
        printed = showing.cancel()  # False: it has ended already
        await asyncio.wait([showing])
        assert showing.cancelled() is printed


@dataclass(frozen=True, slots=True)
class NodesNeverCome(GangPlan):
    """Only the first wave of nodes arrives."""

    @property
    def patience(self) -> float:
        return 2.0

    def waves(self) -> Iterator[tuple[float, list[FakeNode]]]:
        yield next(super(NodesNeverCome, self).waves())


async def test_it_would_notice_that_a_gang_is_not_released(capsys: pytest.CaptureFixture[str]) -> None:
    assert await story.demo(NodesNeverCome(jobs=1, pods=5, seconds=0.5), as_json=True) is ExitCode.ERROR
    out, err = capsys.readouterr()
    assert json.loads(out)["released"] == 0
    assert json.loads(out)["decision_latency_seconds"] is None
    assert "WRONG: gang train was not released: 2/5 pods started\n" in err
    assert "WRONG: gang train: 0/5 main containers run\n" in err


@pytest.mark.parametrize(("jobs", "pods"), [(3, 100), (1, 1), (1, 2), (7, 33), (20, 1000)])
def test_the_waves_bring_room_for_every_pod_and_the_last_one_is_needed(jobs: int, pods: int) -> None:
    plan = GangPlan(jobs=jobs, pods=pods, seconds=8)
    waves = list(plan.waves())
    capacities = [sum(node.pods for node in nodes) for _, nodes in waves]
    assert sum(capacities) == plan.size
    assert [after for after, _ in waves] == [0, 4, 8]
    names = [node.name for _, nodes in waves for node in nodes]
    assert len(names) == len(set(names))
    assert all(node.pods > 0 for _, nodes in waves for node in nodes)
    if plan.size >= 3:
        assert all(capacities)
