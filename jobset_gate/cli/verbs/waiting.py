"""What `wait` does: follows JobSets and pod groups until each of them is where it is wanted."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jobset_gate.cli.caller import Caller
from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.looking.objects import Absent
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.looking.subjects import Named, What, named
from jobset_gate.cli.telling import output
from jobset_gate.cli.verbs import single
from jobset_gate.cli.verbs.following import Following
from jobset_gate.cli.verbs.standing import GATES, IN_WORDS, End, Standing, standing
from jobset_gate.explained_lines import span
from jobset_gate.kube import access
from jobset_gate.kube.client import Client


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for. `end` None: what is hoped for of each kind."""

    names: Sequence[str]
    end: End | None
    seconds: float
    namespace: str | None = None
    config: Path | None = None
    program: str = "jobset-gate"
    rights: Rights = field(default_factory=Rights)


async def run(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> Exit:
    """Says of each how it ended. What failed weighs more than what took too long."""
    subjects = [_checked(named(it), it, wanted.end) for it in wanted.names]
    reached = await access.discover(kubeconfig, context)
    namespace = wanted.namespace or reached.namespace
    caller = Caller(wanted.program, kubeconfig, context)
    async with Client(reached) as client:
        waits = [_Wait(client, namespace, it, wanted, caller) for it in dict.fromkeys(subjects)]
        codes = await asyncio.gather(*(it.told() for it in waits))
    for line in wanted.rights.missing:
        output.err(f"warning: {line}")
    return next((code for code in (Exit.ERROR, Exit.TIMEOUT) if code in codes), Exit.OK)


def _checked(it: Named, text: str, end: End | None) -> Named:
    """Raises Failed for what cannot be waited for."""
    if it.what is What.POD:
        raise Failed(
            f"{text}: only JobSets and pod groups can be waited for: say jobset/NAME or podgroup/NAME", Exit.USAGE
        )
    if it.what is What.JOBSET and end not in (None, *GATES):
        raise Failed(f"{text}: a JobSet's gate is released or timedout, not {end}", Exit.USAGE)
    if it.what is What.GROUP and end is End.RELEASED:
        raise Failed(f"{text}: a pod group is opened, and satisfied: say --for=opened or --for=satisfied", Exit.USAGE)
    return it


@dataclass(frozen=True, slots=True)
class _Wait:
    """For one of them."""

    client: Client
    namespace: str
    of: Named
    wanted: Wanted
    caller: Caller

    async def told(self) -> Exit:
        """Waits, and says how it ended."""
        try:
            told = await self._ended()
        except Failed as failed:
            output.err(f"error: {failed}")
            return failed.code
        output.out(told + "\n")
        return Exit.OK

    async def _ended(self) -> str:
        """Raises Failed if anything else comes."""
        if self.of.what is What.GROUP or self.wanted.end in (End.OPENED, End.SATISFIED):
            return await self._group()
        try:
            return await self._jobset()
        except Absent as absent:
            if self.of.what is What.JOBSET or self.wanted.end is End.RELEASED:
                raise
            try:
                return await self._group()
            except Absent:
                raise Absent(f"{absent}, and no pod group of that name either") from absent

    async def _jobset(self) -> str:
        end = self.wanted.end or End.RELEASED
        found = await single.find(self.client, self.namespace, self.of.name, self.wanted.rights)
        subject = f"{single.KIND}/{self.of.name}"
        now = standing(found.jobset, found.gate, found.seen_at)
        if not now.is_over(end):
            now = await self._follow(found, subject, end)
        return _verdict(subject, end, now)

    async def _follow(self, found: single.Single, subject: str, end: End) -> Standing:
        its = found.jobset
        if self.wanted.seconds > 0:
            async with Following(self.client, its.namespace, its.name, its.uid, self.wanted.rights) as following:
                with suppress(TimeoutError):
                    return await following.until(lambda now: now.is_over(end), self.wanted.seconds)
        raise self._late(subject, end, its.name)

    async def _group(self) -> str:
        # Imported late: whoever waits for a JobSet need not wait for it.
        from jobset_gate.cli.groups import waiting  # noqa: PLC0415

        end = self.wanted.end or End.SATISFIED
        subject = f"podgroup/{self.of.name}"
        now = await waiting.until(self.client, self.namespace, self.of.name, self.wanted, end)
        if not now.is_over(end):
            raise self._late(subject, end, subject)
        return _verdict(subject, end, now)

    def _late(self, subject: str, end: End, name: str) -> Failed:
        why = self.caller.line(f"jobset-gate why {name} -n {self.namespace}")
        told = f"{subject} is not {IN_WORDS[end]} after {span(self.wanted.seconds)}; `{why}` says what it waits for"
        return Failed(told, Exit.TIMEOUT)


def _verdict(subject: str, end: End, now: Standing) -> str:
    """Raises Failed if it is another one."""
    if end in now.ends:
        return f"{subject} {IN_WORDS[end]}" + (f": {now.told}" if now.told else "")
    if now.ends & GATES:
        other = " and ".join(IN_WORDS[it] for it in sorted(now.ends & GATES))
        raise Failed(f"{subject} was not {IN_WORDS[end]} but {other}: {now.told}")
    raise Failed(f"{subject} {now.told}: it will not be {IN_WORDS[end]} any more")
