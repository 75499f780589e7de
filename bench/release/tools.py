"""Runs docker, kubectl and the like."""

from __future__ import annotations

import asyncio
import shlex


class ToolFailed(Exception):
    """A program ended with another code than 0; says what it was and what it said."""


async def output(*command: str, stdin: bytes | None = None) -> str:
    """What the program prints; raises ToolFailed. It does not outlive a cancelled caller."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe if stdin is not None else asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await process.communicate(stdin)
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        said = err.decode(errors="replace").strip()[-1000:]
        raise ToolFailed(f"{shlex.join(command)[:300]} ended with {process.returncode}: {said}")
    return out.decode(errors="replace")
