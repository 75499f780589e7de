"""The demos as processes: on a pipe, on a terminal, and stopped by a signal."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from signal import SIGINT, default_int_handler, signal

from tests.fakes.service_process import TIMEOUT
from tests.repo.files import ROOT

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
ENVIRONMENT.pop("NO_COLOR", None)
COLOUR = re.compile(r"\x1b\[[0-9;]*[1-9][0-9;]*m")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@asynccontextmanager
async def started(
    *arguments: str, terminal: int | None = None, env: Mapping[str, str] = ENVIRONMENT
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command line as a process that is gone at the end."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "jobset_gate.cli", *arguments]
    out = pipe if terminal is None else terminal
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=terminal, stdout=out, stderr=pipe, env=env)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def everything(terminal: int) -> str:
    """All that is shown on a terminal until its other end is closed."""

    def pieces() -> Iterator[bytes]:
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                return
            if not piece:
                return
            yield piece

    try:
        return b"".join(pieces()).decode()
    finally:
        os.close(terminal)


@contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """A process that a shell has put into the background ignores SIGINT, and so do all that it starts."""
    before = signal(SIGINT, default_int_handler)
    try:
        yield
    finally:
        signal(SIGINT, before)


async def interrupted(*arguments: str, words: str, after: float) -> tuple[int | None, str, bytes]:
    """Ctrl-C so many seconds after those words have come: exit code, all output, and the errors."""
    with heeding_ctrl_c():
        async with started(*arguments) as process, asyncio.timeout(TIMEOUT):
            assert process.stdout is not None
            text = ""
            while words not in text:
                text += (await process.stdout.readline()).decode()
            await asyncio.sleep(after)  # of another process's life
            process.send_signal(SIGINT)
            out, err = await process.communicate()
    return process.returncode, text + out.decode(), err
