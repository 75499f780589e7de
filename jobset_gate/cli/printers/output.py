"""The one place that writes to standard output and standard error, so that no text of others steers a terminal.

Text is as wide as a terminal is and coloured where that is wanted; plain everywhere else. Columns are kubectl's.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Final

import typer

from jobset_gate.objects import terminal_text

MIN_WIDTH: Final = 20
"""Below that nothing is wrapped any more: single words would be torn."""

_RESET: Final = "\x1b[0m"
_STYLES: Final = {"bold": "\x1b[1m", "dim": "\x1b[2m", "bad": "\x1b[31m", "good": "\x1b[32m", "wait": "\x1b[33m"}
_OURS: Final = re.compile(f"({'|'.join(map(re.escape, (*_STYLES.values(), _RESET)))})")


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """`width` None: lines are not wrapped."""

    width: int | None = None
    colour: bool = False

    def paint(self, style: str, text: str) -> str:
        """The text in one of the styles; as it is without colour, or for "". Styles of its own it cannot have."""
        text = terminal_text.lines(text)
        return f"{_STYLES[style]}{text}{_RESET}" if self.colour and text and style else text


PLAIN_STYLE: Final = TerminalStyle()


def escape_controls(text: str, look: TerminalStyle) -> str:
    """Lines in which nothing but the styles of this look is a control."""
    if not look.colour:
        return terminal_text.lines(text)
    parts = _OURS.split(text)
    return "".join(part if number % 2 else terminal_text.lines(part) for number, part in enumerate(parts))


def style_of(stream: IO[str], environment: Mapping[str, str] | None = None) -> TerminalStyle:
    """What becomes of text there. No colour with NO_COLOR or on a dumb terminal, as people have agreed."""
    values = os.environ if environment is None else environment
    if not stream.isatty():
        return PLAIN_STYLE
    width = shutil.get_terminal_size().columns
    colour = not values.get("NO_COLOR") and values.get("TERM", "") not in ("", "dumb")
    return TerminalStyle(width if width >= MIN_WIDTH else None, colour)


def out(text: str, look: TerminalStyle = PLAIN_STYLE) -> None:
    """Whole lines for people; of controls only the colours of `look` get through."""
    document(escape_controls(text, look))


def document(text: str) -> None:
    """A document for programs, in which controls are escaped already; UTF-8, whatever the locale says."""
    typer.echo(text.encode(), nl=False)


def err(line: str) -> None:
    """One line on standard error."""
    sys.stderr.write(terminal_text.lines(line) + "\n")


def one_line(text: str) -> str:
    """Keys and names of a manifest may hold line breaks, and would fake further lines."""
    return text.replace("\n", "\\n").replace("\r", "\\r")


# --- Columns ---------------------------------------------------------------------------------------------------------

_GAP = "   "


def widths(lines: Sequence[Sequence[str]]) -> list[int]:
    """Of each column; the lines are equally long."""
    return [max(len(cell_text(it)) for it in column) for column in zip(*lines, strict=True)]


def join_cells(cells: Iterable[str], widths: Iterable[int]) -> str:
    """One line; it may end before the last column."""
    return _GAP.join(cell_text(it).ljust(width) for it, width in zip(cells, widths, strict=False)).rstrip()


def cell_text(text: str) -> str:
    """Others' words may hold line breaks and controls."""
    return text if text.isprintable() else terminal_text.line(text)


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    wide = widths(lines)
    return [join_cells(line, wide) for line in lines]
