"""A child's side of the talk with its parent: a line of JSON in, a line of JSON out, until standard input ends."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

Json = dict[str, Any]
Command = Callable[..., Awaitable[Json]]

LONGEST_LINE = 16 * 1024 * 1024


async def serve(commands: Mapping[str, Command]) -> None:
    """Answers one command after the other. Returns when the parent closes the pipe, or is gone, whatever goes on."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    asked: asyncio.Queue[bytes] = asyncio.Queue()
    answering = asyncio.create_task(_execute(asked, commands))
    while line := await reader.readline():
        asked.put_nowait(line)
    answering.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await answering


async def _execute(asked: asyncio.Queue[bytes], commands: Mapping[str, Command]) -> None:
    while True:
        what: Json = msgspec.json.decode(await asked.get())
        try:
            answer = await commands[what.pop("do")](**what)
        except Exception:  # noqa: BLE001 - the parent raises it
            answer = {"error": traceback.format_exc()}
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


def memory() -> tuple[float, float]:
    """Resident memory of this process now and at its highest, in MiB."""
    facts = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, peak = (int(facts[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
    return now, peak


def usage() -> Json:
    """Seconds of CPU, and MiB of memory, that this process has used."""
    resident, peak = memory()
    return {"cpu": time.process_time(), "rss": resident, "peak": peak}
