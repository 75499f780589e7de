"""What `get -w` does: everything once, and then each thing that has changed, until it is interrupted."""

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeVar

from jobset_gate.cli.exits import Exit
from jobset_gate.cli.verbs.printing import Item, Printer

EVERY = 0.5
"""Seconds between two looks: what changes more often is told once."""

T = TypeVar("T")


class Feed(Protocol[T]):
    """What is watched."""

    async def found(self) -> Sequence[T]:
        """All that is wanted, as it is now."""

    def absent(self, found: Sequence[T]) -> bool:
        """Says what cannot be seen; whether one of those that were named is not there."""

    def item(self, one: T) -> Item:
        """As it is printed."""

    async def change(self) -> None:
        """Until anything is different. Raises Failed where there is nothing to see any more."""


async def follow(feed: Feed[T], printer: Printer) -> Exit:
    """Ends by an interruption; at once if what was named is not there."""
    found = await feed.found()
    if feed.absent(found):
        return Exit.ERROR
    while True:
        printer.tell(map(feed.item, found))
        await feed.change()
        await asyncio.sleep(EVERY)
        found = await feed.found()
