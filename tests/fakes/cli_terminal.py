"""Command lines on a terminal of any size: what they draw, and how they leave it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

TIMEOUT = 90
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class CliTerminal:
    """With a command on it; `drawn` is all that was written so far."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process, self._master = process, master
        self._news, self.drawn = asyncio.Event(), ""
        asyncio.get_running_loop().add_reader(master, self._read)

    async def until(self, *words: str) -> str:
        """Until it has said all of these since the last time; all of that in one line."""
        begin = len(self.drawn)
        async with asyncio.timeout(TIMEOUT):
            while not all(word in flat(self.drawn[begin:]) for word in words):
                assert self._process.poll() is None, self.drawn
                self._news.clear()
                await self._news.wait()
        return flat(self.drawn[begin:])

    async def ended(self, number: signal.Signals | None = None) -> int:
        """Its exit code, after that signal if there is one."""
        if number is not None:
            self._process.send_signal(number)
        async with asyncio.timeout(TIMEOUT):
            code = await asyncio.to_thread(self._process.wait)
        self._read()
        return code

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)

    def _read(self) -> None:
        try:
            self.drawn += os.read(self._master, 1 << 16).decode(errors="replace")
        except (BlockingIOError, OSError):  # it has ended, and says so in its own way
            asyncio.get_running_loop().remove_reader(self._master)
        self._news.set()


def plain(text: str) -> str:
    """Without colours and movements."""
    return _SEQUENCE.sub("", text)


def flat(text: str) -> str:
    """As one line, whatever was wrapped."""
    return " ".join(plain(text).split())


@asynccontextmanager
async def on_terminal(
    kubeconfig: Path, *arguments: str, size: tuple[int, int] = (24, 80), environment: Mapping[str, str] | None = None
) -> AsyncIterator[CliTerminal]:
    """`jobset-gate ARGUMENTS` on a terminal of that many lines and columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    os.set_blocking(master, False)
    words = [sys.executable, "-m", "jobset_gate.cli", *arguments, "--kubeconfig", str(kubeconfig)]
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program; it starts at once
        words, stdin=slave, stdout=slave, stderr=slave, env=kept | {"TERM": "xterm"} | dict(environment or {})
    )
    os.close(slave)
    terminal = CliTerminal(process, master)
    try:
        yield terminal
    finally:
        if process.poll() is None:
            process.kill()
        await asyncio.to_thread(process.wait)
        terminal.close()
