"""`demo groups`: the deadlock without us and none with us, how it looks, and that it would notice anything else."""

import asyncio
import json
import os
import pty
import re
import socket
import struct
import termios
from fcntl import ioctl

import pytest

from jobset_gate.cli.demo import podgroups as story
from jobset_gate.cli.demo.podgroups import PodGroupPlan
from jobset_gate.cli.exits import ExitCode
from jobset_gate.fake.clock import run_virtual
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.settings import Groups, Settings
from tests.fakes.demo_process import ENVIRONMENT, ESCAPE, everything, interrupted, started
from tests.fakes.service_process import TIMEOUT

QUICK = ("demo", "groups", "--speed", "100000")
LACKS = "needs 24 nvidia.com/gpu, 16 free"


async def test_json_ends_with_one_line_of_facts_and_the_story_is_plain_text() -> None:
    async with started(*QUICK, "-o", "json") as process, asyncio.timeout(TIMEOUT):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    (line,) = out.decode().splitlines()
    facts = json.loads(line)
    assert 0 < facts.pop("seconds") < TIMEOUT
    assert facts == {
        "minimum": 24,
        "room": 40,
        "bound_without_us": {"a": 20, "b": 20},
        "finished_with_us": ["a", "b"],
        "bound_too_early": 0,
        "reason": LACKS,
    }
    printed = err.decode()
    assert "After 5 minutes: a 20/24, b 20/24." in printed
    assert "0/10 nodes are available: 10 Insufficient nvidia.com/gpu." in printed
    assert "a 24/24 bound, 24 running; b 0/24 bound, 24 held" in printed
    assert f"b says why it waits: {LACKS}" in printed
    assert "a 24/24 bound, done; b 24/24 bound, 24 running" in printed
    assert "\x1b" not in printed
    assert "WRONG" not in printed


async def test_a_narrow_terminal_gets_bars_that_fit() -> None:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 44, 0, 0))
    environment = {key: value for key, value in ENVIRONMENT.items() if key not in ("COLUMNS", "LINES", "FORCE_COLOR")}
    async with (
        started(*QUICK, terminal=theirs, env=environment | {"TERM": "xterm-256color"}) as process,
        asyncio.timeout(TIMEOUT),
    ):
        os.close(theirs)
        shown = await asyncio.to_thread(everything, ours)
        assert await process.wait() == 0
    bars = [line for line in re.split(r"[\r\n]+", ESCAPE.sub("", shown)) if "━" in line]
    assert {line.split()[0] for line in bars} == {"a", "b"}
    assert max(len(line) for line in bars) <= 44
    assert any("20/24" in line for line in bars)


@pytest.mark.parametrize(("words", "after"), [("pending", 0.05), ("what runs in a cluster", 0.0), ("held", 0.05)])
async def test_ctrl_c_at_any_moment_ends_it_with_all_ports_closed(words: str, after: float) -> None:
    code, text, wrong = await interrupted("demo", "groups", "--speed", "120", words=words, after=after)
    assert (code, wrong) == (130, b"")
    assert text.endswith("interrupted\n")
    if found := re.search(r"https://127\.0\.0\.1:(\d+)", text):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(found[1])))


def played(
    plan: PodGroupPlan, capsys: pytest.CaptureFixture[str], settings: Settings | None = None
) -> tuple[ExitCode, str]:
    code = run_virtual(story.demo(plan, as_json=True, speed=1000.0, settings=settings))
    return code, capsys.readouterr().err


def test_it_would_notice_if_there_were_no_deadlock(capsys: pytest.CaptureFixture[str]) -> None:
    class Roomy(PodGroupPlan):
        @property
        def size(self) -> int:
            return 4

    code, printed = played(Roomy(), capsys)
    assert code is ExitCode.ERROR
    assert "WRONG: a gang was complete without us: there was no deadlock to show\n" in printed


def test_it_would_notice_if_gangs_were_opened_without_room(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(groups=Groups(capacity_check=CapacityCheck.OFF))
    code, printed = played(PodGroupPlan(patience=30.0), capsys, settings)
    assert code is ExitCode.ERROR
    assert "WRONG: gang a did not finish\n" in printed
    assert "WRONG: gang b did not say why it waited\n" in printed
    assert "pods of gang b were bound before there was room for all of it" in printed
