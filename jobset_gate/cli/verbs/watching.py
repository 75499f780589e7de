"""What `watch` does: shows one gang as it is, again whenever it changes, until it is decided."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from jobset_gate.cli.caller import Caller
from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.telling import output
from jobset_gate.cli.verbs import finding, screens
from jobset_gate.cli.verbs.scenes import Moment, Scene
from jobset_gate.cli.verbs.standing import IN_WORDS, End
from jobset_gate.explained_lines import span
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

EVERY = 0.25
"""Seconds between two looks: what changes more often is shown once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for; `seconds` None: for ever."""

    name: str
    seconds: float | None
    namespace: str | None = None
    config: Path | None = None
    program: str = "jobset-gate"
    rights: Rights = field(default_factory=Rights)


async def run(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> int:
    """Ends well when the gang is released, or the group satisfied. Raises Failed in every other case."""
    reached = await access.discover(kubeconfig, context)
    caller = Caller(wanted.program, kubeconfig, context, wanted.namespace)
    async with Client(reached) as client:
        asked = finding.Asked(wanted.namespace or reached.namespace, wanted.config, (reached.namespace,), wanted.rights)
        async with await finding.scene(client, wanted.name, asked) as scene:
            try:
                last = await _show(scene, wanted.seconds)
            except TimeoutError as late:
                raise Failed(_late(scene, wanted, caller), Exit.TIMEOUT) from late
    return _verdict(scene, last)


async def _show(scene: Scene, seconds: float | None) -> Moment:
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


async def _changes(scene: Scene, tick: float | None) -> bool:
    """Whether anything was different within that time."""
    try:
        # Not asyncio.wait_for: in Python 3.11 it loses an interruption that comes together with the change.
        async with asyncio.timeout(tick):
            await scene.change()
    except TimeoutError:
        return False
    await asyncio.sleep(EVERY)
    return True


def _verdict(scene: Scene, last: Moment) -> Exit:
    now, end = last.standing, scene.end
    words = f": {now.told}" if now.told else ""
    if end in now.ends:
        output.out(f"{scene.subject} {IN_WORDS[end]}{words}\n")
        return Exit.OK
    if now.ends & {End.TIMED_OUT}:
        raise Failed(f"{scene.subject} timed out{words}")
    raise Failed(f"{scene.subject} {now.told}: it will not be {IN_WORDS[end]} any more")


def _late(scene: Scene, wanted: Wanted, caller: Caller) -> str:
    kind, _, name = scene.subject.partition("/")
    why = caller.line(f"jobset-gate why {kind}/{name}" + (f" -n {wanted.namespace}" if wanted.namespace else ""))
    told = f"{scene.subject} is not {IN_WORDS[scene.end]} after {span(wanted.seconds or 0)}"
    return f"{told}; `{why}` says what it waits for"
