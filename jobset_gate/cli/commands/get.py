"""`get jobsets`, `get groups`, and `get gangs` for both: who waits for whom in a cluster, in one table."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

import typer

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.controller_status import NO_GROUPS, NO_VERDICTS, controller_status
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.listing import GangListing, GetOptions, Listing, ListTarget, PodGroupListing
from jobset_gate.cli.options import (
    AllNamespaces,
    Context,
    ControllerConfig,
    Kubeconfig,
    NamesArgument,
    NamespaceFilter,
    NoHeaders,
    OutputFormat,
    OutputOption,
    WatchOption,
    new_app,
    program,
)
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.items import ItemPrinter, PrintedItem
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

WATCH_INTERVAL: Final = 0.5
"""Seconds between two prints of `-w`: what changes more often is printed once."""
_EXAMPLE: Final = "Example: {program} get groups -A -o wide"

app = new_app()
get = new_app(no_args_is_help=True, help="Show the gated JobSets and the pod groups of a cluster.", epilog=_EXAMPLE)
app.add_typer(get, name="get")

MakeListing = Callable[[GetOptions, ListTarget], Listing]


@get.command(
    "jobsets",
    short_help="Show the JobSets that ask for a start barrier.",
    epilog="Example: {program} get jobsets -A",
)
def get_jobsets(
    ctx: typer.Context,
    *,
    names: NamesArgument = None,
    namespace: NamespaceFilter = None,
    all_namespaces: AllNamespaces = False,
    output: OutputOption = OutputFormat.TABLE,
    no_headers: NoHeaders = False,
    watch: WatchOption = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show how many pods of each have started of how many, how much time is left, and what the rest waits for.

    Asks the API server only, so it works without a controller, and then says so. What you may not read is named.
    """
    options = GetOptions(
        names=names or (),
        all_namespaces=all_namespaces,
        output=output,
        headers=not no_headers,
        watch=watch,
        invocation=Invocation(program(ctx), kubeconfig, context, namespace),
    )
    run_and_exit(run(options, lambda options, target: GangListing(options, target, groups=False)))


@get.command(
    "gangs",
    short_help="Show gated JobSets and pod groups, both in one table.",
    epilog="Example: {program} get gangs -n team",
)
def get_gangs(
    ctx: typer.Context,
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
    """Show everything that waits until it is complete: JobSets with a start barrier, and pod groups.

    Of a JobSet the pods are counted that have started, of a group those that are bound to a node. Asks the API
    server only, so it works without a controller, and then says so. What you may not read is named.
    """
    options = GetOptions(
        names=names or (),
        all_namespaces=all_namespaces,
        output=output,
        headers=not no_headers,
        watch=watch,
        config=config,
        invocation=Invocation(program(ctx), kubeconfig, context, namespace),
    )
    run_and_exit(run(options, lambda options, target: GangListing(options, target, groups=True)))


@get.command("groups", short_help="Show the pod groups of a cluster.", epilog=_EXAMPLE)
def get_groups(
    ctx: typer.Context,
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
    """Show groups of all five ways: how many are bound of how many, the phase, and why they wait.

    Asks the API server only, so it works without a controller, and then says so. What you may not read is left
    out and named; without the right to list nodes nobody can say here whether a group has room.
    """
    options = GetOptions(
        names=names or (),
        all_namespaces=all_namespaces,
        output=output,
        headers=not no_headers,
        watch=watch,
        config=config,
        invocation=Invocation(program(ctx), kubeconfig, context, namespace),
    )
    run_and_exit(run(options, PodGroupListing, without=NO_GROUPS))


async def run(options: GetOptions, make_listing: MakeListing, without: str = NO_VERDICTS) -> ExitCode:
    """Prints the listing; what the user has to know besides goes to standard error."""
    its = options.invocation
    if options.all_namespaces and options.names:
        raise CommandError("names are those of one namespace: leave out --all-namespaces", ExitCode.USAGE)
    reached = await access.load_access(its.kubeconfig, its.context)
    namespace = None if options.all_namespaces else its.namespace or reached.namespace
    async with Client(reached) as client:
        controller = await controller_status(client, reached.namespace, without=without)
        listing = make_listing(options, ListTarget(client, namespace, controller))
        return await (_watch(listing) if options.watch else _print_once(listing))


async def _print_once(listing: Listing) -> ExitCode:
    await asyncio.gather(*(it.load() for it in listing.sources))
    items = await listing.items()
    ItemPrinter(listing.form).print_list(items)
    hidden = listing.permissions.hidden_kinds
    if not _all_found(items, listing) or listing.kinds <= hidden:
        return ExitCode.ERROR
    if not items:
        but = f"; {' and '.join(hidden)} cannot be seen" if hidden else ""
        out.err(f"No {listing.plural} found{_where(listing)}{but}.")
    return ExitCode.OK


async def _watch(listing: Listing) -> ExitCode:
    """Until it is interrupted; ends at once if a name was not found."""
    printer = ItemPrinter(listing.form)
    async with AsyncExitStack() as stack:
        for source in listing.sources:
            await stack.enter_async_context(source)
        for source in listing.sources:
            await source.ready()
        items = await listing.items()
        if not _all_found(items, listing):
            return ExitCode.ERROR
        while True:
            printer.print_changes(items)
            await listing.sources[0].change()
            await asyncio.sleep(WATCH_INTERVAL)
            for source in listing.sources:
                source.check()
            items = await listing.items()


def _all_found(items: list[PrintedItem], listing: Listing) -> bool:
    """Prints the warnings, and names that were not found."""
    for line in listing.warnings():
        out.err(f"warning: {line}")
    found = {it.name.partition("/")[2] for it in items}
    missing = [it for it in dict.fromkeys(listing.options.names) if it not in found]
    for name in missing:
        out.err(f"error: {listing.singular} {name} not found{_where(listing)}")
    return not missing


def _where(listing: Listing) -> str:
    namespace = listing.target.namespace
    return f" in namespace {namespace}" if namespace else ""
