"""What opening a gate by hand writes: the bypass annotation, only on the workload meant, and an audit Event."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controllers.barrier.workloads import WORKLOADS
from jobset_gate import names
from jobset_gate.barrier.model import WorkloadSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import forbidden_text
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from jobset_gate.kube.resources import EVENTS, SELF_SUBJECT_REVIEWS
from jobset_gate.objects.unstructured import nested
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference


async def set_annotation(client: Client, workload: WorkloadSeen, *, dry_run: bool) -> None:
    """Raises CommandError, naming the right that is missing."""
    try:
        await _patch(client, workload, "true", dry_run=dry_run)
    except Forbidden as no:
        raise CommandError(
            f"{forbidden_text('patch', WORKLOADS[workload.source.name], workload.namespace)} ({no.message})"
        ) from no
    except (NotFound, Conflict) as gone:
        raise CommandError(
            f"{workload.source.kind} {workload.name} was deleted or replaced meanwhile: nothing was changed"
        ) from gone
    except ApiError as no:
        raise CommandError(f"{workload.source.kind} {workload.name} was not changed: {no.message}") from no


async def remove_annotation(client: Client, workload: WorkloadSeen) -> None:
    """Where the workload is gone, so is the annotation. Raises CommandError, saying how to do it by hand."""
    try:
        await _patch(client, workload, None)
    except (NotFound, Conflict, Invalid):
        return
    except Exception as problem:
        why = f"the annotation is still there, so later {new_start(workload)}s are not gated ({problem})"
        raise CommandError(f"{why}; take it away with `{removal_command(workload)}`") from problem


@asynccontextmanager
async def temporary_annotation(client: Client, workload: WorkloadSeen) -> AsyncIterator[None]:
    """The annotation is there meanwhile, and goes again whatever happens: by an interruption, too."""
    try:
        await set_annotation(client, workload, dry_run=False)
    except CommandError:
        raise  # the server has said that it is not there
    except BaseException:
        await remove_annotation(client, workload)
        raise
    try:
        yield
    finally:
        await remove_annotation(client, workload)


def new_start(workload: WorkloadSeen) -> str:
    """The word for what begins another generation."""
    return "restart" if workload.source.restarts else "resumption"


def removal_command(workload: WorkloadSeen) -> str:
    """The command that takes the annotation away."""
    return f"kubectl annotate {workload.source.resource} {workload.name} -n {workload.namespace} {names.BYPASS}-"


async def _patch(client: Client, workload: WorkloadSeen, value: str | None, *, dry_run: bool = False) -> None:
    """With the UID, which the API server compares."""
    body = {"metadata": {"uid": workload.uid, "annotations": {names.BYPASS: value}}}
    merge, manager = PatchType.MERGE, names.PROGRAM
    await client.patch(
        WORKLOADS[workload.source.name],
        workload.name,
        workload.namespace,
        body=body,
        patch=merge,
        field_manager=manager,
        dry_run=dry_run,
    )


# --- The Event -------------------------------------------------------------------------------------------------------


async def check_event_allowed(client: Client, workload: WorkloadSeen) -> None:
    """Raises CommandError where an Event may not be written: nobody opens a gate unseen."""
    try:
        await write_event(client, workload, names.REASON_BYPASSED_BY_USER, "is this allowed?", dry_run=True)
    except Forbidden as no:
        why = f"{forbidden_text('create', EVENTS, workload.namespace)}: opening a gate by hand is audited by one"
        raise CommandError(f"{why}; nothing was changed ({no.message})") from no


async def write_event(
    client: Client, workload: WorkloadSeen, reason: str, message: str, *, dry_run: bool = False
) -> None:
    """A new one each time. Raises what Client.create raises."""
    its = workload.involved_object
    about = ObjectReference(its.api_version, its.kind, its.name, workload.namespace, workload.uid)
    recorder, fact = EventRecorder(client, names.PROGRAM), uuid.uuid4().hex
    await recorder.record(about, reason, message, fact=fact, warning=True, dry_run=dry_run)


async def current_user(client: Client) -> str:
    """Who is asking, as the API server calls them."""
    try:
        said = nested(await client.create(SELF_SUBJECT_REVIEWS, {}), "status", "userInfo", "username")
    except ApiError:
        said = None
    return str(said or "an unknown user")
