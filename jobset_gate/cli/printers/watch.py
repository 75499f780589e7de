"""What `watch` prints: a picture that moves on a terminal, and lines that are appended everywhere else."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final, Self, TextIO, cast

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobset_gate.cli.fetch.view import ViewState
from jobset_gate.cli.printers import output
from jobset_gate.cli.printers.explanation import footnotes, state_style
from jobset_gate.cli.printers.output import TerminalStyle
from jobset_gate.explain import text as said
from jobset_gate.explain.model import Explanation
from jobset_gate.objects import terminal_text

MAX_REASONS: Final = 8
"""Lines of a picture for reasons."""
NARROW: Final = 50
"""Columns below which bars go without names and reasons may wrap."""


@dataclass(frozen=True, slots=True)
class CountBar:
    """How far one part is."""

    name: str
    done: int | None
    """None: not known."""
    expected: int

    @property
    def count(self) -> str:
        """`7/10`."""
        return f"{'?' if self.done is None else self.done}/{self.expected or '?'}"


def watch_frame(state: ViewState, look: TerminalStyle) -> tuple[str, Sequence[CountBar], list[str]]:
    """The line above the bars, the bars, and lines below; lines may be longer than the terminal is wide."""
    it = state.explanation
    if it is None:
        return terminal_text.line(state.outcome.message), (), _problem(state, look)
    head = f"{it.kind} {it.namespace}/{it.name}: {look.paint(state_style(it.state), it.state)}"
    clock = said.time_left(it)
    notes = (look.paint(style, words) for style, words in footnotes(it))
    below = [*_reasons(it, look), *notes, *_problem(state, look)]
    return head + (f", {clock}" if clock else ""), tuple(_bars(it)), below


def watch_line(state: ViewState) -> str:
    """The same in one line, without whatever changes while nothing happens."""
    it = state.explanation
    if it is None:
        return state.outcome.message
    whole, *parts = _bars(it)
    counted = ", ".join(f"{part.name} {part.count}" for part in parts)
    words = [f"{it.state} {whole.count} {whole.name}" + (f" ({counted})" if counted else "")]
    words += [said.missing_reason(lack) for lack in it.missing] or ([it.message] if it.message else [])
    return "; ".join(map(terminal_text.line, words))


def watch_warnings(state: ViewState) -> list[str]:
    """What stands above the lines: what may not be read, and that no controller decides."""
    it = state.explanation
    if it is None:
        return []
    nobody = it.controller is not None and it.controller.leads is not True
    return [*it.unknown, *([it.controller.message] if it.controller is not None and nobody else [])]


def _bars(it: Explanation) -> Iterator[CountBar]:
    yield CountBar("started" if it.source else "bound", it.started, it.expected)
    if len(it.parts) > 1:
        yield from (CountBar(terminal_text.line(part.name), part.started, part.expected) for part in it.parts)


def _reasons(it: Explanation, look: TerminalStyle) -> Iterator[str]:
    if it.message:
        yield terminal_text.line(it.message)
    for lack in it.missing[:MAX_REASONS]:
        created = lack.oldest_created_at
        since = "" if created is None else f", for {said.format_duration(it.now - created)}"
        head = f"{said.format_pod_count(lack.count)}: {look.paint('wait', lack.reason)}{since}"
        yield head + (f": {terminal_text.line(lack.message)}" if lack.message else "")
    more = it.missing[MAX_REASONS:]
    if more:
        yield f"and {said.format_pod_count(sum(lack.count for lack in more))} more for {len(more)} more reasons"


def _problem(state: ViewState, look: TerminalStyle) -> list[str]:
    return [look.paint("bad", state.problem)] if state.problem else []


# --- Where it goes ---------------------------------------------------------------------------------------------------


class LineScreen:
    """One line for every moment that is different from the one before; `tick` None: nothing is redrawn between them."""

    tick: float | None = None

    def __init__(self) -> None:
        self._last = self._problem = ""
        self._warned: set[str] = set()

    def show(self, state: ViewState, now: float) -> None:
        """Says it if it is news."""
        if state.problem and not self._problem:
            output.err(f"warning: {state.problem}")
        self._problem = state.problem
        for warning in watch_warnings(state):
            if warning not in self._warned:
                self._warned.add(warning)
                output.err(f"warning: {warning}")
        text = watch_line(state)
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

    def show(self, state: ViewState, now: float) -> None:
        """Draws it, at the time `now`."""
        if state.explanation is not None:
            state = replace(state, explanation=msgspec.structs.replace(state.explanation, now=now))
        self._live.update(self._drawn(state), refresh=True)

    def _drawn(self, state: ViewState) -> RenderableType:
        (head, bars, below), narrow = watch_frame(state, self._look), self._console.width < NARROW
        table = [_bar_table(bars, narrow=narrow)] if bars else []
        return Group(Text.from_ansi(head), *table, *map(Text.from_ansi, below))


def _bar_table(bars: Sequence[CountBar], *, narrow: bool) -> Table:
    table = Table.grid(padding=(0, 1), expand=narrow)
    if not narrow:
        table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(ratio=1 if narrow else None)
    table.add_column(no_wrap=True, justify="right")
    for bar in bars:
        drawn = ProgressBar(total=max(bar.expected, 1), completed=bar.done or 0, width=None if narrow else 40)
        table.add_row(*([] if narrow else [f"  {bar.name}"]), drawn, bar.count + (f" {bar.name}" if narrow else ""))
    return table


def standard_output() -> AbstractContextManager[LineScreen | LiveScreen]:
    """The right one for where this process prints."""
    stream = cast("TextIO", sys.stdout)
    moves = stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return LiveScreen(stream, output.style_of(stream)) if moves else nullcontext(LineScreen())
