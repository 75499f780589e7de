"""Where `watch` shows what it sees: a picture that moves on a terminal, lines that are appended everywhere else."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Self, TextIO, cast

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobset_gate.cli.printers import frames, output, terminal
from jobset_gate.cli.printers.frames import CountBar
from jobset_gate.cli.printers.terminal import TerminalStyle
from jobset_gate.cli.watch.view import ViewState
from jobset_gate.explain import text as said

NARROW = 50
"""Columns below which bars go without names and reasons may wrap."""


class LineScreen:
    """One line for every moment that is different from the one before; `tick` None: nothing moves by itself."""

    tick: float | None = None

    def __init__(self) -> None:
        self._last = self._trouble = ""
        self._warned: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing has to be put back."""

    def show(self, moment: ViewState, now: float) -> None:
        """Says it if it is news."""
        if moment.trouble and not self._trouble:
            output.err(f"warning: {moment.trouble}")
        self._trouble = moment.trouble
        for warning in frames.watch_warnings(moment):
            if warning not in self._warned:
                self._warned.add(warning)
                output.err(f"warning: {warning}")
        text = frames.watch_line(moment)
        if text != self._last:
            self._last = text
            output.out(f"{said.format_time(now)}  {text}\n")


class LiveScreen:
    """A frame that is drawn over the one before; what stood there last stays."""

    tick: float | None = 1.0

    def __init__(self, stream: TextIO, look: TerminalStyle) -> None:
        self._look = look
        self._console = Console(
            file=stream, force_terminal=True, no_color=not look.colour, highlight=False, emoji=False, markup=False
        )
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, moment: ViewState, now: float) -> None:
        """Draws it; the time goes on by itself."""
        if moment.told is not None:
            moment = replace(moment, told=msgspec.structs.replace(moment.told, now=now))
        self._live.update(self._drawn(moment), refresh=True)

    def _drawn(self, moment: ViewState) -> RenderableType:
        frame, narrow = frames.watch_frame(moment, self._look), self._console.width < NARROW
        texts = [Text.from_ansi(line) for line in (*frame.head, *frame.below)]
        many = len(frame.head)
        return Group(*texts[:many], *([_bars(frame.bars, narrow=narrow)] if frame.bars else []), *texts[many:])


def of(stream: TextIO) -> LineScreen | LiveScreen:
    """The right one for where this goes."""
    moves = stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return LiveScreen(stream, terminal.style_of(stream)) if moves else LineScreen()


def _bars(bars: Sequence[CountBar], *, narrow: bool) -> Table:
    table = Table.grid(padding=(0, 1), expand=narrow)
    if not narrow:
        table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(ratio=1 if narrow else None)
    table.add_column(no_wrap=True, justify="right")
    for bar in bars:
        drawn = ProgressBar(total=max(bar.expected, 1), completed=bar.done or 0, width=None if narrow else 40)
        table.add_row(*([] if narrow else [f"  {bar.name}"]), drawn, bar.count + (f" {bar.name}" if narrow else ""))
    return table


def standard_output() -> LineScreen | LiveScreen:
    """For this process."""
    return of(cast("TextIO", sys.stdout))
