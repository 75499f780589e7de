"""`release` and `bypass`: a gate opened by hand, for now or for good, audited by an Event."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from jobset_gate.cli.options import Context, Kubeconfig
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.cli.subject_options import Namespace
from jobset_gate.cli.subject_options import timeout as limit


class DryRun(StrEnum):
    """Who does as if."""

    NONE = "none"
    SERVER = "server"


JobSetArgument = Annotated[str, typer.Argument(metavar="[jobset/]NAME", help="The JobSet.", show_default=False)]
YesOption = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]
DryRunOption = Annotated[
    DryRun, typer.Option("--dry-run", help="server: have the API server check everything, and change nothing.")
]


def register(app: typer.Typer, program: str) -> None:
    """Adds the commands."""

    @app.command(
        "release",
        short_help="Open the gate of a gang's present generation by hand.",
        epilog=f"Example: {program} release train -n team",
    )
    def release(
        *,
        name: JobSetArgument,
        yes: YesOption = False,
        dry_run: DryRunOption = DryRun.NONE,
        timeout: Annotated[
            float,
            limit("How long to wait for it, such as 30s or 5m.", default="1m"),
        ] = 60.0,
        namespace: Namespace = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Let the pods that are there go now, whoever is missing. After a restart the gang is gated again.

        Sets the annotation that opens the gate, waits until the controller has decided, and takes it away again, also
        when it is interrupted. An Event on the JobSet says who did it. Needs the right to get, list, watch and patch
        JobSets and to create Events. Ends with exit code 3 if nobody has decided in time.
        """
        _run(
            {"name": name, "for_good": False, "sure": yes, "seconds": timeout, "program": program},
            (namespace, kubeconfig, context),
            dry_run,
        )

    @app.command(
        "bypass",
        short_help="Open a gang's gate for good, restarts included.",
        epilog=f"Example: {program} bypass train -n team --dry-run=server",
    )
    def bypass(
        *,
        name: JobSetArgument,
        yes: YesOption = False,
        dry_run: DryRunOption = DryRun.NONE,
        namespace: Namespace = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Let all pods of a JobSet go, now and after every restart, by an annotation that stays.

        An Event on the JobSet says who did it. Needs the right to get and patch JobSets and to create Events. A gang
        that has timed out stays so until it restarts.
        """
        _run(
            {"name": name, "for_good": True, "sure": yes, "program": program}, (namespace, kubeconfig, context), dry_run
        )


def _run(wishes: dict[str, Any], place: tuple[str | None, str | None, str | None], dry_run: DryRun) -> None:
    """The place: namespace, kubeconfig, context."""
    from jobset_gate.cli.commands import release_run  # noqa: PLC0415 - see app.py

    namespace, kubeconfig, context = place
    wanted = release_run.ReleaseOptions(namespace=namespace, dry_run=dry_run is DryRun.SERVER, **wishes)
    run_and_exit(release_run.run(wanted, kubeconfig=kubeconfig, context=context))
