"""Says how far long work is: a line every now and then."""

import sys
import time
from types import TracebackType
from typing import Self

_INTERVAL = 15.0  # seconds


class Progress:
    """`with Progress("building") as progress: progress.now("k8s.io/api")` prints `building 1:05: k8s.io/api`."""

    def __init__(self, what: str) -> None:
        self._what, self._begun, self._said = what, time.monotonic(), 0.0

    def __enter__(self) -> Self:
        self._print("...")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._print("done" if error is None else f"failed: {str(error) or type(error).__name__}")

    def now(self, state: str) -> None:
        """Tell the present state; most calls print nothing, since the last line is still fresh."""
        if time.monotonic() - self._said >= _INTERVAL:
            self._print(state)

    def _print(self, state: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._begun), 60)
        print(f"{self._what} {minutes}:{seconds:02d}: {state}", file=sys.stderr, flush=True)
        self._said = time.monotonic()
