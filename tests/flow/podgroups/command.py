"""The command line as a person has it: a process of its own, with a kubeconfig."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How it ended."""

    code: int
    out: str
    err: str


async def jobset_gate(*arguments: str, kubeconfig: Path) -> CommandResult:
    """Runs `jobset-gate ...` against the cluster of a kubeconfig."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "jobset_gate.cli",
        *arguments,
        "--kubeconfig",
        str(kubeconfig),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return CommandResult(process.returncode or 0, out.decode(), err.decode())
