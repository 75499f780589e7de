"""What `release` and `bypass` do: open a gate by hand, and leave an Event that says who did.

`bypass` leaves the annotation, so every generation to come passes, too. `release` takes it away again as soon as the
verdict on the present generation stands, so that whatever is restarted later waits as before.
"""

import sys
from dataclasses import dataclass, field

import typer

from jobset_gate import names
from jobset_gate.cli.caller import Caller
from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.looking import keeper
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.looking.subjects import What, named
from jobset_gate.cli.telling import output
from jobset_gate.cli.verbs import auditing, noting, people, single
from jobset_gate.cli.verbs.following import FIRST_LOOK, Following
from jobset_gate.cli.verbs.single import Single
from jobset_gate.cli.verbs.standing import End, Standing, standing
from jobset_gate.explained_lines import span
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError


@dataclass(frozen=True, slots=True)
class Wanted:
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
    rights: Rights = field(default_factory=Rights)


async def run(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> Exit:
    """Raises Failed where the gate cannot be opened, or may not."""
    caller = Caller(wanted.program, kubeconfig, context)
    try:
        told = await _open(wanted, kubeconfig=kubeconfig, context=context)
    except Failed as failed:
        raise Failed(caller.text(str(failed)), failed.code) from failed
    output.out(caller.text(told) + "\n")
    return Exit.OK


async def _open(wanted: Wanted, *, kubeconfig: str | None, context: str | None) -> str:
    name = _named(wanted)
    reached = await access.discover(kubeconfig, context)
    async with Client(reached) as client:
        found = await single.find(client, wanted.namespace or reached.namespace, name, wanted.rights)
        now = standing(found.jobset, found.gate, found.seen_at)
        done = _already(found, now, wanted)
        if done:
            return done
        _refuse(found, now, wanted)
        await _warn(client, reached.namespace)
        who = await people.user(client, kubeconfig, context)
        await auditing.attempt(client, found.jobset)
        if not wanted.dry_run:
            _ask(found, wanted)
        told = await (_bypass if wanted.for_good else _release)(client, found, who, wanted)
    for line in wanted.rights.missing:
        output.err(f"warning: {line}")
    return told


def _named(wanted: Wanted) -> str:
    """The name of a JobSet. A pod group has no gate that could be opened as a whole and audited: there is no verb."""
    it = named(wanted.name)
    if it.what is not What.GROUP:
        return single.subject(wanted.name)
    told = "a pod group has no start barrier; it is opened as soon as it has room"
    where = f" -n {wanted.namespace}" if wanted.namespace else ""
    how = f"`jobset-gate groups ungate {it.name}{where}` lets its pods be scheduled now, one by one and for good"
    raise Failed(f"{wanted.name}: {told}. {how}", Exit.USAGE)


# --- What stands in the way ------------------------------------------------------------------------------------------


def _already(found: Single, now: Standing, wanted: Wanted) -> str:
    """What there is to say where nothing has to be done; "" elsewhere."""
    subject = f"{single.KIND}/{found.jobset.name}"
    if wanted.for_good:
        return f"{subject} unchanged: its gate is bypassed already" if found.jobset.bypass else ""
    return f"{subject} unchanged: its gate is open already: {now.told}" if End.RELEASED in now.ends else ""


def _refuse(found: Single, now: Standing, wanted: Wanted) -> None:
    jobset = found.jobset
    subject = f"{single.KIND}/{jobset.name}"
    if now.hopeless or jobset.finished:
        raise Failed(f"{subject} cannot be opened: {now.told or 'it has finished'}")
    if wanted.for_good:
        return
    if End.TIMED_OUT in now.ends:
        raise Failed(f"{subject} cannot be opened: it has timed out, and that stands until it restarts: {now.told}")
    if jobset.suspended:
        raise Failed(
            f"{subject} is suspended: there is no generation to release yet; resume it first, or "
            f"`jobset-gate bypass {jobset.name} -n {jobset.namespace}` opens it for good"
        )
    if jobset.bypass:
        why = f"`jobset-gate why {jobset.name} -n {jobset.namespace}` says whether one runs"
        raise Failed(f"{subject} is bypassed: it opens as soon as a controller looks; {why}")


async def _warn(client: Client, namespace: str) -> None:
    """No more than that: a controller without leader election has no Lease."""
    decides = await keeper.controller(client, namespace)
    if not decides.leads:
        output.err(f"warning: {decides.told}")


def _ask(found: Single, wanted: Wanted) -> None:
    if wanted.sure:
        return
    subject = f"JobSet {found.jobset.namespace}/{found.jobset.name}"
    if not sys.stdin.isatty():
        raise Failed(f"the gate of {subject} would be opened: say --yes to do that", Exit.USAGE)
    when = "now and after every restart" if wanted.for_good else "now"
    typer.confirm(f"Open the gate of {subject} {when}, whoever is still missing?", abort=True, err=True)


# --- Opening it ------------------------------------------------------------------------------------------------------


async def _bypass(client: Client, found: Single, who: str, wanted: Wanted) -> str:
    jobset = found.jobset
    await noting.put(client, jobset, dry_run=wanted.dry_run)
    subject = f"{single.KIND}/{jobset.name}"
    if wanted.dry_run:
        return f"{subject} bypassed (server dry run)"
    message = f"{who} has opened the gate for good, by the annotation {names.BYPASS}"
    await _tell(client, found, names.REASON_BYPASSED_BY_USER, message)
    return f"{subject} bypassed for good; `{noting.undo(jobset)}` gates later restarts again"


async def _release(client: Client, found: Single, who: str, wanted: Wanted) -> str:
    jobset = found.jobset
    subject = f"{single.KIND}/{jobset.name}"
    if wanted.dry_run:
        await noting.put(client, jobset, dry_run=True)
        return f"{subject} released (server dry run)"
    async with Following(client, jobset.namespace, jobset.name, jobset.uid, wanted.rights) as following:
        await _looked(following, subject)  # who may not watch is told so before anything is changed
        message = f"{who} has asked for the gate of attempt {jobset.attempt} to be opened now, whoever is missing"
        try:
            async with noting.lent(client, jobset):
                await _tell(client, found, names.REASON_RELEASED_BY_USER, message)
                ended = await following.until(lambda now: bool(now.ends) or now.hopeless, wanted.seconds)
        except TimeoutError as late:
            told = f"{subject}: no controller has opened it within {span(wanted.seconds)}; its annotation is gone again"
            raise Failed(told, Exit.TIMEOUT) from late
    if End.RELEASED in ended.ends:
        return f"{subject} released: {ended.told}"
    raise Failed(f"{subject} was not released: {ended.told}")


async def _looked(following: Following, subject: str) -> None:
    try:
        await following.until(lambda _: True, FIRST_LOOK)
    except TimeoutError as late:
        told = f"{subject} was left alone: the API server does not answer its watch within {span(FIRST_LOOK)}"
        raise Failed(told, Exit.TIMEOUT) from late


async def _tell(client: Client, found: Single, reason: str, message: str) -> None:
    """It has been allowed a moment ago; what goes wrong now changes nothing any more, but is said."""
    try:
        await auditing.write(client, found.jobset, reason, message)
    except KubeError as problem:
        output.err(f"warning: the Event that says who did this could not be written: {problem}")
