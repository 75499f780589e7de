"""`get jobsets`, `get groups`, and `get gangs` for both: who waits for whom in a cluster, in one table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.controller_status import NO_GROUPS, NO_VERDICTS, controller_status
from jobset_gate.cli.fetch.jobsets import JOBSET_KIND, FetchedJobSet, GangSource
from jobset_gate.cli.fetch.pod_groups import PodGroupSource
from jobset_gate.cli.fetch.source import Permissions, ResourceSource
from jobset_gate.cli.invocation import Invocation
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
from jobset_gate.cli.printers import tables
from jobset_gate.cli.printers.documents import explanation_json, pod_group_json
from jobset_gate.cli.printers.items import ItemPrinter, PrintedItem
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.explain.podgroup import explain_pod_group
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

if TYPE_CHECKING:
    from jobset_gate.explain.model import ControllerStatus, Explanation
    from jobset_gate.podgroups.status import GroupStatus

WATCH_INTERVAL: Final = 0.5
"""Seconds between two prints of `-w`: what changes more often is printed once."""
_EXAMPLE: Final = "Example: {program} get groups -A -o wide"
_GANGS: Final = """Show everything that waits until it is complete: JobSets with a start barrier, and pod groups.

STARTED counts the pods of a JobSet that have started, or the pods of a group that are bound to a node. Reads the
API server only, so it works without a controller, and then says so. What you may not read is named.
"""
_GROUPS: Final = """Show groups of all five ways: how many are bound of how many, the phase, and why they wait.

