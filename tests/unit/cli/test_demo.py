"""Both demos as processes: what they say, their looks, and how they are ended."""

import asyncio
import re
import socket

import pytest

from jobset_gate_demo.gang import MISSING
from tests.fakes.cli_process import on_terminal, plain, started

COLOUR = re.compile(r"\x1b\[[0-9;]*[1-9][0-9;]*m")
SMALL = ("demo", "--pods", "4", "--jobs", "2", "--seconds", "1")
QUICK = ("demo", "groups", "--speed", "100000")
LACKS = "needs 24 nvidia.com/gpu, 16 free"


async def story(*arguments: str) -> str:
    """What is printed where nothing goes wrong."""
    async with started(None, *arguments) as process:
        out, code = await process.rest(), await process.ended()
    assert (code, process.err) == (0, "")
    assert "\x1b" not in out
    assert "WRONG" not in out
    return out


async def test_of_two_gangs_one_is_released_and_one_times_out() -> None:
    printed = await story(*SMALL)
    assert re.search(r"\nIn [0-9.]+ s: 2 gangs, 17 pods, 1 released, 1 timed out\.\n$", printed)
    assert "workers-0 4/4 started, 0 held, 4 running; workers-1 4/4 started, 0 held, 4 running" in printed
    assert "Released: all 8 pods started." in printed
    (verdict,) = [each for each in printed.splitlines() if "Timed out after" in each]
    for words in ("7/9 pods started; missing: ", *MISSING, "ImagePullBackOff", "Insufficient nvidia.com/gpu"):
        assert words in verdict


async def test_two_groups_block_each_other_and_then_not() -> None:
    printed = await story(*QUICK)
    for words in (
        "After 5 minutes: a 20/24, b 20/24.",
        "0/10 nodes are available: 10 Insufficient nvidia.com/gpu.",
        "a 24/24 bound, 24 running; b 0/24 bound, 24 held",
        f"b says why it waits: {LACKS}",
        "a 24/24 bound, done; b 24/24 bound, 24 running",
        "a 24/24 bound, done; b 24/24 bound, done",
    ):
        assert words in printed


@pytest.mark.parametrize(
    ("arguments", "variables", "bars"),
    [
        (SMALL, {}, {"workers-0", "workers-1", "driver-0"}),
        (SMALL, {"NO_COLOR": "1"}, {"workers-0", "workers-1", "driver-0"}),
        (QUICK, {}, {"a", "b"}),
    ],
    ids=["gangs", "no colour", "groups"],
)
async def test_a_narrow_terminal_gets_bars_that_fit(
    arguments: tuple[str, ...], variables: dict[str, str], bars: set[str]
) -> None:
    environment = {"TERM": "xterm-256color", **variables}
    async with on_terminal(None, *arguments, size=(24, 44), environment=environment) as terminal:
        assert await terminal.ended() == 0
        shown = terminal.drawn
    assert bool(COLOUR.search(shown)) is not bool(variables)
    lines = [line for line in re.split(r"[\r\n]+", plain(shown)) if "━" in line]
    assert {line.split()[0] for line in lines} == bars
    assert max(map(len, lines)) <= 44


LONG, SHORT = ("demo", "--pods", "10", "--seconds", "60"), ("demo", "--pods", "2", "--jobs", "1", "--seconds", "0.5")
GROUPS = ("demo", "groups", "--speed", "120")


@pytest.mark.parametrize(
    ("arguments", "words", "after"),
    [
        (LONG, "what runs in a cluster", 0.0),
        (LONG, " started, ", 0.05),
        (SHORT, "2. Gang", 0.3),
        (GROUPS, "pending", 0.05),
    ],
)
async def test_ctrl_c_at_any_moment_ends_it_with_all_ports_closed(
    arguments: tuple[str, ...], words: str, after: float
) -> None:
    async with started(None, *arguments) as process:
        text = await process.until(words)
        await asyncio.sleep(after)  # of another process's life
        assert await process.interrupted() == 130
        text += await process.rest()
        assert process.err == ""
    assert text.endswith("interrupted\n")
    if found := re.search(r"https://127\.0\.0\.1:(\d+)", text):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(found[1])))
