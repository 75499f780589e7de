"""How long the event loop leaves others waiting: a task that wants to be woken every 5 ms and notes how late it is."""

from __future__ import annotations

import asyncio
import time

PERIOD = 0.005


class LoopLag:
    """`late`: seconds by which each beat came late; `worked`: how much of that this process can have worked itself.

    A beat is late because something of ours held the loop or because the machine gave the processor to others. The
    second number is the first, cut to the CPU time that our thread used since the last beat.
    """

    def __init__(self) -> None:
        self.late: list[float] = []
        self.worked: list[float] = []

    async def measure(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due, used = loop.time() + PERIOD, time.thread_time()
            await asyncio.sleep(PERIOD)
            late = max(0.0, loop.time() - due)
            self.late.append(late)
            self.worked.append(min(late, time.thread_time() - used))
