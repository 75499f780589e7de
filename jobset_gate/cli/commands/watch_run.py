"""What `watch` does: shows one gang as it is, again whenever it changes, until it is decided."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.printers import output
from jobset_gate.cli.printers import screen as screens
from jobset_gate.cli.watch import resolver
from jobset_gate.cli.watch.outcome import GOAL_TEXT, WaitGoal
from jobset_gate.cli.watch.view import ViewState, WatchView
from jobset_gate.explain.text import format_duration
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

MIN_INTERVAL = 0.25
"""Seconds between two looks: what changes more often is shown once."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What the command line asks for; `seconds` None: for ever."""

    name: str
    seconds: float | None
    namespace: str | None = None
    config: Path | None = None
    program: str = "jobset-gate"
    rights: Permissions = field(default_factory=Permissions)


async def run(wanted: WatchOptions, *, kubeconfig: str | None, context: str | None) -> int:
    """Ends well when the gang is released, or the group satisfied. Raises Failed in every other case."""
    reached = await access.load_access(kubeconfig, context)
    caller = Invocation(wanted.program, kubeconfig, context, wanted.namespace)
    async with Client(reached) as client:
        asked = resolver.WatchTarget(
            wanted.namespace or reached.namespace, wanted.config, (reached.namespace,), wanted.rights
        )
        async with await resolver.find_view(client, wanted.name, asked) as scene:
            try:
                last = await _show(scene, wanted.seconds)
            except TimeoutError as late:
                raise CommandError(_late(scene, wanted, caller), ExitCode.TIMEOUT) from late
    return _verdict(scene, last)


async def _show(scene: WatchView, seconds: float | None) -> ViewState:
    """The last one. Raises TimeoutError."""
    with screens.standard_output() as screen:
        async with asyncio.timeout(seconds):
            await scene.ready()
            while True:
                moment = await scene.look()
                screen.show(moment, time.time())
                if moment.standing.is_over(scene.end):
                    return moment
                while not await _changes(scene, screen.tick):
                    screen.show(moment, time.time())


async def _changes(scene: WatchView, tick: float | None) -> bool:
    """Whether anything was different within that time."""
    try:
        # Not asyncio.wait_for: in Python 3.11 it loses an interruption that comes together with the change.
        async with asyncio.timeout(tick):
            await scene.change()
    except TimeoutError:
        return False
    await asyncio.sleep(MIN_INTERVAL)
    return True


def _verdict(scene: WatchView, last: ViewState) -> ExitCode:
    now, end = last.standing, scene.end
    words = f": {now.message}" if now.message else ""
    if end in now.reached:
        output.out(f"{scene.subject} {GOAL_TEXT[end]}{words}\n")
        return ExitCode.OK
    if now.reached & {WaitGoal.TIMED_OUT}:
        raise CommandError(f"{scene.subject} timed out{words}")
    raise CommandError(f"{scene.subject} {now.message}: it will not be {GOAL_TEXT[end]} any more")


def _late(scene: WatchView, wanted: WatchOptions, caller: Invocation) -> str:
    kind, _, name = scene.subject.partition("/")
    why = caller.command(f"jobset-gate why {kind}/{name}" + (f" -n {wanted.namespace}" if wanted.namespace else ""))
    told = f"{scene.subject} is not {GOAL_TEXT[scene.end]} after {format_duration(wanted.seconds or 0)}"
    return f"{told}; `{why}` says what it waits for"
