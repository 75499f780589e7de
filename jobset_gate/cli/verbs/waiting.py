"""What `wait` does: follows JobSets until each of them is released, or has timed out."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import typer

from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.verbs import single
from jobset_gate.cli.verbs.following import Following
from jobset_gate.cli.verbs.standing import End, Standing, standing
from jobset_gate.explained_lines import span
from jobset_gate.kube import access
from jobset_gate.kube.client import Client

_IN_WORDS = {End.RELEASED: "released", End.TIMED_OUT: "timed out"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    names: Sequence[str]
    end: End
    seconds: float
    namespace: str | None = None
    program: str = "jobset-gate"
    rights: Rights = field(default_factory=Rights)


async def run(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> Exit:
    """Says of each how it ended. What failed weighs more than what took too long."""
    subjects = [single.subject(it) for it in wanted.names]
    reached = await access.discover(kubeconfig, context)
    namespace = wanted.namespace or reached.namespace
    async with Client(reached) as client:
        codes = await asyncio.gather(*(_told(client, namespace, it, wanted) for it in dict.fromkeys(subjects)))
    for line in wanted.rights.missing:
        sys.stderr.write(f"warning: {line}\n")
    return next((code for code in (Exit.ERROR, Exit.TIMEOUT) if code in codes), Exit.OK)


async def _told(client: Client, namespace: str, name: str, wanted: Wanted) -> Exit:
    try:
        ended = await _wait(client, namespace, name, wanted)
    except Failed as failed:
        sys.stderr.write(f"error: {failed}\n")
        return failed.code
    typer.echo(f"{single.KIND}/{name} {_IN_WORDS[wanted.end]}" + (f": {ended.told}" if ended.told else ""))
    return Exit.OK


async def _wait(client: Client, namespace: str, name: str, wanted: Wanted) -> Standing:
    """Raises Failed if anything else comes."""
    found = await single.find(client, namespace, name, wanted.rights)
    now = standing(found.jobset, found.gate, found.seen_at)
    if not _is_over(now):
        now = await _follow(client, found, wanted)
    if wanted.end in now.ends:
        return now
    if now.ends:
        other = " and ".join(_IN_WORDS[it] for it in sorted(now.ends))
        raise Failed(f"{single.KIND}/{name} was not {_IN_WORDS[wanted.end]} but {other}: {now.told}")
    raise Failed(f"{single.KIND}/{name} {now.told}: it will not be {_IN_WORDS[wanted.end]} any more")


async def _follow(client: Client, found: single.Single, wanted: Wanted) -> Standing:
    jobset = found.jobset
    if wanted.seconds > 0:
        async with Following(client, jobset.namespace, jobset.name, jobset.uid, wanted.rights) as following:
            with suppress(TimeoutError):
                return await following.until(_is_over, wanted.seconds)
    why = f"{wanted.program} why {jobset.name} -n {jobset.namespace}"
    told = f"{single.KIND}/{jobset.name} is not {_IN_WORDS[wanted.end]} after {span(wanted.seconds)}"
    raise Failed(f"{told}; `{why}` says what it waits for", Exit.TIMEOUT)


def _is_over(now: Standing) -> bool:
    return bool(now.ends) or now.hopeless
