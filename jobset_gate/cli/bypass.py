"""What opening a gate by hand writes: the bypass annotation, only on the workload meant, and an audit Event."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from controllers.barrier.workloads import WORKLOADS
from jobset_gate import names
from jobset_gate.barrier.model import WorkloadSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import forbidden_text
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from jobset_gate.kube.resources import EVENTS, SELF_SUBJECT_REVIEWS, Resource
from jobset_gate.objects.unstructured import nested
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference


@dataclass(frozen=True, slots=True)
class Target:
    """The object that has the annotation."""

    resource: Resource
    name: str
    namespace: str
    uid: str
    new_start: str
    """The word for what begins another generation."""

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}"

    @property
    def reference(self) -> ObjectReference:
        """For Events."""
        return ObjectReference(self.resource.api_version, self.resource.kind, self.name, self.namespace, self.uid)

    @property
    def removal_command(self) -> str:
        """The command that takes the annotation away."""
        kind = self.resource.kind.lower()
        return f"kubectl annotate {kind} {self.name} -n {self.namespace} {names.BYPASS}-"


def target_of(workload: WorkloadSeen) -> Target:
    """The workload of a template source."""
    word = "restart" if workload.source.restarts else "resumption"
    return Target(WORKLOADS[workload.source.name], workload.name, workload.namespace, workload.uid, word)


async def set_annotation(client: Client, target: Target, *, dry_run: bool) -> None:
    """Raises CommandError, naming the right that is missing."""
    try:
        await _patch(client, target, "true", dry_run=dry_run)
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('patch', target.resource, target.namespace)} ({no.message})") from no
    except (NotFound, Conflict) as gone:
        raise CommandError(f"{target} was deleted or replaced meanwhile: nothing was changed") from gone
    except ApiError as no:
        raise CommandError(f"{target} was not changed: {no.message}") from no


async def remove_annotation(client: Client, target: Target) -> None:
    """Where the workload is gone, so is the annotation. Raises CommandError, saying how to do it by hand."""
    try:
        await _patch(client, target, None)
    except (NotFound, Conflict, Invalid):
        return
    except Exception as problem:
        why = f"the annotation is still there, so later {target.new_start}s are not gated ({problem})"
        raise CommandError(f"{why}; take it away with `{target.removal_command}`") from problem


@asynccontextmanager
async def temporary_annotation(client: Client, target: Target) -> AsyncIterator[None]:
    """The annotation is there meanwhile, and goes again whatever happens: by an interruption, too."""
    try:
        await set_annotation(client, target, dry_run=False)
    except CommandError:
        raise  # the server has said that it is not there
    except BaseException:
        await remove_annotation(client, target)
        raise
    try:
        yield
    finally:
        await remove_annotation(client, target)


async def _patch(client: Client, target: Target, value: str | None, *, dry_run: bool = False) -> None:
    """With the UID, which the API server compares."""
    body = {"metadata": {"uid": target.uid, "annotations": {names.BYPASS: value}}}
    merge, manager = PatchType.MERGE, names.PROGRAM
    await client.patch(
        target.resource,
        target.name,
        target.namespace,
        body=body,
        patch=merge,
        field_manager=manager,
        dry_run=dry_run,
    )


# --- The Event -------------------------------------------------------------------------------------------------------


def reference_of(workload: WorkloadSeen) -> ObjectReference:
    """What Events of this gang are about."""
    its = workload.involved_object
    uid = its.uid if workload.source.shares_condition else workload.uid
    return ObjectReference(its.api_version, its.kind, its.name, workload.namespace, uid)


async def check_event_allowed(client: Client, about: ObjectReference) -> None:
    """Raises CommandError where an Event may not be written: nobody opens a gate unseen."""
    try:
        await write_event(client, about, names.REASON_BYPASSED_BY_USER, "is this allowed?", dry_run=True)
    except Forbidden as no:
        why = f"{forbidden_text('create', EVENTS, about.namespace)}: opening a gate by hand is audited by one"
        raise CommandError(f"{why}; nothing was changed ({no.message})") from no


async def write_event(
    client: Client, about: ObjectReference, reason: str, message: str, *, dry_run: bool = False
) -> None:
    """A new one each time. Raises what Client.create raises."""
    recorder, fact = EventRecorder(client, names.PROGRAM), uuid.uuid4().hex
    await recorder.record(about, reason, message, fact=fact, warning=True, dry_run=dry_run)


async def current_user(client: Client) -> str:
    """Who is asking, as the API server calls them."""
    try:
        said = nested(await client.create(SELF_SUBJECT_REVIEWS, {}), "status", "userInfo", "username")
    except ApiError:
        said = None
    return str(said or "an unknown user")
