"""`get groups -w`: the table, and then a line for every group that has changed, until it is interrupted."""

import asyncio
from collections.abc import Sequence

from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import Exit
from jobset_gate.cli.groups import documents, listing
from jobset_gate.cli.groups.keepers import Keeper
from jobset_gate.cli.groups.live import LiveGroups
from jobset_gate.cli.groups.table import name, row, titles
from jobset_gate.cli.options import Output
from jobset_gate.cli.verbs.printing import Form, Item, Printer
from jobset_gate.groups.report import Report
from jobset_gate.kube.client import Client

EVERY = 0.5
"""Seconds between two looks: what changes more often is told once."""


async def run(client: Client, namespace: str | None, wanted: listing.Wanted, keeper: Keeper) -> Exit:
    """Ends by an interruption; at once if what was named is not there. Raises Failed where no pods may be watched."""
    look = {"wide": wanted.output is Output.WIDE, "namespaces": namespace is None}
    printer = Printer(Form(wanted.output, titles(**look), "PHASE", "phase", wanted.headers))
    settings = settings_file.read(wanted.config).admission.groups
    async with LiveGroups(client, namespace, settings, controlled=bool(keeper.leads)) as live:
        await live.ready()
        found = await _wanted(live, wanted)
        listing.warn(live.reading, keeper, wanted.caller)
        if listing.absent(found, wanted, namespace):
            return Exit.ERROR
        while True:
            printer.tell([_item(it, row(it, live.now(), **look)) for it in found])
            await live.change()
            await asyncio.sleep(EVERY)
            found = await _wanted(live, wanted)


async def _wanted(live: LiveGroups, wanted: listing.Wanted) -> list[Report]:
    return [it for it in await live.reports() if not wanted.names or it.key.name in wanted.names]


def _item(report: Report, cells: Sequence[str]) -> Item:
    key = (report.key.namespace, report.key.name, str(report.key.design))
    return Item(key, cells, lambda: documents.item(report), f"group/{name(report)}")
