"""`get jobsets`, `get groups`, and `get gangs` for both: who waits for whom in a cluster, in one table."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from jobset_gate.cli.looking.options import ControllerConfig
from jobset_gate.cli.options import Context, Kubeconfig, LogLevel


class Output(StrEnum):
    """The form of what is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Namespace = Annotated[
    str | None,
    typer.Option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="What is in this namespace; otherwise in the context's.",
        show_default=False,
    ),
]
Everywhere = Annotated[bool, typer.Option("-A", "--all-namespaces", help="What is in all namespaces.")]
Form = Annotated[Output, typer.Option("-o", "--output", help="The form of what is printed.")]
Headless = Annotated[bool, typer.Option("--no-headers", help="The table without its headers.")]
Only = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Only those of these names.", show_default=False)
]


def register(app: typer.Typer, program: str) -> None:
    """Adds the commands."""
    get = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    example = f"Example: {program} get groups -A -o wide"
    app.add_typer(get, name="get", help="Show the gated JobSets and the pod groups of a cluster.", epilog=example)

    @get.command(
        "jobsets",
        short_help="Show the JobSets that ask for a start barrier.",
        epilog=f"Example: {program} get jobsets -A",
    )
    def jobsets(
        *,
        names: Only = None,
        namespace: Namespace = None,
        all_namespaces: Everywhere = False,
        output: Form = Output.TABLE,
        no_headers: Headless = False,
        watch: Annotated[bool, typer.Option("-w", "--watch", help="Go on, and print what changes.")] = False,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show how many pods of each have started of how many, how much time is left, and what the rest waits for.

        Asks the API server only, so it works without a controller, and then says so. What you may not read is named.
        """
        wishes = {"names": names or (), "all_namespaces": all_namespaces, "output": output, "watch": watch}
        _gangs({**wishes, "namespace": namespace, "headers": not no_headers}, kubeconfig, context)

    @get.command(
        "gangs",
        short_help="Show gated JobSets and pod groups, both in one table.",
        epilog=f"Example: {program} get gangs -n team",
    )
    def gangs(
        *,
        names: Only = None,
        namespace: Namespace = None,
        all_namespaces: Everywhere = False,
        output: Form = Output.TABLE,
        no_headers: Headless = False,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show everything that waits until it is complete: JobSets with a start barrier, and pod groups.

        Of a JobSet the pods are counted that have started, of a group those that are bound to a node. Asks the API
        server only, so it works without a controller, and then says so. What you may not read is named.
        """
        wishes = {"names": names or (), "all_namespaces": all_namespaces, "output": output, "config": config}
        more = {"namespace": namespace, "headers": not no_headers, "groups": True}
        _gangs({**wishes, **more}, kubeconfig, context)

    @get.command(
        "groups",
        short_help="Show the pod groups of a cluster.",
        epilog=example,
    )
    def groups(
        *,
        names: Only = None,
        namespace: Namespace = None,
        all_namespaces: Everywhere = False,
        output: Form = Output.TABLE,
        no_headers: Headless = False,
        config: ControllerConfig = None,
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


def _gangs(wishes: dict[str, Any], kubeconfig: str | None, context: str | None) -> None:
    import asyncio  # noqa: PLC0415 - see app.py

    from jobset_gate.cli import logs  # noqa: PLC0415 - see app.py
    from jobset_gate.cli.verbs import gang_listing  # noqa: PLC0415 - see app.py

    logs.configure(level=LogLevel.ERROR)
    raise typer.Exit(
        asyncio.run(gang_listing.run(gang_listing.Wanted(**wishes), kubeconfig=kubeconfig, context=context))
    )
