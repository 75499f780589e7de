"""What a name on the command line means: a bare one, a TrainJob's, a start group's, or a pod's."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import PodSeen
from jobset_gate.barrier.source import Source
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.source import PAGE, NamespaceReader, ObjectNotFound, forbidden_text
from jobset_gate.cli.options import ResourceArgument, ResourceKind
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, LEADER_WORKER_SETS, PODS, Resource
from jobset_gate.objects.unstructured import Json, as_map, nested
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.sources import lws, startgroup
from jobset_gate.sources.table import JOB, JOBSET, LWS, START_GROUP

T = TypeVar("T")
SOURCE_OF: Final = {
    ResourceKind.JOBSET: JOBSET,
    ResourceKind.JOB: JOB,
    ResourceKind.LWS_GROUP: LWS,
    ResourceKind.START_GROUP: START_GROUP,
}
"""The sources that have a kind of their own on the command line."""
KIND_OF: Final = {kind: source.kind for kind, source in SOURCE_OF.items()} | {ResourceKind.LWS: LWS.kind}
"""What has a start barrier, as messages name it."""
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""As the name of each start group is."""
_TRAINER: Final = "trainer.kubeflow.org/"


class _Object(wire.WireStruct, frozen=True):
    metadata: wire.MemberMeta


async def resolve_name(reader: NamespaceReader, argument: ResourceArgument) -> ResourceArgument:
    """What is meant by a bare name, or by that of a TrainJob or start group; any other argument as it is.

    Raises CommandError unless it is one thing.
    """
    match argument.kind:
        case ResourceKind.TRAIN_JOB:
            return await _jobset_of_train_job(reader, argument)
        case ResourceKind.ANY:
            argument = await _kind_of_bare_name(reader, argument)
    if argument.kind is ResourceKind.START_GROUP and "." not in argument.name:
        return await _gang_of_start_group(reader, argument)
    return argument


async def resolve_gang(reader: NamespaceReader, argument: ResourceArgument) -> ResourceArgument:
    """As `resolve_name`, with the gang whose barrier holds a pod in the place of the pod."""
    if argument.kind is not ResourceKind.POD:
        return await resolve_name(reader, argument)
    if gang := gated_gang(await get_pod(reader, argument.name)):
        return gang
    why = "waits at no start barrier: name its pod group as podgroup/NAME, if it is of one"
    raise CommandError(f"pod {argument.name} in namespace {reader.namespace} {why}")


async def get_pod(reader: NamespaceReader, name: str) -> Json:
    """Raises ObjectNotFound, and CommandError where the pod may not be read."""
    try:
        return await reader.client.get(PODS, name, reader.namespace)
    except NotFound as gone:
        raise ObjectNotFound(f"pod {name} not found in namespace {reader.namespace}") from gone
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('get', PODS, reader.namespace)} ({no.message})") from no


def gated_gang(pod: Json) -> ResourceArgument | None:
    """The workload whose barrier holds this pod; None if none does."""
    labels = as_map(nested(pod, "metadata", "labels"))
    gated = labels.get(names.GATED)
    if gang := _start_group_of(pod):
        return ResourceArgument(ResourceKind.START_GROUP, gang)
    if gated == LWS.gated and (member := lws.pod(msgspec.convert(pod, wire.MemberPod))):
        return ResourceArgument(ResourceKind.LWS_GROUP, member.gang)
    for kind, source in SOURCE_OF.items():
        if not source.gates_pods and gated == source.gated and (name := labels.get(source.pods_label)):
            return ResourceArgument(kind, name)
    return None


async def find(
    argument: ResourceArgument, gang: Callable[[Source, str], Awaitable[T]], pod_group: Callable[[str], Awaitable[T]]
) -> T:
    """A gang or a pod group, looked up as the kind says; of a bare name the JobSet, or else the pod group."""
    if argument.kind is ResourceKind.POD_GROUP:
        return await pod_group(argument.name)
    source = SOURCE_OF.get(argument.kind)
    try:
        return await gang(source or JOBSET, argument.name)
    except ObjectNotFound as absent:
        if source is not None:
            raise
        try:
            return await pod_group(argument.name)
        except ObjectNotFound:
            raise ObjectNotFound(f"{absent}, and no pod group of that name either") from absent


# --- A bare name -----------------------------------------------------------------------------------------------------


async def _kind_of_bare_name(reader: NamespaceReader, argument: ResourceArgument) -> ResourceArgument:
    """The Job, LeaderWorkerSet or start group if that alone has this name; else it is a JobSet's or a pod group's.

    What may not be read is no reason to refuse: without the right to Jobs their gangs are named job/NAME. Raises
    CommandError if the name fits several, a JobSet among them or not.
    """
    name = argument.name
    job, leader_worker_set, start_group = await asyncio.gather(
        _asks(reader, JOBS, name), _asks(reader, LEADER_WORKER_SETS, name), _is_start_group(reader, name)
    )
    fits = [ResourceKind.JOB] * job + [ResourceKind.LWS] * leader_worker_set + [ResourceKind.START_GROUP] * start_group
    if not fits:
        return argument
    with suppress(NotFound, Forbidden):
        await reader.client.get(JOBSETS, name, reader.namespace, type=wire.AnyObject)
        fits.insert(0, ResourceKind.JOBSET)
    if len(fits) == 1:
        return replace(argument, kind=fits[0])
    said = ", ".join(f"{kind}/{name}" for kind in fits)
    raise CommandError(f"{name} fits several in namespace {reader.namespace}: {said}; say which one", ExitCode.USAGE)