Asks the API server only, so it works without a controller, and then says so. What you may not read is left
out and named; without the right to list nodes nobody can say here whether a group has room.
"""

app = new_app()
get = new_app(no_args_is_help=True, help="Show the gated JobSets and the pod groups of a cluster.", epilog=_EXAMPLE)
app.add_typer(get, name="get")


class Shown(StrEnum):
    """The kinds of gangs in a listing."""

    JOBSETS = "jobsets"
    GROUPS = "groups"
    GANGS = "gangs"
    """Both, in the same words."""


_JOBSETS, _POD_GROUPS = "JobSets", "pod groups"
_WORDS: Final = {
    Shown.JOBSETS: ("JobSet with a gate", "JobSets with a gate", {_JOBSETS}),
    Shown.GROUPS: ("group", "groups", {_POD_GROUPS}),
    Shown.GANGS: ("gang", "gangs", {_JOBSETS, _POD_GROUPS}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOptions:
    """What the command line asks for."""

    shown: Shown
    names: Sequence[str]
    all_namespaces: bool
    output: OutputFormat
    headers: bool
    watch: bool
    config: Path | None
    invocation: Invocation

    def selects(self, name: str) -> bool:
        """Whether that is one of the names, if any are given."""
        return not self.names or name in self.names


@get.command(
    "gangs",
    short_help="Show gated JobSets and pod groups, both in one table.",
    help=_GANGS,
    epilog="Example: {program} get gangs -n team",
)
@get.command("groups", short_help="Show the pod groups of a cluster.", help=_GROUPS, epilog=_EXAMPLE)
def get_any(
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
    """Show what the command is called after."""
    options = GetOptions(
        shown=Shown(str(ctx.info_name)),
        names=names or (),
        all_namespaces=all_namespaces,
        output=output,
        headers=not no_headers,
        watch=watch,
        config=config,
        invocation=Invocation(program(ctx), kubeconfig, context, namespace),
    )
    run_and_exit(run(options))


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
    get_any(**locals())


async def run(options: GetOptions) -> ExitCode:
    """Prints the listing; what the user has to know besides goes to standard error."""
    its = options.invocation
    if options.all_namespaces and options.names:
        raise CommandError("names are those of one namespace: leave out --all-namespaces", ExitCode.USAGE)
    reached = await access.load_access(its.kubeconfig, its.context)
    namespace = None if options.all_namespaces else its.namespace or reached.namespace
    without = NO_GROUPS if options.shown is Shown.GROUPS else NO_VERDICTS
    async with Client(reached) as client:
        controller = await controller_status(client, reached.namespace, without=without)
        listing = Listing(options, client, namespace, controller)
        return await (_watch(listing) if options.watch else _print_once(listing))


async def _print_once(listing: Listing) -> ExitCode:
    await asyncio.gather(*(it.load() for it in listing.sources))
    items = await listing.items()
    listing.printer.print_list(items)
    hidden = listing.permissions.hidden_kinds
    if not _all_found(items, listing) or listing.kinds <= hidden:
        return ExitCode.ERROR
    if not items:
        but = f"; {' and '.join(hidden)} cannot be seen" if hidden else ""
        out.err(f"No {listing.plural} found{listing.where}{but}.")
    return ExitCode.OK


async def _watch(listing: Listing) -> ExitCode:
    """Until it is interrupted; ends at once if a name was not found."""
    async with AsyncExitStack() as stack:
        for source in listing.sources:
            await stack.enter_async_context(source)
        for source in listing.sources:
            await source.ready()
        items = await listing.items()
        if not _all_found(items, listing):
            return ExitCode.ERROR
        while True:
            listing.printer.print_changes(items)
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
        out.err(f"error: {listing.singular} {name} not found{listing.where}")
    return not missing


# --- What is listed --------------------------------------------------------------------------------------------------


class Listing:
    """One table. `kinds`: as `Permissions.hidden_kinds` names them; without all of them there is nothing to show."""

    def __init__(
        self, options: GetOptions, client: Client, namespace: str | None, controller: ControllerStatus
    ) -> None:
        """`namespace` None: all of them."""
        self.options, self.permissions, shown = options, Permissions(), options.shown
        self.singular, self.plural, self.kinds = _WORDS[shown]
        self.where = f" in namespace {namespace}" if namespace else ""
        self._everywhere, self._controller = namespace is None, controller
        self._wide = options.output is OutputFormat.WIDE
        names = ("GroupList", "PHASE", "phase") if shown is Shown.GROUPS else ("GangList", "STATE", "state")
        self.printer = ItemPrinter(options.output, *names, headers=options.headers)
        rights, changed = self.permissions, asyncio.Event()
        self._jobsets = self._groups = None
        if shown is not Shown.GROUPS:
            alone = shown is Shown.JOBSETS
            self._jobsets = GangSource(client, namespace, rights, required=alone, changed=changed)
        if shown is not Shown.JOBSETS:
            settings, controlled = settings_file.read_groups(options.config), bool(controller.leads)
            self._groups = PodGroupSource(client, namespace, rights, settings, controlled=controlled, changed=changed)
        self.sources: list[ResourceSource] = [it for it in (self._jobsets, self._groups) if it is not None]

    async def items(self) -> list[PrintedItem]:
        """Everything that was read and is selected, as it is printed; JobSets first."""
        jobsets = self._jobsets.jobsets() if self._jobsets else []
        statuses = await self._groups.statuses() if self._groups else []
        pod_group = self._group if self.options.shown is Shown.GROUPS else self._pod_group
        found = [self._jobset(it) for it in jobsets if self.options.selects(it.name)]
        return found + [pod_group(it) for it in statuses if self.options.selects(tables.group_name(it))]

    def warnings(self) -> Iterator[str]:
        """What the user has to know besides: missing rights, and that no controller runs."""
        yield from self.permissions.missing
        if not self._controller.leads:
            yield self._controller.message
        strays = self._groups.unassigned_pods if self._groups and self.options.shown is Shown.GROUPS else 0
        if strays:
            free = self.options.invocation.command("jobset-gate groups ungate --all")
            yield f"{strays} pods carry our label and name no group any more; `{free}` frees them"

    def _jobset(self, it: FetchedJobSet) -> PrintedItem:
        return self._gang(it.explained(self._controller, self.permissions.missing), it.gang.jobset.created, JOBSET_KIND)

    def _pod_group(self, status: GroupStatus) -> PrintedItem:
        unknown = self.permissions.missing
        explanation = explain_pod_group(status, time.time(), controller=self._controller, unknown=unknown)
        return self._gang(explanation, status.created, "group", str(status.key.flavor))

    def _gang(self, explanation: Explanation, created: float, kind: str, design: str = "") -> PrintedItem:
        it, kinds = self.options.invocation.rewrite_explanation(explanation), self.options.shown is Shown.GANGS
        cells = tables.gang_cells(it, created, namespaces=self._everywhere, kinds=kinds, wide=self._wide)
        key = (it.kind, it.namespace, it.name, design)  # two designs may have groups of one name
        return PrintedItem(key, cells, lambda: explanation_json(it), f"{kind}/{it.name}")

    def _group(self, status: GroupStatus) -> PrintedItem:
        cells = tables.pod_group_cells(status, time.time(), namespaces=self._everywhere, wide=self._wide)
        key = (status.key.namespace, status.key.name, str(status.key.flavor))
        return PrintedItem(key, cells, lambda: pod_group_json(status), f"group/{tables.group_name(status)}")
