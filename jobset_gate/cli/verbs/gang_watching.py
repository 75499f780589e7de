"""`get jobsets -w` and `get gangs -w`: everything once, and then what has changed, until it is interrupted."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import Exit
from jobset_gate.cli.telling.documents import document
from jobset_gate.cli.verbs import gang_listing, gang_table
from jobset_gate.cli.verbs.gang_listing import Wanted
from jobset_gate.cli.verbs.gang_table import Gang
from jobset_gate.cli.verbs.live import Live
from jobset_gate.cli.verbs.printing import Form, Item, Printer
from jobset_gate.explain import explain
from jobset_gate.explain_group import explain_group
from jobset_gate.explained import Controller
from jobset_gate.kube.client import Client

EVERY = 0.5
"""Seconds between two looks: what changes more often is told once."""


async def run(client: Client, namespace: str | None, wanted: Wanted, controller: Controller) -> Exit:
    """Ends by an interruption; at once if what was named is not there. Raises Failed where nothing may be watched."""
    async with AsyncExitStack() as stack:
        feed = _Feed(client, namespace, wanted, controller)
        await feed.open(stack)
        look = gang_listing.look(wanted)
        printer = Printer(Form(wanted.output, gang_table.titles(look), "STATE", "state", wanted.headers))
        found = await feed.gangs()
        gang_listing.say(wanted, controller)
        if gang_listing.absent(found, wanted, namespace):
            return Exit.ERROR
        while True:
            printer.tell(_items(found, wanted))
            await feed.jobsets.change()
            await asyncio.sleep(EVERY)
            found = await feed.gangs()


def _items(found: Iterable[Gang], wanted: Wanted) -> list[Item]:
    look = gang_listing.look(wanted)
    return [_item(it, gang_table.row(it, look)) for it in found]


def _item(gang: Gang, cells: list[str]) -> Item:
    key = (gang.told.kind, gang.told.namespace, gang.told.name, gang.of)
    return Item(key, cells, lambda: document(gang.told), gang_listing.name(gang))


class _Feed:
    """JobSets, and groups where they are wanted."""

    def __init__(self, client: Client, namespace: str | None, wanted: Wanted, controller: Controller) -> None:
        self._wanted, self._controller = wanted, controller
        self.jobsets = Live(client, namespace, wanted.rights, needed=not wanted.groups)
        self._groups = None
        if wanted.groups:
            # Imported late: whoever asks about JobSets need not wait for it.
            from jobset_gate.cli.groups.live import LiveGroups  # noqa: PLC0415

            settings, leads = settings_file.read(wanted.config).admission.groups, bool(controller.leads)
            self._groups = LiveGroups(client, namespace, settings, controlled=leads, changed=self.jobsets.changed)

    async def open(self, stack: AsyncExitStack) -> None:
        await stack.enter_async_context(self.jobsets)
        if self._groups is not None:
            await stack.enter_async_context(self._groups)
            await self._groups.ready()
            self._wanted.rights.missing += self._groups.reading.missing
        await self.jobsets.ready()

    async def gangs(self) -> list[Gang]:
        """Those that are wanted."""
        found = [self._jobset_gangs(), await self._group_gangs()]
        return [it for some in found for it in some if not self._wanted.names or it.told.name in self._wanted.names]

    def _jobset_gangs(self) -> list[Gang]:
        live, found = self.jobsets, []
        for seen in live.gangs():
            told = explain(seen, live.now(), controller=self._controller, blind=live.blind)
            found.append(Gang(self._wanted.caller.explanation(told), seen.jobset.created))
        return found

    async def _group_gangs(self) -> list[Gang]:
        if self._groups is None:
            return []
        self._groups.check()
        found = []
        for report in await self._groups.reports():
            told = explain_group(report, self._groups.now(), controller=self._controller)
            found.append(Gang(self._wanted.caller.explanation(told), report.created, str(report.key.design)))
        return found
