"""What opening a gate by hand writes: the bypass annotation, only on the workload meant; for pods that are gated alone
the decision, as the controller writes it; and an audit Event.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from controllers.barrier.verdict_store import config_map_body
from controllers.barrier.workloads import WORKLOADS
from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec, wire
from jobset_gate.barrier.decide import Facts
from jobset_gate.barrier.model import GangSnapshot, PodSeen, Verdict, VerdictKind, WorkloadSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import NamespaceReader, forbidden_text
from jobset_gate.cli.fetch.view import get_gang
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, PODS, SELF_SUBJECT_REVIEWS, Resource
from jobset_gate.objects.unstructured import nested
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference
from jobset_gate.sources import startgroup


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
        target.resource, target.name, target.namespace, body=body, patch=merge, field_manager=manager, dry_run=dry_run
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


# --- The decision for pods that are gated alone ----------------------------------------------------------------------

# They have their annotations from when they are created, so there is none that would ask a controller for it.
ATTEMPTS: Final = 5
"""Tries while the controller writes the same ConfigMap."""
_PATCHES: Final = 16
"""Pods that are patched at once."""


async def release_pods(reader: NamespaceReader, known: WorkloadSeen, *, dry_run: bool) -> tuple[GangSnapshot, Verdict]:
    """Writes the release of the present attempt into the gang's ConfigMap, by compare-and-swap (A6.1).

    The pods are listed after the version of the ConfigMap that is replaced, so that no attempt is ended unseen (K5).
    Raises CommandError, naming the right that is missing.
    """
    for _ in range(ATTEMPTS):
        before = await _version(reader.client, known)
        seen = await get_gang(reader, known.source, known.name)
        if seen.config_map_conflict:
            raise CommandError(f"{messages.config_map_conflict(seen).message}: nothing was changed")
        if before != (seen.config_map.resource_version if seen.config_map is not None else ""):
            continue
        facts = Facts(seen, time.time())
        if facts.standing is not None:
            raise CommandError(f"its gate was decided meanwhile: {facts.standing.message}; nothing was changed")
        verdict = Verdict(
            kind=VerdictKind.RELEASE,
            generation=facts.generation(0),
            cause=names.REASON_BYPASSED,
            message=f"gate opened by hand with {messages.progress(facts.count)}",
        )
        kept = startgroup.membership_to_write(seen, begins=True) if known.source.keeps_attempt else None
        data = verdict_codec.config_map_data(verdict, facts.clock, kept)
        try:
            await _write(reader.client, seen, verdict, data, dry_run=dry_run)
        except (AlreadyExists, Conflict, NotFound):
            continue
        return seen, verdict
    raise CommandError(f"the ConfigMap {known.source.config_map_name(known.name)} is changed all the time; try again")


async def deliver(client: Client, seen: GangSnapshot, verdict: Verdict) -> str:
    """Annotates the pods that wait, as a controller does, which may know nothing of start groups any more.

    Returns why they were not annotated; "" if they were.
    """
    limit, refused = asyncio.Semaphore(_PATCHES), ""

    async def annotate(pod: PodSeen) -> None:
        nonlocal refused
        text = verdict_codec.render(verdict_codec.addressed(verdict, pod.uid))
        body = {"metadata": {"uid": pod.uid, "annotations": {names.VERDICT: text}}}
        async with limit:
            if refused:
                return
            try:
                await client.patch(PODS, pod.name, pod.namespace, body=body, patch=PatchType.MERGE)
            except Forbidden as no:
                right = forbidden_text("patch", PODS, pod.namespace)
                refused = f"{right}: they go when a controller tells them ({no.message})"
            except (NotFound, Conflict, Invalid):
                return  # deleted, or another pod of its name

    await asyncio.gather(*(annotate(pod) for pod in seen.pods if pod.live))
    return refused


async def _version(client: Client, workload: WorkloadSeen) -> str:
    """Of the gang's ConfigMap; "" if there is none."""
    name = workload.source.config_map_name(workload.name)
    try:
        found = await client.get(CONFIGMAPS, name, workload.namespace, type=wire.AnyObject)
    except NotFound:
        return ""
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('get', CONFIGMAPS, workload.namespace)} ({no.message})") from no
    return found.metadata.resource_version


async def _write(client: Client, seen: GangSnapshot, verdict: Verdict, data: dict[str, str], *, dry_run: bool) -> None:
    workload, gate = seen.workload, seen.config_map
    body = config_map_body(workload, data, messages.decided(verdict))
    verb = "create" if gate is None else "patch"
    try:
        if gate is None:
            await client.create(CONFIGMAPS, body, workload.namespace, dry_run=dry_run)
            return
        its: dict[str, Any] = body["metadata"]
        its |= {"resourceVersion": gate.resource_version, "uid": gate.uid}
        body["data"] = dict.fromkeys((names.KEY_VERDICT, names.KEY_WAITING_SINCE)) | data
        await client.patch(CONFIGMAPS, gate.name, gate.namespace, body=body, patch=PatchType.MERGE, dry_run=dry_run)
    except Forbidden as no:
        right = forbidden_text(verb, CONFIGMAPS, workload.namespace)
        raise CommandError(f"{right}: nothing was changed ({no.message})") from no
