"""The arguments that commands about single gangs have in common."""

from pathlib import Path
from typing import Annotated

import typer

Subjects = Annotated[
    list[str],
    typer.Argument(
        metavar="[jobset/|pod/|podgroup/]NAME...",
        help="A JobSet; with a prefix a pod (for its gang) or a pod group. gang/NAME is a pod group, too.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "-n", "--namespace", metavar="NAME", help="Where it is; otherwise the context's namespace.", show_default=False
    ),
]
ControllerConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The controller's settings, where they are not the usual ones.",
        show_default=False,
    ),
]
