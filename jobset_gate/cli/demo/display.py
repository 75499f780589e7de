"""How the demo looks: bars that move on a terminal, plain lines everywhere else."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, Protocol, TextIO, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

REFRESH_SECONDS: Final = 0.125
LINE_SECONDS: Final = 1.0
"""At least so long between two plain lines of progress."""
_NARROW: Final = 60
"""Columns below which the counts get shorter names."""


class ProgressRow(Protocol):
    """One bar."""

    @property
    def name(self) -> str:
        """Its label."""

    @property
    def done(self) -> int:
        """How far it has got."""

    @property
    def expected(self) -> int:
        """How far it has to go."""

    @property
    def counts(self) -> str:
        """The numbers beside it."""


Row = TypeVar("Row", bound=ProgressRow)


class Display(Protocol):
    """Prints lines, and shows the progress of pods."""

    def say(self, text: str = "") -> None:
        """Print a line, which stays."""

    def following(
        self, look: Callable[[], Sequence[Row]], line: Callable[[Sequence[Row]], str]
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """Shows what `look` gives for as long as the block runs, and once more at its end; `line`: all of it in one."""


def display_for(stream: TextIO, speed: float = 1.0) -> Display:
    """Bars on a terminal, else lines. `speed`: seconds of the loop's time in one of the reader's."""
    terminal = stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return BarDisplay(stream, speed) if terminal else PlainDisplay(stream)


class PlainDisplay:
    """Plain lines: no colour, no cursor movements, one line of progress a second if there is any."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, text: str = "") -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    @contextlib.asynccontextmanager
    async def following(
        self, look: Callable[[], Sequence[Row]], line: Callable[[Sequence[Row]], str]
    ) -> AsyncIterator[None]:
        began, shown = asyncio.get_running_loop().time(), ""

        def show() -> None:
            nonlocal shown
            text = line(look())
            if text and text != shown:
                shown = text
                self.say(f"  {asyncio.get_running_loop().time() - began:5.1f}s  {text}")

        async with _ticking(show, LINE_SECONDS):
            yield


class BarDisplay:
    """A bar for each row, drawn by rich, which respects NO_COLOR."""

    def __init__(self, stream: TextIO, speed: float = 1.0) -> None:
        self._every = REFRESH_SECONDS * speed
        self._console = Console(file=stream, force_terminal=True, highlight=False, soft_wrap=True)

    def say(self, text: str = "") -> None:
        self._console.print(Text(text))

    @contextlib.asynccontextmanager
    async def following(
        self, look: Callable[[], Sequence[Row]], line: Callable[[Sequence[Row]], str]
    ) -> AsyncIterator[None]:
        del line  # there is room for all of them
        narrow = self._console.width < _NARROW
        bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=None if narrow else 40),
            TextColumn("{task.fields[counts]}", table_column=None),
            console=self._console,
            auto_refresh=False,
            expand=narrow,
        )
        tasks: dict[str, TaskID] = {}

        def show() -> None:
            for row in look():
                if row.name not in tasks:
                    tasks[row.name] = bars.add_task(row.name, total=row.expected, counts="")
                counts = f"{row.done}/{row.expected}" if narrow else row.counts
                bars.update(tasks[row.name], completed=row.done, counts=counts)
            bars.refresh()

        with bars:
            async with _ticking(show, self._every):
                yield


@contextlib.asynccontextmanager
async def _ticking(show: Callable[[], None], every: float) -> AsyncIterator[None]:
    async def tick() -> None:
        while True:
            show()
            await asyncio.sleep(every)

    task = asyncio.create_task(tick(), name="screen")
    try:
        yield
        show()
    finally:
        task.cancel()
        await asyncio.wait([task])  # not `await task`: its cancellation would look like our own
        if not task.cancelled():
            task.result()
