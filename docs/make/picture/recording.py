"""Runs a program in a terminal of its own, and keeps what it wrote and when."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_TERMINAL: Final = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
_NOT_PASSED_ON: Final = ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR")
_AT_ONCE: Final = 65_536


@dataclass(frozen=True, slots=True)
class Size:
    """Of a terminal, in characters."""

    columns: int
    lines: int


@dataclass(frozen=True, slots=True)
class Written:
    """A piece of output; `at`: seconds since the program began."""

    at: float
    data: bytes


class Unsuccessful(Exception):
    """The program has failed: there is nothing to show."""


def record(command: Sequence[str], size: Size) -> list[Written]:
    """What the command writes into such a terminal until it ends. Raises Unsuccessful unless it ends with 0."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", size.lines, size.columns, 0, 0))
    env = {key: value for key, value in os.environ.items() if key not in _NOT_PASSED_ON} | _TERMINAL
    began = time.monotonic()
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=env) as program:  # noqa: S603 - our own
        os.close(its)
        try:
            found = list(_pieces(ours, began))
        finally:
            os.close(ours)
    if program.returncode:
        said = b"".join(it.data for it in found).decode(errors="replace")
        raise Unsuccessful(f"{' '.join(command)} ended with {program.returncode}:\n{said}")
    return found


def _pieces(ours: int, began: float) -> list[Written]:
    found: list[Written] = []
    while True:
        select.select([ours], [], [])
        try:
            data = os.read(ours, _AT_ONCE)
        except OSError:  # how Linux says that nobody holds the other end any more
            return found
        if not data:
            return found
        found.append(Written(time.monotonic() - began, data))
