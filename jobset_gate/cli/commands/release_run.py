"""What `release` and `bypass` do: open a gate by hand, and leave an Event that says who did.

`bypass` leaves the annotation, so every generation to come passes, too. `release` takes it away again as soon as the
verdict on the present generation stands, so that whatever is restarted later waits as before.
"""

import sys
from dataclasses import dataclass, field

import typer

from jobset_gate import names
from jobset_gate.cli import audit_event, bypass_annotation
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch import jobset as single
from jobset_gate.cli.fetch import jobset_controller, whoami
from jobset_gate.cli.fetch.jobset import JobSetAndVerdict
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.printers import output
from jobset_gate.cli.resource_args import ResourceKind, parse_resource
from jobset_gate.cli.watch.jobset_follower import FIRST_READ_TIMEOUT, JobSetFollower
from jobset_gate.cli.watch.outcome import WaitGoal, WaitOutcome, jobset_outcome
from jobset_gate.explain.text import format_duration
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """What the command line asks for."""

    name: str
    for_good: bool
    """`bypass`; otherwise `release`."""
    namespace: str | None = None
    sure: bool = False
    dry_run: bool = False
    seconds: float = 60.0
    """So long `release` waits for the verdict."""
    program: str = "jobset-gate"
    rights: Permissions = field(default_factory=Permissions)


async def run(wanted: ReleaseOptions, *, kubeconfig: str | None, context: str | None) -> ExitCode:
    """Raises Failed where the gate cannot be opened, or may not."""
    caller = Invocation(wanted.program, kubeconfig, context)
    try:
        told = await _open(wanted, kubeconfig=kubeconfig, context=context)
    except CommandError as failed:
        raise CommandError(caller.rewrite_commands(str(failed)), failed.code) from failed
    output.out(caller.rewrite_commands(told) + "\n")
    return ExitCode.OK


async def _open(wanted: ReleaseOptions, *, kubeconfig: str | None, context: str | None) -> str:
    name = _named(wanted)
    reached = await access.load_access(kubeconfig, context)
    async with Client(reached) as client:
        found = await single.get_gated_jobset(client, wanted.namespace or reached.namespace, name, wanted.rights)
        now = jobset_outcome(found.jobset, found.gate, found.read_at)
        done = _already(found, now, wanted)
        if done:
            return done
        _refuse(found, now, wanted)
        await _warn(client, reached.namespace)
        who = await whoami.current_user(client, kubeconfig, context)
        await audit_event.check_event_allowed(client, found.jobset)
        if not wanted.dry_run:
            _ask(found, wanted)
        told = await (_bypass if wanted.for_good else _release)(client, found, who, wanted)
    for line in wanted.rights.missing:
        output.err(f"warning: {line}")
    return told


def _named(wanted: ReleaseOptions) -> str:
    """The name of a JobSet. A pod group has no gate that could be opened as a whole and audited: there is no verb."""
    it = parse_resource(wanted.name)
    if it.kind is not ResourceKind.POD_GROUP:
        return single.jobset_name(wanted.name)
    told = "a pod group has no start barrier; it is opened as soon as it has room"
    where = f" -n {wanted.namespace}" if wanted.namespace else ""
    how = f"`jobset-gate groups ungate {it.name}{where}` lets its pods be scheduled now, one by one and for good"
    raise CommandError(f"{wanted.name}: {told}. {how}", ExitCode.USAGE)


# --- What stands in the way ------------------------------------------------------------------------------------------


def _already(found: JobSetAndVerdict, now: WaitOutcome, wanted: ReleaseOptions) -> str:
    """What there is to say where nothing has to be done; "" elsewhere."""
    subject = f"{single.JOBSET_KIND}/{found.jobset.name}"
    if wanted.for_good:
        return f"{subject} unchanged: its gate is bypassed already" if found.jobset.bypass else ""
    return f"{subject} unchanged: its gate is open already: {now.message}" if WaitGoal.RELEASED in now.reached else ""


