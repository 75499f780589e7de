"""`get jobsets -w` and `get gangs -w`: JobSets, and groups where they are wanted, as a feed of what has changed."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from jobset_gate.cli import settings_file
from jobset_gate.cli.commands import get_gangs
from jobset_gate.cli.commands.get_gangs import GangGetOptions
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.printers import gang_table
from jobset_gate.cli.printers.change_printer import ChangeFormat, ChangePrinter, PrintedItem
from jobset_gate.cli.printers.explanation_json import explanation_json
from jobset_gate.cli.printers.gang_table import GangItem
from jobset_gate.cli.watch import loop
from jobset_gate.cli.watch.gang_source import GangWatch
from jobset_gate.explain.gang import explain_gang
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.explain.podgroup import explain_pod_group
from jobset_gate.kube.client import Client


async def run(client: Client, namespace: str | None, wanted: GangGetOptions, controller: ControllerStatus) -> ExitCode:
    """Ends by an interruption; at once if what was named is not there. Raises Failed where nothing may be watched."""
    async with AsyncExitStack() as stack:
        feed = _Feed(client, namespace, wanted, controller)
        await feed.open(stack)
        return await loop.print_feed(feed, ChangePrinter(feed.form))


class _Feed:
    """Those gangs that are wanted."""

    def __init__(
        self, client: Client, namespace: str | None, wanted: GangGetOptions, controller: ControllerStatus
    ) -> None:
        self._namespace, self._wanted, self._controller = namespace, wanted, controller
        self._look = get_gangs.look(wanted)
        self.form = ChangeFormat(wanted.output, gang_table.titles(self._look), "STATE", "state", wanted.headers)
        self._jobsets = GangWatch(client, namespace, wanted.rights, needed=not wanted.groups)
        self.change = self._jobsets.change
        self._groups = None
        if wanted.groups:
            # Imported late: whoever asks about JobSets need not wait for it.
            from jobset_gate.cli.watch.pod_group_source import PodGroupWatch  # noqa: PLC0415

            settings, leads = settings_file.read(wanted.config).admission.groups, bool(controller.leads)
            self._groups = PodGroupWatch(client, namespace, settings, controlled=leads, changed=self._jobsets.changed)

    async def open(self, stack: AsyncExitStack) -> None:
        await stack.enter_async_context(self._jobsets)
        if self._groups is not None:
            await stack.enter_async_context(self._groups)
            await self._groups.ready()
            self._wanted.rights.missing += self._groups.fetched.missing
        await self._jobsets.ready()

    async def found(self) -> list[GangItem]:
        found = [self._jobset_gangs(), await self._group_gangs()]
        return [it for some in found for it in some if self._wanted.selects(it.explanation.name)]

    def absent(self, found: Sequence[GangItem]) -> bool:
        get_gangs.say(self._wanted, self._controller)
        return get_gangs.absent(found, self._wanted, self._namespace)

    def item(self, one: GangItem) -> PrintedItem:
        key = (one.explanation.kind, one.explanation.namespace, one.explanation.name, one.design)
        return PrintedItem(
            key, gang_table.row(one, self._look), lambda: explanation_json(one.explanation), get_gangs.name(one)
        )

    def _jobset_gangs(self) -> list[GangItem]:
        live, found = self._jobsets, []
        for seen in live.gangs():
            told = explain_gang(seen, live.now(), controller=self._controller, pods_forbidden=live.pods_forbidden)
            found.append(GangItem(self._wanted.caller.rewrite_explanation(told), seen.jobset.created))
        return found

    async def _group_gangs(self) -> list[GangItem]:
        if self._groups is None:
            return []
        self._groups.check()
        found = []
        for report in await self._groups.reports():
            told = explain_pod_group(report, self._groups.now(), controller=self._controller)
            found.append(
                GangItem(self._wanted.caller.rewrite_explanation(told), report.created, str(report.key.design))
            )
        return found
