"""What `get -w` does: everything once, and then each thing that has changed, until it is interrupted."""

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeVar

from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.printers.change_printer import ChangePrinter, PrintedItem

EVERY = 0.5
"""Seconds between two looks: what changes more often is told once."""

T = TypeVar("T")


class ChangeFeed(Protocol[T]):
    """What is watched."""

    async def found(self) -> Sequence[T]:
        """All that is wanted, as it is now."""

    def absent(self, found: Sequence[T]) -> bool:
        """Says what cannot be seen; whether one of those that were named is not there."""

    def item(self, one: T) -> PrintedItem:
        """As it is printed."""

    async def change(self) -> None:
        """Until anything is different. Raises Failed where there is nothing to see any more."""


async def print_feed(feed: ChangeFeed[T], printer: ChangePrinter) -> ExitCode:
    """Ends by an interruption; at once if what was named is not there."""
    found = await feed.found()
    if feed.absent(found):
        return ExitCode.ERROR
    while True:
        printer.print_changes(map(feed.item, found))
        await feed.change()
        await asyncio.sleep(EVERY)
        found = await feed.found()
