"""`groups ungate`: removes our scheduling gates, when nobody else is there to do it."""

from typing import Annotated

import typer

from jobset_gate.cli.options import Context, Kubeconfig
from jobset_gate.cli.options import namespace as place
from jobset_gate.cli.runner import run_and_exit


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""
    groups = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    example = f"Example: {program} groups ungate --all --dry-run"
    app.add_typer(groups, name="groups", help="Free the pods of groups.", epilog=example)

    @groups.command(
        "ungate",
        short_help="Remove our scheduling gates from the pods of groups.",
        epilog=example,
    )
    def ungate(
        *,
        names: Annotated[
            list[str] | None, typer.Argument(metavar="NAME", help="The groups to free.", show_default=False)
        ] = None,
        everything: Annotated[
            bool, typer.Option("--all", help="All groups, of all namespaces unless --namespace is given.")
        ] = False,
        namespace: Annotated[
            str | None,
            place("Where the groups are; otherwise the context's namespace."),
        ] = None,
        yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
        concurrency: Annotated[
            int, typer.Option("--concurrency", metavar="N", min=1, max=512, help="Pods patched at once.")
        ] = 32,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Let the pods of groups be scheduled one by one, without waiting for the rest of their group.

        For when there is no controller any more. Needs neither it nor the webhook, only the rights to list and patch
        pods. Jobs and JobSets that were suspended to take a group back are resumed. With --all, and if no controller
        runs, what it has written down about groups is removed, too. A gate cannot be put back.
        """
        from jobset_gate.cli.commands import ungate_run  # noqa: PLC0415 - see app.py

        wanted = ungate_run.UngateOptions(
            names=tuple(names or ()),
            all_groups=everything,
            namespace=namespace,
            yes=yes,
            dry_run=dry_run,
            concurrency=concurrency,
        )
        run_and_exit(ungate_run.run(wanted, kubeconfig=kubeconfig, context=context))
