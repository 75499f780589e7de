"""How text may look where it goes: as wide as a terminal is, coloured where that is wanted; plain everywhere else."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Final

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
        """The text in one of the styles; as it is without colour. Styles of its own it cannot have."""
        text = terminal_text.lines(text)
        return f"{_STYLES[style]}{text}{_RESET}" if self.colour and text else text


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
