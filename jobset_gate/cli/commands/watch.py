"""`watch`: one gang, live, until it is decided."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Annotated, Final

from jobset_gate.cli.cluster import Invocation
from jobset_gate.cli.fetch.outcome import timeout_error
from jobset_gate.cli.fetch.resolver import open_resolver
from jobset_gate.cli.fetch.view import FIRST_READ_TIMEOUT, ViewState, WatchView, find_view
from jobset_gate.cli.options import ControllerConfig, Owner, Subject, new_app, parse_resource
from jobset_gate.cli.options import timeout as limit
from jobset_gate.cli.printers import output
from jobset_gate.cli.printers import watch as printed

MIN_INTERVAL: Final = 0.25
"""Seconds between two pictures: what changes more often is shown once."""

app = new_app()


@app.command("watch", epilog="Example: {program} watch train -n team")
async def watch(
    *,
    name: Subject,
    owner: Owner = "",
    timeout: Annotated[
        float | None, limit("How long at most, such as 30s or 1h30m; otherwise until it is decided.")
    ] = None,
    config: ControllerConfig = None,
    invocation: Invocation,
) -> None:
    """Show how many pods have started of how many, and what the others wait for, as it changes.

    On a terminal with bars that move; elsewhere a line for every change. Ends with 0 when the gang is released or
    the group has its minimum bound, with 1 when it times out or nothing can come any more, with 3 when the time
    is over. A LeaderWorkerSet as a whole is watched on, since LWS creates a group that has timed out again.

    Asks the API server only; needs the right to get, list and watch JobSets, Jobs, pods and ConfigMaps, for a
    start group only the last two.
    """
    async with AsyncExitStack() as stack:
        resolver = await stack.enter_async_context(open_resolver(invocation, config))
        view = await find_view(resolver, parse_resource(name, owner))
        await stack.enter_async_context(view)
        try:
            last = await _show(view, timeout)
        except TimeoutError as late:
            named = f" -n {invocation.namespace}" if invocation.namespace else ""
            why = invocation.command(f"jobset-gate why {view.subject}{named}")
            raise timeout_error(view.subject, view.goal, timeout or 0, why) from late
    output.out(last.outcome.text(view.subject, view.goal) + "\n")


async def _show(view: WatchView, seconds: float | None) -> ViewState:
    """The last state. Raises TimeoutError."""
    with printed.standard_output() as shown:
        async with asyncio.timeout(None if seconds is None else max(seconds, FIRST_READ_TIMEOUT)):
            await view.ready()
        async with asyncio.timeout(seconds):
            while True:
                state = await view.state()
                shown.show(state, time.time())
                if state.outcome.is_over(view.goal):
                    return state
                while not await _changes(view, shown.tick):
                    shown.show(state, time.time())


async def _changes(view: WatchView, tick: float | None) -> bool:
    """Whether anything changed within that time."""
    try:
        # Not asyncio.wait_for: in Python 3.11 it loses an interruption that comes together with the change.
        async with asyncio.timeout(tick):
            await view.change()
    except TimeoutError:
        return False
    await asyncio.sleep(MIN_INTERVAL)
    return True
