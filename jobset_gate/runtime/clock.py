"""The clock for delays: the event loop's own, which nobody sets. The wall clock is for dates."""

import asyncio


def monotonic() -> float:
    """Seconds since some moment; never fewer than before."""
    return asyncio.get_running_loop().time()
