"""`get jobsets`, `get groups`, and `get gangs` for both: who waits for whom in a cluster, in one table."""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import typer

from jobset_gate.cli.options import (
    AllNamespaces,
    Context,
    Kubeconfig,
    NamesArgument,
    NamespaceFilter,
    NoHeaders,
    OutputFormat,
    OutputOption,
    WatchOption,
)
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.cli.subject_options import ControllerConfig

Show = Callable[..., Coroutine[Any, Any, int]]
"""Takes what is wished, where to find the cluster, and the context."""


def register(app: typer.Typer, program: str) -> None:
    """Adds the commands."""
    get = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    example = f"Example: {program} get groups -A -o wide"
    app.add_typer(get, name="get", help="Show the gated JobSets and the pod groups of a cluster.", epilog=example)
    get.command(
        "jobsets",
        short_help="Show the JobSets that ask for a start barrier.",
        help="""Show how many pods of each have started of how many, how much time is left, and what the rest waits for.

        Asks the API server only, so it works without a controller, and then says so. What you may not read is named.
        """,
        epilog=f"Example: {program} get jobsets -A",
    )(_without_config(_command(_jobsets, program)))
    get.command(
        "gangs",
        short_help="Show gated JobSets and pod groups, both in one table.",
        help="""Show everything that waits until it is complete: JobSets with a start barrier, and pod groups.

        Of a JobSet the pods are counted that have started, of a group those that are bound to a node. Asks the API
        server only, so it works without a controller, and then says so. What you may not read is named.
        """,
        epilog=f"Example: {program} get gangs -n team",
    )(_command(_gangs, program))
    get.command(
        "groups",
        short_help="Show the pod groups of a cluster.",
        help="""Show groups of all five ways: how many are bound of how many, the phase, and why they wait.

        Asks the API server only, so it works without a controller, and then says so. What you may not read is left
        out and named; without the right to list nodes nobody can say here whether a group has room.
        """,
        epilog=example,
    )(_command(_groups, program))


def _command(show: Show, program: str) -> Callable[..., None]:
    """What the three have in common: their options."""

    def command(
        *,
        names: NamesArgument = None,
        namespace: NamespaceFilter = None,
        all_namespaces: AllNamespaces = False,
        output: OutputOption = OutputFormat.TABLE,
        no_headers: NoHeaders = False,
        watch: WatchOption = False,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        wishes = {
            "names": names or (),
            "namespace": namespace,
            "all_namespaces": all_namespaces,
            "output": output,
            "headers": not no_headers,
            "watch": watch,
            "config": config,
            "program": program,
        }
        run_and_exit(show(wishes, kubeconfig=kubeconfig, context=context))

    return command


def _without_config(command: Callable[..., None]) -> Callable[..., None]:
    """JobSets say themselves all that counts for them."""
    full = inspect.signature(command)
    kept = [it for it in full.parameters.values() if it.name != "config"]
    command.__signature__ = full.replace(parameters=kept)  # type: ignore[attr-defined]  # what inspect looks for
    return command


def _jobsets(wishes: dict[str, Any], **place: str | None) -> Coroutine[Any, Any, int]:
    from jobset_gate.cli.commands import get_gangs  # noqa: PLC0415 - see app.py

    return get_gangs.run(get_gangs.GangGetOptions(**wishes), **place)


def _gangs(wishes: dict[str, Any], **place: str | None) -> Coroutine[Any, Any, int]:
    return _jobsets({**wishes, "groups": True}, **place)


def _groups(wishes: dict[str, Any], **place: str | None) -> Coroutine[Any, Any, int]:
    from jobset_gate.cli.commands import get_pod_groups  # noqa: PLC0415 - see app.py
    from jobset_gate.cli.get_options import GetOptions  # noqa: PLC0415 - see app.py

    return get_pod_groups.run(GetOptions(**wishes), **place)
