"""Says how far long work is: one changing line on a terminal, a plain line every now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self, TextIO

_EVERY_ON_TERMINAL = 0.2  # seconds
_EVERY_ELSEWHERE = 15.0


class Progress:
    """`with Progress("building") as progress: progress.now("k8s.io/api")` prints `building 1:05: k8s.io/api`."""

    def __init__(self, what: str, out: TextIO | None = None) -> None:
        self._what = what
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._every = _EVERY_ON_TERMINAL if self._terminal else _EVERY_ELSEWHERE
        self._begun = time.monotonic()
        self._said = 0.0

    def __enter__(self) -> Self:
        self._print("...")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._print("done" if error is None else f"failed: {str(error) or type(error).__name__}", last=True)

    def now(self, state: str) -> None:
        """Tell the present state; most calls print nothing, since the last line is still fresh."""
        if time.monotonic() - self._said >= self._every:
            self._print(state)

    def _print(self, state: str, *, last: bool = False) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._begun), 60)
        line = f"{self._what} {minutes}:{seconds:02d}: {state}"
        if self._terminal:
            print("\r\033[K" + line[:150], end="\n" if last else "", file=self._out, flush=True)
        else:
            print(line, file=self._out, flush=True)
        self._said = time.monotonic()
