"""What a terminal showed, from what was written into it: its rows as runs of one colour, and when each was there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pyte

from docs.make.picture.recording import Size, Written

BETWEEN: Final = 0.6
"""Seconds between two frames."""
LONGEST: Final = 1.5
"""Seconds of the picture in which nothing happens, however long they were."""


@dataclass(frozen=True, slots=True)
class Run:
    """Letters of one colour in a row; `colour` is six hexadecimal digits, or "" for the terminal's own."""

    column: int
    text: str
    colour: str
    bold: bool


Row = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """All rows from this moment on."""

    at: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Stay:
    """A row that is there from one moment to another; `end` None: it stays."""

    line: int
    row: Row
    begin: float
    end: float | None


def frames(written: Iterable[Written], size: Size) -> list[Frame]:
    """The terminal at most every `BETWEEN` seconds, and at the end."""
    screen = pyte.Screen(size.columns, size.lines)
    stream = pyte.ByteStream(screen)
    found: list[Frame] = []
    now, last = 0.0, 0.0
    due = 0.0
    for piece in written:
        if piece.at >= due:
            _show(found, screen, now)
            due = piece.at + BETWEEN
        stream.feed(piece.data)
        now += min(piece.at - last, LONGEST)
        last = piece.at
    _show(found, screen, now)
    return found


def stays(shown: Sequence[Frame]) -> list[Stay]:
    """Each row with the time for which it stood; empty ones left out."""
    found = []
    for line in range(max((len(it.rows) for it in shown), default=0)):
        history = [(it.at, it.rows[line] if line < len(it.rows) else ()) for it in shown]
        changes = [next(group) for _, group in groupby(history, key=lambda it: it[1])]
        ends = [at for at, _ in changes[1:]] + [None]
        found += [Stay(line, row, at, end) for (at, row), end in zip(changes, ends, strict=True) if row]
    return found


def _show(found: list[Frame], screen: pyte.Screen, now: float) -> None:
    rows = [_row(screen, line) for line in range(screen.lines)]
    while rows and not rows[-1]:
        rows.pop()
    if not found or found[-1].rows != tuple(rows):
        found.append(Frame(now, tuple(rows)))


def _row(screen: pyte.Screen, line: int) -> Row:
    cells = [(column, screen.buffer[line][column]) for column in range(screen.columns)]
    runs = []
    for (colour, bold), group in groupby(cells, key=lambda it: (it[1].fg, it[1].bold)):
        inside = list(group)
        text = "".join(cell.data for _, cell in inside)
        if stripped := text.strip():
            column = inside[0][0] + len(text) - len(text.lstrip())
            runs.append(Run(column, stripped, "" if colour == "default" else colour, bold))
    return tuple(runs)
