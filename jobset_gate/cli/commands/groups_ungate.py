"""`groups ungate`: removes our scheduling gates, when no controller is there to do it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from jobset_gate.cli import logs
from jobset_gate.cli import ungate as ungating
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.controller_status import NO_GROUPS, controller_status, pod_webhooks
from jobset_gate.cli.options import Context, Kubeconfig, LogLevel, Yes, new_app
from jobset_gate.cli.options import namespace as place
from jobset_gate.cli.printers import output
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.cli.ungate import CleanupResult, UngatedPods
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.snapshot import MemberPod

PASSES: Final = 3
"""So often the pods are listed: owners that go on create new ones."""
MAX_LINES: Final = 20
_EXAMPLE: Final = "Example: {program} groups ungate --all --dry-run"

app = new_app()
groups = new_app(no_args_is_help=True, help="Free the pods of groups.", epilog=_EXAMPLE)
app.add_typer(groups, name="groups")


@groups.command("ungate", short_help="Remove our scheduling gates from the pods of groups.", epilog=_EXAMPLE)
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
    yes: Yes = False,
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
    options = UngateOptions(tuple(names or ()), everything, namespace, yes, dry_run, concurrency)
    run_and_exit(run(options, kubeconfig=kubeconfig, context=context), lambda: logs.configure(level=LogLevel.ERROR))


@dataclass(frozen=True, slots=True)
class UngateOptions:
    """What the command line asks for."""

    names: tuple[str, ...] = ()
    all_groups: bool = False
    namespace: str | None = None
    yes: bool = False
    dry_run: bool = False
    concurrency: int = 32


async def run(options: UngateOptions, *, kubeconfig: str | None, context: str | None) -> ExitCode:
    """Frees them. Raises Failed where it is not plain what is meant."""
    if options.all_groups == bool(options.names):
        raise CommandError("name groups, or say --all; not both", ExitCode.USAGE)
    reached = await access.load_access(kubeconfig, context)
    namespace = options.namespace or (None if options.all_groups else reached.namespace)
    async with Client(reached, connections=options.concurrency + 8) as client:
        return await _UngateRun(client, options, namespace).run(reached.namespace)


class _UngateRun:
    """One run of the command."""

    def __init__(self, client: Client, options: UngateOptions, namespace: str | None) -> None:
        self._client, self._options, self._namespace = client, options, namespace
        self._is_wanted, self._is_wanted_label = _choice(options, namespace)

    async def run(self, own_namespace: str) -> ExitCode:
        controller = await controller_status(self._client, own_namespace, without=NO_GROUPS)
        await self._warn(controller)
        held = await ungating.gated_pods(self._client, self._namespace, self._is_wanted)
        self._warn_of_names(held)
        if not self._options.dry_run:
            self._ask(len(held))
        cleared = CleanupResult()
        dry_run = self._options.dry_run
        await ungating.resume_owners(self._client, self._namespace, self._is_wanted_label, cleared, dry_run=dry_run)
        freed = _as_if(held) if dry_run else await self._free(held, again=bool(cleared.owners))
        if self._options.all_groups and controller.leads is False:
            await ungating.remove_records(self._client, self._namespace, cleared, dry_run=dry_run)
        return _tell(freed, cleared, dry_run=dry_run)

    async def _warn(self, controller: ControllerStatus) -> None:
        if controller.leads:
            output.err(f"warning: {controller.message}: it may roll groups back that it has opened")
        if controller.leads is None and self._options.all_groups:
            output.err(f"warning: {controller.message}: what it may have written down about groups stays")
        webhooks = await pod_webhooks(self._client)
        if webhooks:
            who = ", ".join(webhooks)
            output.err(
                f"warning: the webhook configuration {who} is still there: pods that are created from now on are held"
            )

    def _warn_of_names(self, held: list[MemberPod]) -> None:
        """One that is free already is no error; one that is misspelt looks the same."""
        namespace = self._namespace or ""  # names are those of one namespace
        for name in self._options.names:
            if not any(map(ungating.in_groups([name], namespace), held)):
                output.err(f"warning: no pod of a group {name} is held in namespace {namespace}")

    def _ask(self, many: int) -> None:
        if self._options.yes or not many:
            return
        if not sys.stdin.isatty():
            raise CommandError(
                f"{_pods(many)} would be freed: say --yes to do that, or --dry-run to see which", ExitCode.USAGE
            )
        typer.confirm(f"Free {_pods(many)} for good, to start without the rest of the group?", abort=True, err=True)

    async def _free(self, held: list[MemberPod], *, again: bool) -> UngatedPods:
        freed = await ungating.remove_gates(self._client, held, self._options.concurrency)
        tried = {it.uid for it in held}
        for _ in range(PASSES if again or held else 0):
            # Made meanwhile, by owners that go on or on the heels of those that are free now.
            more = await ungating.gated_pods(self._client, self._namespace, self._is_wanted)
            more = [it for it in more if it.uid not in tried]
            if not more:
                break
            tried |= {it.uid for it in more}
            latest = await ungating.remove_gates(self._client, more, self._options.concurrency)
            freed.by_group += latest.by_group
            freed.gone += latest.gone
            freed.failures += latest.failures
        return freed


def _choice(options: UngateOptions, namespace: str | None) -> tuple[Callable[[MemberPod], bool], Callable[[str], bool]]:
    """Which pods, and which labels of groups."""
    if options.all_groups or namespace is None:
        return (lambda _: True), (lambda _: True)
    labels = {
        group_label(PodGroupKey(design=design, namespace=namespace, name=name))
        for design in Flavor
        for name in options.names
    }
    return ungating.in_groups(options.names, namespace), labels.__contains__


def _as_if(held: list[MemberPod]) -> UngatedPods:
    freed = UngatedPods()
    freed.by_group.update(ungating.group_of(it) for it in held)
    return freed


def _tell(freed: UngatedPods, cleared: CleanupResult, *, dry_run: bool) -> ExitCode:
    would = "would be " if dry_run else ""
    for group, many in sorted(freed.by_group.items())[:MAX_LINES]:
        output.out(f"group {group}: {_pods(many)} {would}freed\n")
    more = len(freed.by_group) - MAX_LINES
    if more > 0:
        output.out(f"and {more} more groups\n")
    for owner in cleared.owners:
        output.out(f"{owner}: {would}resumed\n")
    if cleared.records:
        output.out(f"records of decisions {would}removed: {cleared.records}\n")
    gone = f", {freed.gone} were gone or free already" if freed.gone else ""
    output.out(f"{_pods(freed.by_group.total())} {would}freed{gone}\n")
    for line in cleared.problems:
        output.err(f"warning: {line}")
    for line in freed.failures[:MAX_LINES]:
        output.err(f"error: {line}")
    if len(freed.failures) > MAX_LINES:
        output.err(f"error: and {len(freed.failures) - MAX_LINES} pods more")
    return ExitCode.ERROR if freed.failures else ExitCode.OK


def _pods(many: int) -> str:
    """So many, in words."""
    return "1 pod" if many == 1 else f"{many} pods"
