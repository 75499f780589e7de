"""`completion`: the script that makes a shell complete commands, options and their choices."""

from typing import Annotated, Final, Literal

import typer
from typer import completion as shells

from jobset_gate.cli.app import COMPLETION
from jobset_gate.cli.options import new_app

EXECUTABLE: Final = "jobset-gate"
"""What is completed: kubectl asks its plugins in a way of its own."""
Shell = Literal["bash", "zsh", "fish"]
"""Those that there is a script for."""
app = new_app()


@app.command("completion", epilog="Example: {program} completion bash")
def completion(*, shell: Annotated[Shell, typer.Argument(help="The shell.", show_default=False)]) -> None:
    """Print a script that makes the shell complete `jobset-gate`: commands, options and their choices.

    bash: source <(jobset-gate completion bash). zsh: the same after compinit. fish: jobset-gate completion fish |
    source.
    """
    script = shells.get_completion_script(  # type: ignore[attr-defined]  # typer lists nothing of its own there
        prog_name=EXECUTABLE, complete_var=COMPLETION, shell=shell
    )
    typer.echo(script)
