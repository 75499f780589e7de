"""The arguments that commands about single gangs have in common."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from jobset_gate.cli.durations import parse_duration
from jobset_gate.cli.options import namespace

_ANY: Final = "[jobset/|pod/|podgroup/]NAME"
_ABOUT: Final = "A JobSet; with a prefix a pod (for its gang) or a pod group. gang/NAME is a pod group, too."

Subjects = Annotated[list[str], typer.Argument(metavar=_ANY, help=_ABOUT, show_default=False)]
Subject = Annotated[str, typer.Argument(metavar=_ANY, help=_ABOUT, show_default=False)]
Namespace = Annotated[str | None, namespace("Where it is; otherwise the context's namespace.")]
ControllerConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The controller's settings, where they are not the usual ones.",
        show_default=False,
    ),
]


def timeout(about: str, *, default: bool | str = False) -> Any:
    """A length of time; `default` is what the help calls it."""
    return typer.Option("--timeout", metavar="DURATION", parser=parse_duration, help=about, show_default=default)