def _refuse(found: JobSetAndVerdict, now: WaitOutcome, wanted: ReleaseOptions) -> None:
    jobset = found.jobset
    subject = f"{single.JOBSET_KIND}/{jobset.name}"
    if now.final or jobset.finished:
        raise CommandError(f"{subject} cannot be opened: {now.message or 'it has finished'}")
    if wanted.for_good:
        return
    if WaitGoal.TIMED_OUT in now.reached:
        raise CommandError(
            f"{subject} cannot be opened: it has timed out, and that stands until it restarts: {now.message}"
        )
    if jobset.suspended:
        raise CommandError(
            f"{subject} is suspended: there is no generation to release yet; resume it first, or "
            f"`jobset-gate bypass {jobset.name} -n {jobset.namespace}` opens it for good"
        )
    if jobset.bypass:
        why = f"`jobset-gate why {jobset.name} -n {jobset.namespace}` says whether one runs"
        raise CommandError(f"{subject} is bypassed: it opens as soon as a controller looks; {why}")


async def _warn(client: Client, namespace: str) -> None:
    """No more than that: a controller without leader election has no Lease."""
    decides = await jobset_controller.jobset_controller_status(client, namespace)
    if not decides.leads:
        output.err(f"warning: {decides.told}")


def _ask(found: JobSetAndVerdict, wanted: ReleaseOptions) -> None:
    if wanted.sure:
        return
    subject = f"JobSet {found.jobset.namespace}/{found.jobset.name}"
    if not sys.stdin.isatty():
        raise CommandError(f"the gate of {subject} would be opened: say --yes to do that", ExitCode.USAGE)
    when = "now and after every restart" if wanted.for_good else "now"
    typer.confirm(f"Open the gate of {subject} {when}, whoever is still missing?", abort=True, err=True)


# --- Opening it ------------------------------------------------------------------------------------------------------


async def _bypass(client: Client, found: JobSetAndVerdict, who: str, wanted: ReleaseOptions) -> str:
    jobset = found.jobset
    await bypass_annotation.set_annotation(client, jobset, dry_run=wanted.dry_run)
    subject = f"{single.JOBSET_KIND}/{jobset.name}"
    if wanted.dry_run:
        return f"{subject} bypassed (server dry run)"
    message = f"{who} has opened the gate for good, by the annotation {names.BYPASS}"
    await _tell(client, found, names.REASON_BYPASSED_BY_USER, message)
    return f"{subject} bypassed for good; `{bypass_annotation.removal_command(jobset)}` gates later restarts again"


async def _release(client: Client, found: JobSetAndVerdict, who: str, wanted: ReleaseOptions) -> str:
    jobset = found.jobset
    subject = f"{single.JOBSET_KIND}/{jobset.name}"
    if wanted.dry_run:
        await bypass_annotation.set_annotation(client, jobset, dry_run=True)
        return f"{subject} released (server dry run)"
    async with JobSetFollower(client, jobset.namespace, jobset.name, jobset.uid, wanted.rights) as following:
        await _looked(following, subject)  # who may not watch is told so before anything is changed
        message = f"{who} has asked for the gate of attempt {jobset.attempt} to be opened now, whoever is missing"
        try:
            async with bypass_annotation.temporary_annotation(client, jobset):
                await _tell(client, found, names.REASON_RELEASED_BY_USER, message)
                ended = await following.until(lambda now: bool(now.reached) or now.final, wanted.seconds)
        except TimeoutError as late:
            within = format_duration(wanted.seconds)
            told = f"{subject}: no controller has opened it within {within}; its annotation is gone again"
            raise CommandError(told, ExitCode.TIMEOUT) from late
    if WaitGoal.RELEASED in ended.reached:
        return f"{subject} released: {ended.message}"
    raise CommandError(f"{subject} was not released: {ended.message}")


async def _looked(following: JobSetFollower, subject: str) -> None:
    try:
        await following.until(lambda _: True, FIRST_READ_TIMEOUT)
    except TimeoutError as late:
        within = format_duration(FIRST_READ_TIMEOUT)
        told = f"{subject} was left alone: the API server does not answer its watch within {within}"
        raise CommandError(told, ExitCode.TIMEOUT) from late


async def _tell(client: Client, found: JobSetAndVerdict, reason: str, message: str) -> None:
    """It has been allowed a moment ago; what goes wrong now changes nothing any more, but is said."""
    try:
        await audit_event.write_event(client, found.jobset, reason, message)
    except KubeError as problem:
        output.err(f"warning: the Event that says who did this could not be written: {problem}")
