"""Command lines in processes of their own, for what only such a one shows: pipes, terminals, interruptions."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

TIMEOUT = 90


class CliProcess:
    """One that runs, with a pipe for a terminal; `err` is what it has said there, once it has ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process, self.err = process, ""
        self._listening = asyncio.create_task(self._listen())

    async def line(self) -> str:
        """The next one."""
        assert self._process.stdout is not None
        async with asyncio.timeout(TIMEOUT):
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
        async with asyncio.timeout(TIMEOUT):
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
        """Its exit code."""
        async with asyncio.timeout(TIMEOUT):
            await self._listening
            return await self._process.wait()

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        self.err = (await self._process.stderr.read()).decode()


@asynccontextmanager
async def started(
    kubeconfig: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[CliProcess]:
    """`jobset-gate ARGUMENTS`."""
    words = ("-m", "jobset_gate.cli", *arguments, "--kubeconfig", str(kubeconfig))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=pipe, stderr=pipe, env=os.environ | (environment or {})
    )
    running = CliProcess(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.ended()
