"""The command line as a person has it: a process of its own, with a kubeconfig."""

import asyncio
import sys
from pathlib import Path

from tests.fakes.cli_runner import CliResult


async def jobset_gate(*arguments: str, kubeconfig: Path) -> CliResult:
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
    return CliResult(process.returncode or 0, out.decode(), err.decode())