async def _asks(reader: NamespaceReader, resource: Resource, name: str) -> bool:
    """Whether the object of that name asks for a start barrier."""
    try:
        notes = (await reader.client.get(resource, name, reader.namespace, type=_Object)).metadata.annotations
    except (NotFound, Forbidden):
        return False
    return notes is not None and notes.config is not None


# --- A TrainJob of Kubeflow Trainer ----------------------------------------------------------------------------------


async def _jobset_of_train_job(reader: NamespaceReader, argument: ResourceArgument) -> ResourceArgument:
    """Trainer makes one JobSet of the TrainJob's name, and that has the gang.

    TrainJobs are not read, so no right to them is needed. Raises ObjectNotFound where the TrainJob has no JobSet, and
    CommandError where JobSets may not be read.
    """
    name, namespace = argument.name, reader.namespace
    try:
        owners = (await reader.client.get(JOBSETS, name, namespace, type=_Object)).metadata.owner_references
    except NotFound as absent:
        more = f"Trainer makes one of its name; `kubectl describe trainjob {name} -n {namespace}` says whether it could"
        raise ObjectNotFound(f"TrainJob {name} in namespace {namespace} has no JobSet yet: {more}") from absent
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('get', JOBSETS, reader.namespace)} ({no.message})") from no
    its = (it for it in owners or () if it.controller and it.kind == "TrainJob" and it.api_version.startswith(_TRAINER))
    if name not in {it.name for it in its}:
        raise ObjectNotFound(f"JobSet {name} in namespace {reader.namespace} is of no TrainJob: say jobset/{name}")
    return replace(argument, kind=ResourceKind.JOBSET)


# --- A start group ---------------------------------------------------------------------------------------------------


async def _gang_of_start_group(reader: NamespaceReader, argument: ResourceArgument) -> ResourceArgument:
    """The name of the gang, with the UID of its owner, in the place of the group's.

    Of several owners that have pods of that name, those with live pods come first. Raises ObjectNotFound if there is
    none, and CommandError if there are several, or pods may not be read.
    """
    name, found = argument.name, dict[str, PodSeen]()
    for pod in sorted(await _start_group_pods(reader, name), key=lambda it: it.live):
        found[pod.workload_uid] = pod
    if not found:
        why = f"no pod with a controller owner has the label {names.START_GROUP}={name}"
        raise ObjectNotFound(f"{START_GROUP.kind} {name} not found in namespace {reader.namespace}: {why}")
    fits = [pod for pod in found.values() if not argument.owner or argument.owner.lower() in _owner_names(pod)]
    fits = [pod for pod in fits if pod.live] or fits
    if len(fits) == 1:
        return replace(argument, name=fits[0].gang)
    if not fits:
        owned = f"{START_GROUP.kind} {name} in namespace {reader.namespace} is not owned by {argument.owner}, but by"
        raise ObjectNotFound(f"{owned} {_owner_list(found.values())}")
    said = f"{START_GROUP.resource}/{name} in namespace {reader.namespace} has {len(fits)} owners"
    raise CommandError(f"{said}: {_owner_list(fits)}; say which one by --owner", ExitCode.USAGE)


async def _is_start_group(reader: NamespaceReader, name: str) -> bool:
    """Whether a pod of that start group exists; without the right to list pods it is not known, so False."""
    try:
        return bool(await _start_group_pods(reader, name))
    except CommandError:
        return False


async def _start_group_pods(reader: NamespaceReader, name: str) -> list[PodSeen]:
    """Raises CommandError where they may not be read."""
    if not _DNS_LABEL.fullmatch(name):
        return []
    scope = ListScope(PODS, reader.namespace, START_GROUP.pods_selector(name))
    try:
        listed = list_objects(reader.client, scope, wire.MemberPod, PAGE, on_unreadable=lambda _: None)
        return [pod for pod in [startgroup.pod(it) async for it in listed] if pod is not None]
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('list', PODS, reader.namespace)} ({no.message})") from no


def _start_group_of(pod: Json) -> str:
    """Name of the gang of a pod of a start group; "" of any other pod."""
    if names.START_GROUP not in (labels := as_map(nested(pod, "metadata", "labels"))) or names.GATED in labels:
        return ""
    found = startgroup.pod(msgspec.convert(pod, wire.MemberPod))
    return "" if found is None else found.gang


def _owner_names(pod: PodSeen) -> tuple[str, ...]:
    """What its owner may be called, in small letters."""
    owner = pod.member.owner if pod.member is not None else None
    return () if owner is None else (owner.name, f"{owner.kind.lower()}/{owner.name}", pod.workload_uid)


def _owner_list(pods: Iterable[PodSeen]) -> str:
    return ", ".join(sorted(f"{kind} (UID {uid})" for _, kind, uid in map(_owner_names, pods)))
