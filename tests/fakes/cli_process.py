"""Command lines in processes of their own, on pipes and on terminals of any size, and how they end."""

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

from tests.fakes.cli_runner import CliResult
from tests.fakes.eventually import PATIENCE

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class CliProcess:
    """One that runs, with a pipe for a terminal; `err` is what it has said there, once it has ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process, self.err = process, ""
        self._listening = asyncio.create_task(self._listen())

    async def line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            shown = (await self._process.stdout.readline()).decode()
        if not shown:
            await self.ended()
        assert shown, f"it has ended: {self.err}"
        return shown

    async def until(self, word: str) -> str:
        """All lines up to the one with the word."""
        lines = [await self.line()]
        while word not in lines[-1]:
            lines.append(await self.line())
        return "".join(lines)

    async def rest(self) -> str:
        """All that it says until it ends."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return (await self._process.stdout.read()).decode()

    def leave(self) -> None:
        """Nobody reads its output any more."""
        transport = self._process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
        transport.close()

    async def interrupted(self, number: signal.Signals = signal.SIGINT) -> int:
        """Its exit code after Ctrl-C."""
        self._process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            await self._listening
            return await self._process.wait()

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        self.err = (await self._process.stderr.read()).decode()


@asynccontextmanager
async def started(
    kubeconfig: Path | None, *arguments: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[CliProcess]:
    """`jobset-gate ARGUMENTS`."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *_command(kubeconfig, *arguments), stdout=pipe, stderr=pipe, env=os.environ | (environment or {})
    )
    running = CliProcess(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.ended()


async def finished(kubeconfig: Path | None, *arguments: str) -> CliResult:
    """`jobset-gate ARGUMENTS`, and how it ended."""
    async with started(kubeconfig, *arguments) as process:
        out = await process.rest()
        return CliResult(await process.ended(), out, process.err)


def _command(kubeconfig: Path | None, *arguments: str) -> list[str]:
    where = () if kubeconfig is None else ("--kubeconfig", str(kubeconfig))
    return [sys.executable, "-m", "jobset_gate.cli", *arguments, *where]


# --- Terminals -------------------------------------------------------------------------------------------------------


class CliTerminal:
    """With a command on it; `drawn` is all that was written so far."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process, self._master = process, master
        self._news, self.drawn = asyncio.Event(), ""
        asyncio.get_running_loop().add_reader(master, self._read)

    async def until(self, *words: str) -> str:
        """Until it has said all of these since the last time; all of that in one line."""
        begin = len(self.drawn)
        async with asyncio.timeout(PATIENCE):
            while not all(word in flat(self.drawn[begin:]) for word in words):
                assert self._process.poll() is None, self.drawn
                self._news.clear()
                await self._news.wait()
        return flat(self.drawn[begin:])

    async def ended(self, number: signal.Signals | None = None) -> int:
        """Its exit code, after that signal if there is one."""
        if number is not None:
            self._process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
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
    kubeconfig: Path | None,
    *arguments: str,
    size: tuple[int, int] = (24, 80),
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[CliTerminal]:
    """`jobset-gate ARGUMENTS` on a terminal of that many lines and columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    os.set_blocking(master, False)
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    command, env = _command(kubeconfig, *arguments), kept | {"TERM": "xterm"} | dict(environment or {})
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env)  # noqa: ASYNC220, S603 - our own program; it starts at once
    os.close(slave)
    terminal = CliTerminal(process, master)
    try:
        yield terminal
    finally:
        if process.poll() is None:
            process.kill()
        await asyncio.to_thread(process.wait)
        terminal.close()
