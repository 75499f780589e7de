"""`get jobsets -w`: the table, and then a line for every gang that has changed, until it is interrupted."""

import asyncio
from typing import Any

import typer

from jobset_gate.cli.exits import Exit
from jobset_gate.cli.verbs import gang_listing, gang_table
from jobset_gate.cli.verbs.gang_listing import Wanted
from jobset_gate.cli.verbs.gang_table import Gang
from jobset_gate.cli.verbs.live import Live
from jobset_gate.explain import explain
from jobset_gate.explained import Controller
from jobset_gate.kube.client import Client

EVERY = 0.5
"""Seconds between two looks: what changes more often is told once."""
_PASSING = frozenset({"LEFT", "AGE"})
"""Columns that change while nothing happens."""


async def run(client: Client, namespace: str | None, wanted: Wanted, controller: Controller) -> Exit:
    """Ends by an interruption only. Raises Failed where JobSets may not be listed and watched."""
    async with Live(client, namespace, wanted.rights) as live:
        await live.ready()
        printer = _Printer(wanted)
        gang_listing.say(wanted.rights, controller)
        while True:
            printer.tell([it for it in _gangs(live, controller) if not wanted.names or it.told.name in wanted.names])
            await live.change()
            await asyncio.sleep(EVERY)


def _gangs(live: Live, controller: Controller) -> list[Gang]:
    found = []
    for seen in live.gangs():
        told = explain(seen, live.now(), controller=controller, blind=live.blind)
        found.append(Gang(told, seen.jobset.created))
    return found


class _Printer:
    """Prints what differs from what it printed last; columns keep their width, or grow."""

    def __init__(self, wanted: Wanted) -> None:
        self._look = gang_listing.look(wanted)
        self._titles = gang_table.titles(self._look)
        self._widths = [len(it) for it in self._titles]
        self._headed = not self._look.headers
        self._last: dict[tuple[str, str], tuple[Any, ...]] = {}

    def tell(self, gangs: list[Gang]) -> None:
        lines = []
        for gang in gangs:
            key, cells = (gang.told.namespace, gang.told.name), gang_table.row(gang, self._look)
            lasting = tuple(cell for title, cell in zip(self._titles, cells, strict=True) if title not in _PASSING)
            if self._last.get(key) != lasting:
                self._last[key] = lasting
                lines.append(cells)
        if not self._headed and lines:
            self._headed = True
            lines.insert(0, self._titles)
        for cells in lines:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]
        for cells in lines:
            typer.echo(gang_table.joined(cells, self._widths))
