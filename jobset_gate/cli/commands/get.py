"""`get jobsets`, `get groups`, and `get gangs` for all: what waits in a cluster, and for what, in one table."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from jobset_gate.barrier.source import Source
from jobset_gate.cli.cluster import ClusterOptions, Invocation
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.controller_status import NO_GROUPS, NO_VERDICTS, controller_status
from jobset_gate.cli.fetch.gangs import FetchedGang, GangSource, kubectl_name
from jobset_gate.cli.fetch.pod_groups import PodGroupSource
from jobset_gate.cli.fetch.source import Permissions, ResourceSource, has_fields
from jobset_gate.cli.options import AliasGroup, ControllerConfig, new_app, option
from jobset_gate.cli.options import namespace as namespace_option
from jobset_gate.cli.printers import listing as tables
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.documents import pod_group_json
from jobset_gate.cli.printers.listing import (
    CHOICES,
    ItemPrinter,
    Output,
    OutputFormat,
    PrintedItem,
    parse_output,
    parse_sort_by,
    sort_documents,
)
from jobset_gate.cli.settings_file import read_groups
from jobset_gate.explain.gang import explain_pod_group
from jobset_gate.explain.model import ControllerStatus, Explanation
from jobset_gate.explain.text import explanation_json
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.settings import Groups
from jobset_gate.sources.table import JOBSET, SOURCES

WATCH_INTERVAL: Final = 0.5
"""Seconds between two prints of `-w`: what changes more often is printed once."""
_EXAMPLE: Final = "Example: {program} get groups -A -o wide"

app = new_app()
get = new_app(
    cls=AliasGroup,
    no_args_is_help=True,
    help="Show the gated JobSets, Jobs and LeaderWorkerSets, the start groups and the pod groups of a cluster.",
    epilog=_EXAMPLE,
)
app.add_typer(get, name="get")


class Shown(StrEnum):
    """The kinds of gangs in a listing."""

    JOBSETS = "jobsets"
    GROUPS = "groups"
    GANGS = "gangs"
    """All, in the same words."""


SourceName = StrEnum("SourceName", {name.upper(): name for name in SOURCES})  # type: ignore[misc]  # of the table
_JOBSETS, _POD_GROUPS = "JobSets", "pod groups"
_WORDS: Final = {
    Shown.JOBSETS: ("JobSet with a gate", "JobSets with a gate", {_JOBSETS}),
    Shown.GROUPS: ("group", "groups", {_POD_GROUPS}),
    Shown.GANGS: ("gang", "gangs", {*(f"{it.kind}s" for it in SOURCES.values()), _POD_GROUPS}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOptions:
    """What the command line asks for."""

    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Only those of these names.", show_default=False)
    ] = None
    namespace: Annotated[str | None, namespace_option("What is in this namespace; otherwise in the context's.")] = None
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="What is in all namespaces.")] = False
    output: Annotated[
        Output,
        option("-o --output", "FORM", f"The form of what is printed: {CHOICES}.", parser=parse_output, default="table"),
    ] = Output()  # noqa: RUF009 - it is frozen
    selector: Annotated[
        str,
        option("-l --selector", "SELECTOR", "Only what has these labels, such as team=a,tier!=test.", default=False),
    ] = ""
    field_selector: Annotated[
        str, option("--field-selector", "SELECTOR", "Only what has these fields: metadata.name=NAME.", default=False)
    ] = ""
    sort_by: Annotated[
        Any, option("--sort-by", "PATH", "Sort by what stands there in -o json, as .secondsLeft.", parser=parse_sort_by)
    ] = None
    no_headers: Annotated[bool, typer.Option("--no-headers", help="The table without its headers.")] = False
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Go on, and print what changes.")] = False

    def selects(self, namespace: str, name: str) -> bool:
        """Whether that is one of the names, or a group of it, if any are given, and has the fields."""
        named = not self.names or name in self.names or name.partition("/")[0] in self.names
        return named and has_fields(self.field_selector, namespace, name)


@get.command(
    "gangs",
    short_help="Show what waits in start barriers and in pod groups, all in one table.",
    epilog="Example: {program} get gangs -n team",
)
async def get_gangs(
    ctx: typer.Context,
    *,
    options: GetOptions,
    source: Annotated[
        SourceName | None, typer.Option("--source", help="Only gangs with a start barrier, of this source.")
    ] = None,
    config: ControllerConfig = None,
    cluster: ClusterOptions,
) -> ExitCode:
    """Show all that waits until it is complete: gated JobSets and Jobs, groups of LeaderWorkerSets, start groups, and
    pod groups.

    STARTED counts the pods of a gang that have started, or the pods of a group that are bound to a node. Reads the
    API server only, so it works without a controller, and then says so. What you may not read is named.
    """
    return await _get(ctx, options, cluster, config, tuple(SOURCES.values()) if source is None else (SOURCES[source],))


@get.command("groups", short_help="Show the pod groups of a cluster.", epilog=_EXAMPLE)
async def get_groups(
    ctx: typer.Context, *, options: GetOptions, config: ControllerConfig = None, cluster: ClusterOptions
) -> ExitCode:
    """Show groups of all five ways: how many are bound of how many, the phase, and why they wait.

    Asks the API server only, so it works without a controller, and then says so. What you may not read is left
    out and named; without the right to list nodes nobody can say here whether a group has room.
    """
    return await _get(ctx, options, cluster, config, ())


@get.command(
    "jobsets", short_help="Show the JobSets that ask for a start barrier.", epilog="Example: {program} get jobsets -A"
)
async def get_jobsets(ctx: typer.Context, *, options: GetOptions, cluster: ClusterOptions) -> ExitCode:
    """Show how many pods of each have started of how many, how much time is left, and what the rest waits for.

    Asks the API server only, so it works without a controller, and then says so. What you may not read is named.
    """
    return await _get(ctx, options, cluster, None, (JOBSET,))


async def _get(
    ctx: typer.Context, options: GetOptions, cluster: ClusterOptions, config: Path | None, sources: Sequence[Source]
) -> ExitCode:
    invocation = Invocation(ctx, options.namespace, cluster)
    return await run(Shown(str(ctx.info_name)), sources, options, read_groups(config), invocation)


async def run(
    shown: Shown, sources: Sequence[Source], options: GetOptions, settings: Groups, its: Invocation
) -> ExitCode:
    """Prints the listing; warnings go to standard error. `sources`: of gangs with a start barrier, none, one or all."""
    if options.all_namespaces and options.names:
        raise CommandError("names are those of one namespace: leave out --all-namespaces", ExitCode.USAGE)
    if options.names and (options.selector or options.field_selector):
        raise CommandError("give names or a selector, not both", ExitCode.USAGE)
    has_fields(options.field_selector, "", "")  # before anything is read
    if options.watch and options.sort_by:
        out.err("warning: with --watch --sort-by is ignored")
    without = NO_GROUPS if shown is Shown.GROUPS else NO_VERDICTS
    async with its.cluster.connect() as client:
        own = client.access.namespace
        namespace = None if options.all_namespaces else its.namespace or own
        controller = await controller_status(client, own, without=without)
        listing = Listing(
            shown, sources, options, its, settings, client=client, namespace=namespace, controller=controller
        )
        if options.watch and options.selector:  # an informer would try a wrong one again and again
            with suppress(Forbidden):
                await client.list(PODS, namespace, label_selector=options.selector, limit=1)
        return await (_watch(listing) if options.watch else _print_once(listing))


async def _print_once(listing: "Listing") -> ExitCode:
    await asyncio.gather(*(it.load() for it in listing.sources))
    items = await listing.items()
    if listing.options.sort_by and items:
        items = sort_documents([(it.document(), it) for it in items], listing.options.sort_by)
    listing.printer.print_list(items)
    hidden = listing.permissions.hidden_kinds
    if not _all_found(items, listing) or listing.kinds <= hidden:
        return ExitCode.ERROR
    if not items:
        but = f"; {' and '.join(hidden)} cannot be seen" if hidden else ""
        out.err(f"No {listing.plural} found{listing.where}{but}.")
    return ExitCode.OK


async def _watch(listing: "Listing") -> ExitCode:
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


def _all_found(items: list[PrintedItem], listing: "Listing") -> bool:
    """Prints the warnings, and names that were not found."""
    for line in listing.warnings():
        out.err(f"warning: {line}")
    found = {it.name.partition("/")[2] for it in items}
    found |= {it.partition("/")[0] for it in found}
    missing = [it for it in dict.fromkeys(listing.options.names or ()) if it not in found]
    for name in missing:
        out.err(f"error: {listing.singular} {name} not found{listing.where}")
    return not missing


# --- What is listed --------------------------------------------------------------------------------------------------


class Listing:
    """One table. `kinds`: as `Permissions.hidden_kinds` names them; without all of them there is nothing to show."""

    def __init__(
        self,
        shown: Shown,
        sources: Sequence[Source],
        options: GetOptions,
        invocation: Invocation,
        settings: Groups,
        *,
        client: Client,
        namespace: str | None,
        controller: ControllerStatus,
    ) -> None:
        """`namespace` None: all of them."""
        self.options, self.permissions, self._shown, self._invocation = options, Permissions(), shown, invocation
        self.singular, self.plural, self.kinds = _WORDS[shown]
        groups = len(sources) != 1  # who asks for one source asks for no pod groups
        if not groups:
            self.kinds = {f"{source.kind}s" for source in sources}
        self.where = f" in namespace {namespace}" if namespace else ""
        self._everywhere, self._controller = namespace is None, controller
        self._wide = options.output.form is OutputFormat.WIDE
        names = ("GroupList", "PHASE", "phase") if shown is Shown.GROUPS else ("GangList", "STATE", "state")
        self.printer = ItemPrinter(options.output, *names, headers=not options.no_headers)
        rights, labels, self._gangs, self._groups = self.permissions, options.selector, None, None
        if sources:
            self._gangs = GangSource(client, namespace, rights, of=sources, selector=labels, required=not groups)
        if groups:
            controlled = bool(controller.leads)
            self._groups = PodGroupSource(client, namespace, rights, settings, selector=labels, controlled=controlled)
        self.sources: list[ResourceSource] = [it for it in (self._gangs, self._groups) if it is not None]
        for it in self.sources:
            it.changed = self.sources[0].changed

    async def items(self) -> list[PrintedItem]:
        """Everything that was read and is selected, as it is printed; JobSets first, pod groups last."""
        gangs = self._gangs.gangs() if self._gangs else []
        statuses = await self._groups.statuses() if self._groups else []
        pod_group = self._group if self._shown is Shown.GROUPS else self._pod_group
        found = [self._with_barrier(it) for it in gangs if self.options.selects(it.namespace, it.name)]
        chosen = (it for it in statuses if self.options.selects(it.key.namespace, tables.group_name(it)))
        return found + [pod_group(it) for it in chosen]

    def warnings(self) -> Iterator[str]:
        """Missing rights, and that no controller runs."""
        yield from self.permissions.missing
        if not self._controller.leads:
            yield self._controller.message
        strays = self._groups.unassigned_pods if self._groups and self._shown is Shown.GROUPS else 0
        if strays:
            free = self._invocation.command("jobset-gate groups ungate --all")
            yield f"{strays} pods carry our label and name no group any more; `{free}` frees them"

    def _with_barrier(self, it: FetchedGang) -> PrintedItem:
        explanation, workload = it.explained(self._controller, self.permissions.missing), it.gang.workload
        return self._gang(explanation, workload.created, kubectl_name(workload), workload.name)

    def _pod_group(self, status: GroupStatus) -> PrintedItem:
        unknown = self.permissions.missing
        explanation = explain_pod_group(status, time.time(), controller=self._controller, unknown=unknown)
        return self._gang(explanation, status.created, f"group/{explanation.name}", str(status.key.flavor))

    def _gang(self, explanation: Explanation, created: float, name: str, distinct: str) -> PrintedItem:
        it, kinds = self._invocation.rewrite_explanation(explanation), self._shown is Shown.GANGS
        cells = tables.gang_cells(it, created, namespaces=self._everywhere, kinds=kinds, wide=self._wide)
        # Two designs may have groups of one name, and two owners start groups.
        key = (it.kind, it.namespace, it.name, distinct)
        return PrintedItem(key, cells, lambda: explanation_json(it), name)

    def _group(self, status: GroupStatus) -> PrintedItem:
        cells = tables.pod_group_cells(status, time.time(), namespaces=self._everywhere, wide=self._wide)
        key = (status.key.namespace, status.key.name, str(status.key.flavor))
        return PrintedItem(key, cells, lambda: pod_group_json(status), f"group/{tables.group_name(status)}")
