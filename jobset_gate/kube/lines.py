"""Splits the body of a watch into lines, within a limit of memory."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST_LINE = 8 * 1024 * 1024  # bytes; etcd's limit for an object is 1.5 MiB, JSON escapes can swell it
TOO_LONG = b""  # stands for a line that was longer and was dropped


class LineSplitter:
    """feed() takes chunks as they come and returns the complete lines, TOO_LONG for each dropped one."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._partial: list[bytes] = []  # pieces of an incomplete line, joined once, so that long lines cost O(n)
        self._size = 0
        self._dropping = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, without blank ones. Consume them all before the next chunk."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = self._finish(end)
            if line is not None:
                yield line
        self._keep(rest)

    def end(self) -> bytes | None:
        """What came after the last newline: an incomplete line, or None."""
        return self._finish(b"")

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._longest:
            self._dropping = True
            self._partial.clear()
        if piece and not self._dropping:
            self._partial.append(piece)

    def _finish(self, piece: bytes) -> bytes | None:
        self._keep(piece)
        line = TOO_LONG if self._dropping else b"".join(self._partial)
        complete = self._dropping or bool(line.strip())
        self._partial.clear()
        self._size, self._dropping = 0, False
        return line if complete else None
