"""`timeline`: who was created, scheduled, pulled, started, released and running when, and what the wait has cost."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jobset_gate.cli.options import Context, Kubeconfig
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.cli.subject_options import ControllerConfig, Namespace


class TimelineFormat(StrEnum):
    """The form of what is printed."""

    TABLE = "table"
    WIDE = "wide"
    BARS = "bars"
    JSON = "json"
    YAML = "yaml"
    SVG = "svg"


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "timeline",
        short_help="Show how a gang started: who came when.",
        epilog=f"Example: {program} timeline train -o svg --output-file train.svg",
    )
    def timeline(
        *,
        name: Annotated[
            str,
            typer.Argument(
                metavar="[jobset/|podgroup/]NAME",
                help="A JobSet; with a prefix a pod group. gang/NAME is a pod group, too.",
                show_default=False,
            ),
        ],
        namespace: Namespace = None,
        output: Annotated[
            TimelineFormat, typer.Option("-o", "--output", help="The form: bars are plain letters, svg is a picture.")
        ] = TimelineFormat.TABLE,
        output_file: Annotated[
            Path | None,
            typer.Option(
                "--output-file", metavar="FILE", help="Write it there instead of printing it.", show_default=False
            ),
        ] = None,
        every: Annotated[bool, typer.Option("--all", help="A table of all pods, however many there are.")] = False,
        price: Annotated[
            list[str] | None,
            typer.Option(
                "--price",
                metavar="[RESOURCE=]NUMBER",
                help="What a device costs for an hour: of every kind, or of this one. May be repeated.",
                show_default=False,
            ),
        ] = None,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show the present attempt of a JobSet's gang, pod by pod: created, scheduled, barrier's image pulled, barrier
        started, released, running; the start skew; and how long devices stood idle at the gate. Of a pod group the
        present generation: created, opened, bound, running; when it was gathered; the skew of its placement; and how
        long devices had pods that could not work yet.

        Asks the API server only, so it works without a controller. Pulls are told by Events, which live an hour;
        what the cluster no longer knows is shown as such, never guessed.
        """
        from jobset_gate.cli.commands import timeline_run  # noqa: PLC0415 - see app.py

        wanted = timeline_run.TimelineOptions(
            name,
            namespace=namespace,
            output=output,
            file=output_file,
            every=every,
            price=price or (),
            config=config,
        )
        run_and_exit(timeline_run.run(wanted, kubeconfig=kubeconfig, context=context))
