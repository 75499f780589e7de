"""`release` and `bypass`: a gate opened by hand, for now or for good, audited by an Event.

`bypass` leaves its annotation, so every later generation passes, too. `release` removes it as soon as the verdict on
the present generation stands, so that a restarted gang waits as before.
"""

import sys
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from jobset_gate import names
from jobset_gate.barrier.model import GangSnapshot, WorkloadSeen
from jobset_gate.barrier.source import name_and_index
from jobset_gate.cli import opening as acts
from jobset_gate.cli.cluster import Invocation
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.controller_status import controller_status
from jobset_gate.cli.fetch.gangs import argument_of, kubectl_name
from jobset_gate.cli.fetch.leader_worker_set import LwsGroups, fetch_groups
from jobset_gate.cli.fetch.names import SOURCE_OF, resolve_gang
from jobset_gate.cli.fetch.outcome import WaitGoal, WaitOutcome, gang_outcome
from jobset_gate.cli.fetch.source import NamespaceReader
from jobset_gate.cli.fetch.view import FIRST_READ_TIMEOUT, GangView, get_gang, wait_until
from jobset_gate.cli.opening import deliver, release_pods
from jobset_gate.cli.options import (
    DryRun,
    DryRunOption,
    Owner,
    ResourceArgument,
    ResourceKind,
    Yes,
    new_app,
    parse_resource,
)
from jobset_gate.cli.options import timeout as limit
from jobset_gate.cli.printers import output
from jobset_gate.explain.text import format_duration
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import LEADER_WORKER_SETS
from jobset_gate.runtime.recorder import ObjectReference
from jobset_gate.sources.table import JOBSET, LWS

