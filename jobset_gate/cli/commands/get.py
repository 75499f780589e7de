"""`get jobsets`, `get groups`, and `get gangs` for both: who waits for whom in a cluster, in one table."""

from collections.abc import Coroutine
from typing import Any

import typer

from jobset_gate.cli.looking.options import ControllerConfig
from jobset_gate.cli.options import (
    Context,
    Everywhere,
    Headless,
    Kubeconfig,
    LogLevel,
    Only,
    Output,
    Printed,
    Watched,
    Within,
)

_Asked = tuple[list[str] | None, str | None, bool, Output, bool, bool]
"""Names, namespace, all namespaces, output, no headers, watch."""
_NAMES = ("names", "namespace", "all_namespaces", "output", "headers", "watch")


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
        namespace: Within = None,
        all_namespaces: Everywhere = False,
        output: Printed = Output.TABLE,
        no_headers: Headless = False,
        watch: Watched = False,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show how many pods of each have started of how many, how much time is left, and what the rest waits for.

        Asks the API server only, so it works without a controller, and then says so. What you may not read is named.
        """
        asked = (names, namespace, all_namespaces, output, no_headers, watch)
        _gangs(asked, {"program": program}, kubeconfig, context)

    @get.command(
        "gangs",
        short_help="Show gated JobSets and pod groups, both in one table.",
        epilog=f"Example: {program} get gangs -n team",
    )
    def gangs(
        *,
        names: Only = None,
        namespace: Within = None,
        all_namespaces: Everywhere = False,
        output: Printed = Output.TABLE,
        no_headers: Headless = False,
        watch: Watched = False,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show everything that waits until it is complete: JobSets with a start barrier, and pod groups.

        Of a JobSet the pods are counted that have started, of a group those that are bound to a node. Asks the API
        server only, so it works without a controller, and then says so. What you may not read is named.
        """
        asked = (names, namespace, all_namespaces, output, no_headers, watch)
        _gangs(asked, {"program": program, "groups": True, "config": config}, kubeconfig, context)

    @get.command(
        "groups",
        short_help="Show the pod groups of a cluster.",
        epilog=example,
    )
    def groups(
        *,
        names: Only = None,
        namespace: Within = None,
        all_namespaces: Everywhere = False,
        output: Printed = Output.TABLE,
        no_headers: Headless = False,
        watch: Watched = False,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show groups of all five ways: how many are bound of how many, the phase, and why they wait.

        Asks the API server only, so it works without a controller, and then says so. What you may not read is left
        out and named; without the right to list nodes nobody can say here whether a group has room.
        """
        from jobset_gate.cli.groups import listing  # noqa: PLC0415 - see app.py

        asked = (names, namespace, all_namespaces, output, no_headers, watch)
        wanted = listing.Wanted(**_wishes(asked), config=config, program=program)
        _end(listing.run(wanted, kubeconfig=kubeconfig, context=context))


def _gangs(asked: _Asked, more: dict[str, Any], kubeconfig: str | None, context: str | None) -> None:
    from jobset_gate.cli.verbs import gang_listing  # noqa: PLC0415 - see app.py

    wanted = gang_listing.Wanted(**_wishes(asked), **more)
    _end(gang_listing.run(wanted, kubeconfig=kubeconfig, context=context))


def _wishes(asked: _Asked) -> dict[str, Any]:
    wishes = dict(zip(_NAMES, asked, strict=True))
    return wishes | {"names": asked[0] or (), "headers": not wishes["headers"]}


def _end(work: Coroutine[Any, Any, Any]) -> None:
    import asyncio  # noqa: PLC0415 - see app.py

    from jobset_gate.cli import logs  # noqa: PLC0415 - see app.py

    logs.configure(level=LogLevel.ERROR)
    raise typer.Exit(asyncio.run(work))
