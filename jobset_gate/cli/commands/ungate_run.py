"""What `groups ungate` does: frees the pods of groups with nobody's help, and says what it did."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import typer

from jobset_gate.cli import cleanup, gated_pods
from jobset_gate.cli.cleanup import CleanupResult
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch import controller_status
from jobset_gate.cli.gated_pods import UngatedPods
from jobset_gate.cli.printers import output
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.snapshot import MemberPod

PASSES = 3
"""So often the pods are looked for: owners that go on make new ones."""
MOST_TOLD = 20


@dataclass(frozen=True, slots=True)
class UngateOptions:
    """What the command line asks for."""

    names: tuple[str, ...] = ()
    all_groups: bool = False
    namespace: str | None = None
    yes: bool = False
    dry_run: bool = False
    concurrency: int = 32


async def run(wanted: UngateOptions, *, kubeconfig: str | None, context: str | None) -> ExitCode:
    """Frees them. Raises Failed where it is not plain what is meant."""
    if wanted.all_groups == bool(wanted.names):
        raise CommandError("name groups, or say --all; not both", ExitCode.USAGE)
    reached = await access.load_access(kubeconfig, context)
    namespace = wanted.namespace or (None if wanted.all_groups else reached.namespace)
    async with Client(reached, connections=wanted.concurrency + 8) as client:
        return await _UngateRun(client, wanted, namespace).run(reached.namespace)


class _UngateRun:
    """One run of the command."""

    def __init__(self, client: Client, wanted: UngateOptions, namespace: str | None) -> None:
        self._client, self._wanted, self._namespace = client, wanted, namespace
        self._is_wanted, self._is_wanted_label = _choice(wanted, namespace)

    async def run(self, own_namespace: str) -> ExitCode:
        keeper = await controller_status.controller_state(self._client, own_namespace)
        await self._warn(keeper)
        held = await gated_pods.gated_pods(self._client, self._namespace, self._is_wanted)
        self._warn_of_names(held)
        if not self._wanted.dry_run:
            self._ask(len(held))
        cleared = CleanupResult()
        dry_run = self._wanted.dry_run
        await cleanup.resume_owners(self._client, self._namespace, self._is_wanted_label, cleared, dry_run=dry_run)
        freed = _as_if(held) if dry_run else await self._free(held, again=bool(cleared.owners))
        if self._wanted.all_groups and keeper.leads is False:
            await cleanup.remove_records(self._client, self._namespace, cleared, dry_run=dry_run)
        return _tell(freed, cleared, dry_run=dry_run)

    async def _warn(self, keeper: controller_status.ControllerState) -> None:
        if keeper.leads:
            output.err(f"warning: {keeper.message}: it may roll groups back that it has opened")
        if keeper.leads is None and self._wanted.all_groups:
            output.err(f"warning: {keeper.message}: what it may have written down about groups stays")
        webhooks = await controller_status.pod_webhooks(self._client)
        if webhooks:
            who = ", ".join(webhooks)
            output.err(
                f"warning: the webhook configuration {who} is still there: pods that are created from now on are held"
            )

    def _warn_of_names(self, held: list[MemberPod]) -> None:
        """One that is free already is no error; one that is misspelt looks the same."""
        namespace = self._namespace or ""  # names are those of one namespace
        for name in self._wanted.names:
            if not any(map(gated_pods.in_groups([name], namespace), held)):
                output.err(f"warning: no pod of a group {name} is held in namespace {namespace}")

    def _ask(self, many: int) -> None:
        if self._wanted.yes or not many:
            return
        if not sys.stdin.isatty():
            raise CommandError(
                f"{pods(many)} would be freed: say --yes to do that, or --dry-run to see which", ExitCode.USAGE
            )
        typer.confirm(f"Free {pods(many)} for good, to start without the rest of the group?", abort=True, err=True)

    async def _free(self, held: list[MemberPod], *, again: bool) -> UngatedPods:
        freed = await gated_pods.remove_gates(self._client, held, self._wanted.concurrency)
        tried = {it.uid for it in held}
        for _ in range(PASSES if again or held else 0):
            # Made meanwhile, by owners that go on or on the heels of those that are free now.
            more = await gated_pods.gated_pods(self._client, self._namespace, self._is_wanted)
            more = [it for it in more if it.uid not in tried]
            if not more:
                break
            tried |= {it.uid for it in more}
            latest = await gated_pods.remove_gates(self._client, more, self._wanted.concurrency)
            freed.by_group += latest.by_group
            freed.gone += latest.gone
            freed.failures += latest.failures
        return freed


def _choice(wanted: UngateOptions, namespace: str | None) -> tuple[Callable[[MemberPod], bool], Callable[[str], bool]]:
    """Which pods, and which labels of groups."""
    if wanted.all_groups or namespace is None:
        return (lambda _: True), (lambda _: True)
    labels = {
        group_label(PodGroupKey(design=design, namespace=namespace, name=name))
        for design in Flavor
        for name in wanted.names
    }
    return gated_pods.in_groups(wanted.names, namespace), labels.__contains__


def _as_if(held: list[MemberPod]) -> UngatedPods:
    freed = UngatedPods()
    freed.by_group.update(gated_pods.group_of(it) for it in held)
    return freed


def _tell(freed: UngatedPods, cleared: CleanupResult, *, dry_run: bool) -> ExitCode:
    would = "would be " if dry_run else ""
    for group, many in sorted(freed.by_group.items())[:MOST_TOLD]:
        output.out(f"group {group}: {pods(many)} {would}freed\n")
    more = len(freed.by_group) - MOST_TOLD
    if more > 0:
        output.out(f"and {more} more groups\n")
    for owner in cleared.owners:
        output.out(f"{owner}: {would}resumed\n")
    if cleared.records:
        output.out(f"records of decisions {would}removed: {cleared.records}\n")
    gone = f", {freed.gone} were gone or free already" if freed.gone else ""
    output.out(f"{pods(freed.by_group.total())} {would}freed{gone}\n")
    for line in cleared.problems:
        output.err(f"warning: {line}")
    for line in freed.failures[:MOST_TOLD]:
        output.err(f"error: {line}")
    if len(freed.failures) > MOST_TOLD:
        output.err(f"error: and {len(freed.failures) - MOST_TOLD} pods more")
    return ExitCode.ERROR if freed.failures else ExitCode.OK


def pods(many: int) -> str:
    """So many, in words."""
    return "1 pod" if many == 1 else f"{many} pods"
