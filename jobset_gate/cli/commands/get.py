"""`get groups`: every group of a cluster in one table, whichever way it is said."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jobset_gate.cli.options import Context, Kubeconfig, LogLevel


class Output(StrEnum):
    """The form of what is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""
    get = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    example = f"Example: {program} get groups -A -o wide"
    app.add_typer(get, name="get", help="Show the pod groups of a cluster.", epilog=example)

    @get.command(
        "groups",
        short_help="Show the pod groups of a cluster.",
        epilog=example,
    )
    def groups(
        *,
        names: Annotated[
            list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these groups.", show_default=False)
        ] = None,
        namespace: Annotated[
            str | None,
            typer.Option(
                "-n",
                "--namespace",
                metavar="NAME",
                help="Groups of this namespace; otherwise of the context's.",
                show_default=False,
            ),
        ] = None,
        all_namespaces: Annotated[
            bool, typer.Option("-A", "--all-namespaces", help="Groups of all namespaces.")
        ] = False,
        output: Annotated[Output, typer.Option("-o", "--output", help="The form of what is printed.")] = Output.TABLE,
        no_headers: Annotated[bool, typer.Option("--no-headers", help="The table without its headers.")] = False,
        config: Annotated[
            Path | None,
            typer.Option(
                "--config",
                metavar="FILE",
                help="The controller's settings, where they are not the usual ones.",
                show_default=False,
            ),
        ] = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show groups of all five ways: how many are bound of how many, the phase, and why they wait.

        Asks the API server only, so it works without a controller, and then says so. What you may not read is left
        out and named; without the right to list nodes nobody can say here whether a group has room.
        """
        import asyncio  # noqa: PLC0415 - see app.py

        from jobset_gate.cli import logs  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.groups import listing  # noqa: PLC0415 - see app.py

        logs.configure(level=LogLevel.ERROR)
        wanted = listing.Wanted(
            names=names or (),
            namespace=namespace,
            all_namespaces=all_namespaces,
            output=output,
            headers=not no_headers,
            config=config,
        )
        raise typer.Exit(asyncio.run(listing.run(wanted, kubeconfig=kubeconfig, context=context)))
