"""What `wait` does: follows JobSets and pod groups until each of them is where it is wanted."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch import jobset
from jobset_gate.cli.fetch.objects import ObjectNotFound
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.printers import output
from jobset_gate.cli.resource_args import ResourceArgument, ResourceKind, parse_resource
from jobset_gate.cli.watch.jobset_follower import JobSetFollower
from jobset_gate.cli.watch.outcome import GOAL_TEXT, JOBSET_GOALS, WaitGoal, WaitOutcome, jobset_outcome
from jobset_gate.explain.text import format_duration
from jobset_gate.kube import access
from jobset_gate.kube.client import Client


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """What the command line asks for. `end` None: what is hoped for of each kind."""

    names: Sequence[str]
    end: WaitGoal | None
    seconds: float
    namespace: str | None = None
    config: Path | None = None
    program: str = "jobset-gate"
    rights: Permissions = field(default_factory=Permissions)


async def run(wanted: WaitOptions, *, kubeconfig: str | None, context: str | None) -> ExitCode:
    """Says of each how it ended. What failed weighs more than what took too long."""
    subjects = [_checked(parse_resource(it), it, wanted.end) for it in wanted.names]
    reached = await access.load_access(kubeconfig, context)
    namespace = wanted.namespace or reached.namespace
    caller = Invocation(wanted.program, kubeconfig, context)
    async with Client(reached) as client:
        waits = [_Wait(client, namespace, it, wanted, caller) for it in dict.fromkeys(subjects)]
        codes = await asyncio.gather(*(it.told() for it in waits))
    for line in wanted.rights.missing:
        output.err(f"warning: {line}")
    return next((code for code in (ExitCode.ERROR, ExitCode.TIMEOUT) if code in codes), ExitCode.OK)


def _checked(it: ResourceArgument, text: str, end: WaitGoal | None) -> ResourceArgument:
    """Raises Failed for what cannot be waited for."""
    if it.kind is ResourceKind.POD:
        raise CommandError(
            f"{text}: only JobSets and pod groups can be waited for: say jobset/NAME or podgroup/NAME", ExitCode.USAGE
        )
    if it.kind is ResourceKind.JOBSET and end not in (None, *JOBSET_GOALS):
        raise CommandError(f"{text}: a JobSet's gate is released or timedout, not {end}", ExitCode.USAGE)
    if it.kind is ResourceKind.POD_GROUP and end is WaitGoal.RELEASED:
        raise CommandError(
            f"{text}: a pod group is opened, and satisfied: say --for=opened or --for=satisfied", ExitCode.USAGE
        )
    return it


@dataclass(frozen=True, slots=True)
class _Wait:
    """For one of them."""

    client: Client
    namespace: str
    of: ResourceArgument
    wanted: WaitOptions
    caller: Invocation

    async def told(self) -> ExitCode:
        """Waits, and says how it ended."""
        try:
            told = await self._ended()
        except CommandError as failed:
            output.err(f"error: {failed}")
            return failed.code
        output.out(told + "\n")
        return ExitCode.OK

    async def _ended(self) -> str:
        """Raises Failed if anything else comes."""
        if self.of.kind is ResourceKind.POD_GROUP or self.wanted.end in (WaitGoal.OPENED, WaitGoal.SATISFIED):
            return await self._group()
        try:
            return await self._jobset()
        except ObjectNotFound as absent:
            if self.of.kind is ResourceKind.JOBSET or self.wanted.end is WaitGoal.RELEASED:
                raise
            try:
                return await self._group()
            except ObjectNotFound:
                raise ObjectNotFound(f"{absent}, and no pod group of that name either") from absent

    async def _jobset(self) -> str:
        end = self.wanted.end or WaitGoal.RELEASED
        found = await jobset.get_gated_jobset(self.client, self.namespace, self.of.name, self.wanted.rights)
        subject = f"{jobset.JOBSET_KIND}/{self.of.name}"
        now = jobset_outcome(found.jobset, found.gate, found.read_at)
        if not now.is_over(end):
            now = await self._follow(found, subject, end)
        return _verdict(subject, end, now)

    async def _follow(self, found: jobset.JobSetAndVerdict, subject: str, end: WaitGoal) -> WaitOutcome:
        its = found.jobset
        if self.wanted.seconds > 0:
            async with JobSetFollower(self.client, its.namespace, its.name, its.uid, self.wanted.rights) as following:
                with suppress(TimeoutError):
                    return await following.until(lambda now: now.is_over(end), self.wanted.seconds)
        raise self._late(subject, end, its.name)

    async def _group(self) -> str:
        # Imported late: whoever waits for a JobSet need not wait for it.
        from jobset_gate.cli.watch import pod_group_wait  # noqa: PLC0415

        end = self.wanted.end or WaitGoal.SATISFIED
        subject = f"podgroup/{self.of.name}"
        now = await pod_group_wait.wait_for_pod_group(self.client, self.namespace, self.of.name, self.wanted, end)
        if not now.is_over(end):
            raise self._late(subject, end, subject)
        return _verdict(subject, end, now)

    def _late(self, subject: str, end: WaitGoal, name: str) -> CommandError:
        why = self.caller.command(f"jobset-gate why {name} -n {self.namespace}")
        waited = format_duration(self.wanted.seconds)
        told = f"{subject} is not {GOAL_TEXT[end]} after {waited}; `{why}` says what it waits for"
        return CommandError(told, ExitCode.TIMEOUT)


def _verdict(subject: str, end: WaitGoal, now: WaitOutcome) -> str:
    """Raises Failed if it is another one."""
    if end in now.reached:
        return f"{subject} {GOAL_TEXT[end]}" + (f": {now.message}" if now.message else "")
    if now.reached & JOBSET_GOALS:
        other = " and ".join(GOAL_TEXT[it] for it in sorted(now.reached & JOBSET_GOALS))
        raise CommandError(f"{subject} was not {GOAL_TEXT[end]} but {other}: {now.message}")
    raise CommandError(f"{subject} {now.message}: it will not be {GOAL_TEXT[end]} any more")
