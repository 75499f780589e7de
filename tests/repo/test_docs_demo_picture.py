"""The picture of the demo shows what the demo says; what was written into a terminal is drawn as it stood there."""

import re
import sys
from xml.etree import ElementTree as ET

import pytest

from docs.make.picture.__main__ import DESCRIPTION, PICTURE, SIZE, played
from docs.make.picture.drawing import draw
from docs.make.picture.frames import Frame, Run, Stay, frames, stays
from docs.make.picture.recording import Size, Unsuccessful, Written, record
from jobset_gate.cli.demo.gang_scenario import MISSING

SVG = "{http://www.w3.org/2000/svg}"
SMALL = Size(columns=20, lines=4)
BARS = "━╸╺"


def lines(picture: str) -> list[str]:
    """What a reader sees in the end: the rows that nothing takes away."""
    root = ET.fromstring(picture)  # noqa: S314 - our own file
    style = root.findtext(f"{SVG}style") or ""
    gone = set(re.findall(r"\.(k\d+)", (re.findall(r"^(.*)\{opacity:0\}$", style, re.MULTILINE) or [""])[-1]))
    rows = [it for it in root.iter(f"{SVG}g") if not gone & set((it.get("class") or "").split())]
    return [" ".join(it.text or "" for it in row) for row in rows]


def clauses(rows: list[str]) -> list[str]:
    """The parts of sentences with numbers masked, wherever a terminal has broken its lines. Not the bars, nor the words
    of the verdict on who is missing: on a slow machine others may not have started either.
    """
    text = re.sub(r"\s+", "", "".join(it for it in rows if not set(BARS) & set(it)))
    verdict = re.sub(r"(Timedoutafter).*(Itsbarriers)", r"\1;\2", text)
    masked = re.sub(r"before|\d+msafter", "#", verdict)
    return re.split(r"[;:.,]+", re.sub(r"[\d#]+(?:\.\d+)?", "#", masked))


def test_the_picture_shows_what_the_demo_says() -> None:
    fresh = played("--jobs", "2", "--pods", "2", "--seconds", "0.5")
    now = [" ".join(run.text for run in row) for row in fresh[-1].rows]
    assert clauses(lines(PICTURE.read_text())) == clauses(now), "the demo has changed: run `make picture`"


def test_its_phases_come_one_after_the_other_and_the_end_stays() -> None:
    text = PICTURE.read_text()
    seen = [it.text or "" for it in ET.fromstring(text).iter(f"{SVG}text")]  # noqa: S314 - our own file
    assert any(re.search(r"[1-9]\d* held, 0 running", it) for it in seen), "held"
    drawn = "".join(lines(text))
    for phase in ("Gang train", "Released: all 300 pods started", "Gang stuck", "Timed out after", *MISSING):
        assert phase in drawn
    assert DESCRIPTION in text


def test_a_row_stands_until_another_takes_its_place() -> None:
    written = [
        Written(0.0, b"one\r\n"),
        Written(1.0, b"0 %"),
        Written(2.0, b"\r\x1b[2K100 %\r\n"),
        Written(9.0, b"end"),
    ]
    shown = frames(written, SMALL)
    found = [(it.line, it.row[0].text, it.begin, it.end) for it in stays(shown)]
    assert found == [(0, "one", 0.0, None), (1, "0 %", 1.0, 2.0), (1, "100 %", 2.0, None), (2, "end", 3.5, None)]


def test_nothing_is_waited_for_long() -> None:
    shown = frames([Written(0.0, b"a"), Written(60.0, b"b")], SMALL)
    assert shown[-1].at < 2


def test_colours_and_columns_are_those_of_the_terminal() -> None:
    shown = frames([Written(0.0, b"ab  \x1b[38;2;249;38;114mcd\x1b[0m \x1b[1mef")], SMALL)
    assert shown[-1].rows == ((Run(0, "ab", "", False), Run(4, "cd", "f92672", False), Run(7, "ef", "", True)),)


def test_it_is_drawn_with_every_row_in_its_columns_and_a_still_of_the_end() -> None:
    first, last = (Run(0, "0 <%", "", False),), (Run(3, "100 &", "729c1f", True),)
    drawn = draw([Frame(0.0, (first,)), Frame(2.0, (last,))], SMALL, title="a < b", described="what it shows")
    assert lines(drawn) == ["100 &"]
    (row,) = [it for it in ET.fromstring(drawn).iter(f"{SVG}text") if it.text == "100 &"]  # noqa: S314 - our own
    assert (row.get("class"), row.get("textLength"), row.get("x")) == ("f s", "39", "37.4")
    assert "prefers-reduced-motion" in drawn
    assert "0%{opacity:1}25%{opacity:0}" in drawn, "the first row goes after 2 of 8 seconds"


def test_a_program_that_fails_is_no_picture() -> None:
    with pytest.raises(Unsuccessful, match=r"ended with 3:\n.*no luck"):
        record([sys.executable, "-c", "import sys; print('no luck'); sys.exit(3)"], SMALL)


def test_it_runs_in_a_terminal_of_that_size() -> None:
    code = "import os, sys; print(*os.get_terminal_size(), sys.stdout.isatty(), 'NO_COLOR' in os.environ)"
    said = b"".join(it.data for it in record([sys.executable, "-c", code], SIZE)).decode()
    assert said.split() == [str(SIZE.columns), str(SIZE.lines), "True", "False"]


def test_empty_rows_are_no_rows() -> None:
    assert stays([Frame(0.0, ((), (Run(0, "x", "", False),)))]) == [Stay(1, (Run(0, "x", "", False),), 0.0, None)]
