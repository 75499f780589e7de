"""How a command that asks a cluster runs, and ends with the exit code that it returns."""

from collections.abc import Coroutine
from typing import Any, NoReturn

import typer

from jobset_gate.cli.options import LogLevel


def run_and_exit(command: Coroutine[Any, Any, int]) -> NoReturn:
    """Logs nothing but errors: what a person has to know, the command says itself."""
    import asyncio  # noqa: PLC0415 - see app.py

    from jobset_gate.cli import logs, signals  # noqa: PLC0415 - see app.py

    logs.configure(level=LogLevel.ERROR)
    raise typer.Exit(asyncio.run(signals.run_command(command)))
