"""`completion`: the script that makes a shell complete commands, options and their choices."""

import os
from enum import StrEnum
from typing import Annotated

import typer

EXECUTABLE = "jobset-gate"
"""What is completed: kubectl asks its plugins in a way of its own."""
VARIABLE = "_JOBSET_GATE_COMPLETE"
"""Of the environment: set by the scripts when they ask for what might come next."""


class Shell(StrEnum):
    """Those that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""
    if VARIABLE in os.environ:
        from typer import completion as shells  # noqa: PLC0415 - see app.py

        shells.completion_init()  # type: ignore[attr-defined]  # typer lists nothing of its own there

    @app.command(
        "completion",
        short_help="Print the completion script of a shell.",
        epilog=f"Example: {program} completion bash",
    )
    def completion(*, shell: Annotated[Shell, typer.Argument(help="The shell.", show_default=False)]) -> None:
        """Print a script that makes the shell complete `jobset-gate`: commands, options and their choices.

        bash: source <(jobset-gate completion bash). zsh: the same after compinit. fish: jobset-gate completion fish |
        source.
        """
        from typer import completion as shells  # noqa: PLC0415 - see app.py

        script = shells.get_completion_script(  # type: ignore[attr-defined]  # as above
            prog_name=EXECUTABLE, complete_var=VARIABLE, shell=shell.value
        )
        typer.echo(script)