app = new_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions:
    """What the command line asks for."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="[jobset/|job/|lws/|startgroup/|trainjob/|pod/]NAME",
            help="The JobSet, Job, LeaderWorkerSet (lws/NAME/2 is one group) or start group.",
            show_default=False,
        ),
    ]
    owner: Owner = ""
    yes: Yes = False
    dry_run: DryRunOption = DryRun.NONE


@app.command("release", epilog="Example: {program} release train -n team")
async def release(
    *,
    options: ReleaseOptions,
    timeout: Annotated[float, limit("How long to wait for it, such as 30s or 5m.", default="1m")] = 60.0,
    invocation: Invocation,
) -> None:
    """Let the pods that are there go now, without those that are missing. After a restart the gang is gated again.

    Sets the annotation that opens the gate, waits until the controller has decided, and takes it away again, also
    when it is interrupted. An Event on it says who did it. Needs the right to get, list, watch and patch
    JobSets (or Jobs) and to create Events. Ends with exit code 3 if nobody has decided in time.

    Of a start group it writes the decision itself, into its ConfigMap and onto its pods, with an Event on the owner
    of the pods; so it does of a LeaderWorkerSet, for each group that waits, or for the one that is named. Needs the
    right to list and patch pods, to get, create and patch ConfigMaps and to create Events.
    """
    await _Opening(options, invocation, timeout).run()


@app.command("bypass", epilog="Example: {program} bypass train -n team --dry-run=server")
async def bypass(*, options: ReleaseOptions, invocation: Invocation) -> None:
    """Let all pods of a gang go, now and after every restart, by an annotation that stays.

    An Event on the JobSet, Job or LeaderWorkerSet says who did it. Needs the right to get and patch it and to create
    Events. A gang that has timed out stays so until it restarts.
    """
    await _Opening(options, invocation, None).run()


@dataclass(slots=True)
class _Opening:
    """One run of either command. `seconds`: how long `release` waits for the verdict; None: `bypass`."""

    options: ReleaseOptions
    invocation: Invocation
    seconds: float | None

    async def run(self) -> None:
        """Raises CommandError where the gate cannot be opened, or may not."""
        rewrite = self.invocation.rewrite_commands
        try:
            done = await self._open()
        except CommandError as failed:
            raise CommandError(rewrite(str(failed)), failed.code) from failed
        output.out(rewrite(done) + "\n")

    async def _open(self) -> str:
        given, its = self._named(), self.invocation
        async with its.cluster.connect() as client:
            reader = NamespaceReader(client, its.namespace or client.access.namespace)
            given = await resolve_gang(reader, given)
            self._check_bypass(given)
            if given.kind is ResourceKind.LWS:
                done = await self._open_groups(reader, await fetch_groups(reader, given.name))
            else:
                gang = await get_gang(reader, SOURCE_OF.get(given.kind, JOBSET), given.name)
                done = await self._open_gang(reader, gang)
        for line in reader.permissions.missing:
            output.err(f"warning: {line}")
        return done

    async def _open_gang(self, reader: NamespaceReader, gang: GangSnapshot) -> str:
        workload, now = gang.workload, gang_outcome(gang, time.time())
        if done := self._nothing_to_do(workload, now):
            return done
        self._check_can_open(workload, now)
        subject, named = f"{workload.source.kind} {workload.namespace}/{workload.shown_name}", kubectl_name(workload)
        if self.seconds is None:
            return await self._bypass(reader.client, acts.target_of(workload), subject, named)
        user = await self._user(reader.client, acts.reference_of(workload))
        self._confirm(subject)
        if workload.source.gates_pods:
            return await self._released(reader, workload, user)
        if tried := await self._tried(reader.client, acts.target_of(workload), named):
            return tried
        return await self._release(reader, workload, user, self.seconds)

    async def _open_groups(self, reader: NamespaceReader, groups: LwsGroups) -> str:
        """All groups of a LeaderWorkerSet: those that wait are released, or the LeaderWorkerSet is bypassed."""
        named, waiting = f"{LWS.resource}/{groups.name}", dict[int, WorkloadSeen]()
        if self.seconds is None:
            return await self._bypass_groups(reader.client, groups)
        for number, it in sorted(groups.gangs.items()):
            now = gang_outcome(it.gang, time.time())
            try:
                if not self._nothing_to_do(it.gang.workload, now):
                    self._check_can_open(it.gang.workload, now)
                    waiting[number] = it.gang.workload
            except CommandError as no:
                output.err(f"warning: {no}")
        if not waiting:
            return f"{named} unchanged: no group of it waits"
        user = await self._user(reader.client, acts.reference_of(next(iter(waiting.values()))))
        numbers = ", ".join(map(str, waiting))
        self._confirm(f"{LWS.kind} {groups.namespace}/{groups.name}, groups {numbers}")
        return "\n".join([await self._released(reader, it, user) for it in waiting.values()])

    async def _bypass_groups(self, client: Client, groups: LwsGroups) -> str:
        its, named = groups.parent, f"{LWS.resource}/{groups.name}"
        if its is None:
            raise CommandError(f"{named} cannot be bypassed: it may not be read, or asks for no gate any more")
        if its.bypass:
            return f"{named} unchanged: its gate is bypassed already"
        target = acts.Target(LEADER_WORKER_SETS, its.name, its.namespace, its.uid, "group")
        return await self._bypass(client, target, f"{LWS.kind} {its.namespace}/{its.name}", named)

    async def _user(self, client: Client, about: ObjectReference) -> str:
        """Who asks. Raises CommandError where the Event that says so may not be written."""
        controller = await controller_status(client, client.access.namespace)
        if not controller.leads:  # no more than a warning: without leader election there is no Lease
            output.err(f"warning: {controller.message}")
        user = await acts.current_user(client)
        if self.options.dry_run is not DryRun.CLIENT:
            await acts.check_event_allowed(client, about)
        return user

    def _named(self) -> ResourceArgument:
        """A pod group has no gate that could be opened as a whole and audited, so there is no such command."""
        given = self.options.name
        it = parse_resource(given, self.options.owner)
        self._check_bypass(it)
        if it.kind is not ResourceKind.POD_GROUP:
            return it
        where = f" -n {self.invocation.namespace}" if self.invocation.namespace else ""
        how = f"`jobset-gate groups ungate {it.name}{where}` lets its pods be scheduled now, one by one and for good"
        why = "a pod group has no start barrier; it is opened as soon as it has room"
        raise CommandError(f"{given}: {why}. {how}", ExitCode.USAGE)

    def _check_bypass(self, it: ResourceArgument) -> None:
        """Pods of a start group have their annotations from when they are created."""
        if it.kind is ResourceKind.LWS_GROUP and self.seconds is None:
            given, whole = self.options.name, f"{LWS.resource}/{name_and_index(it.name)[0]}"
            why = f"`jobset-gate bypass {whole}` opens all, `jobset-gate release {given}` this one now"
            raise CommandError(f"{given}: groups of a LeaderWorkerSet are bypassed together: {why}", ExitCode.USAGE)
        if it.kind is ResourceKind.START_GROUP and self.seconds is None:
            given, note = self.options.name, f'{names.BYPASS}: "true"'
            put = f"put the annotation {note} into the pod template of its owner, for pods created from then on"
            why = f"{put}; `jobset-gate release {given}` opens it now"
            raise CommandError(f"{given}: pods of a start group are bypassed by their template: {why}", ExitCode.USAGE)

    # --- What stands in the way --------------------------------------------------------------------------------------

    def _nothing_to_do(self, workload: WorkloadSeen, now: WaitOutcome) -> str:
        """The message where the gate is open already; "" elsewhere."""
        if self.seconds is None:
            return f"{kubectl_name(workload)} unchanged: its gate is bypassed already" if workload.bypass else ""
        is_open = WaitGoal.RELEASED in now.reached
        return f"{kubectl_name(workload)} unchanged: its gate is open already: {now.message}" if is_open else ""

    def _check_can_open(self, workload: WorkloadSeen, now: WaitOutcome) -> None:
        subject, named = kubectl_name(workload), f"{argument_of(workload)} -n {workload.namespace}"
        if now.final or workload.finished:
            raise CommandError(f"{subject} cannot be opened: {now.message or 'it has finished'}")
        if self.seconds is None:
            return
        if WaitGoal.TIMED_OUT in now.reached:
            again = "restarts" if workload.source.restarts else "is suspended and resumed"
            again = "has other pods only" if workload.source.gates_pods else again
            why = f"it has timed out, and that stands until it {again}: {now.message}"
            raise CommandError(f"{subject} cannot be opened: {why}")
        if workload.suspended:
            why = f"resume it first, or `jobset-gate bypass {named}` opens it for good"
            raise CommandError(f"{subject} is suspended: there is no generation to release yet; {why}")
        if workload.bypass:
            why = f"`jobset-gate why {named}` says whether one runs"
            raise CommandError(f"{subject} is bypassed: it opens as soon as a controller looks; {why}")

    def _confirm(self, subject: str, later: str = "") -> None:
        if self.options.yes or self.options.dry_run is not DryRun.NONE:
            return
        if not sys.stdin.isatty():
            raise CommandError(f"the gate of {subject} would be opened: say --yes to do that", ExitCode.USAGE)
        question = f"Open the gate of {subject} now{later}, without the pods that are still missing?"
        typer.confirm(question, abort=True, err=True)

    # --- Opening it --------------------------------------------------------------------------------------------------

    async def _bypass(self, client: Client, target: acts.Target, subject: str, named: str) -> str:
        user = await self._user(client, target.reference)
        self._confirm(subject, f" and after every {target.new_start}")
        if tried := await self._tried(client, target, named):
            return tried
        await acts.set_annotation(client, target, dry_run=False)
        message = f"{user} has opened the gate for good, by the annotation {names.BYPASS}"
        await _audit(client, target.reference, names.REASON_BYPASSED_BY_USER, message)
        return f"{named} bypassed for good; `{target.removal_command}` gates later {target.new_start}s again"

    async def _tried(self, client: Client, target: acts.Target, named: str) -> str:
        """What a dry run says; "" if this is none."""
        if self.options.dry_run is DryRun.NONE:
            return ""
        if self.options.dry_run is DryRun.SERVER:
            await acts.set_annotation(client, target, dry_run=True)
        return f"{named} {'bypassed' if self.seconds is None else 'released'}{self.options.dry_run.suffix}"

    async def _released(self, reader: NamespaceReader, workload: WorkloadSeen, user: str) -> str:
        """Of a pod source: the decision is written here, or tried."""
        if self.options.dry_run is not DryRun.NONE:
            if self.options.dry_run is DryRun.SERVER:
                await release_pods(reader, workload, dry_run=True)
            return f"{kubectl_name(workload)} released{self.options.dry_run.suffix}"
        seen, verdict = await release_pods(reader, workload, dry_run=False)
        attempt = f"attempt {verdict.generation.attempt} of " if workload.source.keeps_attempt else ""
        message = f"{user} has opened the gate of {attempt}{kubectl_name(workload)}"
        about, message = acts.reference_of(workload), f"{message}, without the missing pods"
        await _audit(reader.client, about, names.REASON_RELEASED_BY_USER, message)
        if problem := await deliver(reader.client, seen, verdict):
            output.err(f"warning: {problem}")
        return f"{kubectl_name(workload)} released: {verdict.message}"

    async def _release(self, reader: NamespaceReader, workload: WorkloadSeen, user: str, seconds: float) -> str:
        subject, client = kubectl_name(workload), reader.client
        async with GangView(reader, GangSnapshot(workload=workload), pods=False) as view:
            await _check_watch(view, subject)  # without the right to watch nothing is changed
            message = f"{user} opens the gate of attempt {workload.attempt} now, without the missing pods"
            try:
                async with acts.temporary_annotation(client, acts.target_of(workload)):
                    await _audit(client, acts.reference_of(workload), names.REASON_RELEASED_BY_USER, message)
                    now = await wait_until(view, lambda now: bool(now.reached) or now.final, seconds)
            except TimeoutError as late:
                after = format_duration(seconds)
                why = f"{subject}: no controller has opened it within {after}; its annotation is gone again"
                raise CommandError(why, ExitCode.TIMEOUT) from late
        if WaitGoal.RELEASED in now.reached:
            return f"{subject} released: {now.message}"
        raise CommandError(f"{subject} was not released: {now.message}")


async def _check_watch(view: GangView, subject: str) -> None:
    try:
        await wait_until(view, lambda _: True, FIRST_READ_TIMEOUT)
    except TimeoutError as late:
        after = format_duration(FIRST_READ_TIMEOUT)
        why = f"{subject} was left alone: the API server does not answer its watch within {after}"
        raise CommandError(why, ExitCode.TIMEOUT) from late


async def _audit(client: Client, about: ObjectReference, reason: str, message: str) -> None:
    """A dry run of it was allowed a moment ago; a failure now is printed, and changes nothing."""
    try:
        await acts.write_event(client, about, reason, message)
    except KubeError as problem:
        output.err(f"warning: the Event that says who did this could not be written: {problem}")
