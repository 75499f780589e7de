"""Start groups by the name that people give them: which gang it is, and which object owns its pods."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import GangSnapshot, PodSeen
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.source import PAGE, ObjectNotFound, forbidden_text
from jobset_gate.cli.options import ResourceArgument, ResourceKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import PODS, STATEFUL_SETS
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.sources import startgroup
from jobset_gate.sources.table import START_GROUP

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A DNS label, as the name of each start group is."""


async def resolve_start_group(client: Client, namespace: str, argument: ResourceArgument) -> ResourceArgument:
    """The name of the gang, with the UID of its owner, in the place of the group's; any other argument as it is.

    Of several owners that have pods of that name, those with live pods come first. Raises ObjectNotFound if there is
    none, and CommandError if there are several, or pods may not be read.
    """
    if argument.kind is not ResourceKind.START_GROUP or "." in argument.name:
        return argument
    name, found = argument.name, dict[str, PodSeen]()
    for pod in sorted(await _pods(client, namespace, name), key=lambda it: it.live):
        found[pod.workload_uid] = pod
    if not found:
        why = f"no pod with a controller owner has the label {names.START_GROUP}={name}"
        raise ObjectNotFound(f"{START_GROUP.kind} {name} not found in namespace {namespace}: {why}")
    fits = [pod for pod in found.values() if not argument.owner or argument.owner.lower() in _names(pod)]
    fits = [pod for pod in fits if pod.live] or fits
    if len(fits) == 1:
        return replace(argument, name=fits[0].gang)
    several = fits or found.values()
    if not fits:
        owned = f"{START_GROUP.kind} {name} in namespace {namespace} is not owned by {argument.owner}, but by"
        raise ObjectNotFound(f"{owned} {_owner_list(several)}")
    said = f"{START_GROUP.resource}/{name} in namespace {namespace} has {len(fits)} owners"
    raise CommandError(f"{said}: {_owner_list(several)}; say which one by --owner", ExitCode.USAGE)


async def is_start_group(client: Client, namespace: str, name: str) -> bool:
    """Whether a pod of that start group exists; without the right to list pods it is not known, so False."""
    if not _NAME.fullmatch(name):
        return False
    try:
        listed = await client.list(PODS, namespace, label_selector=START_GROUP.pods_selector(name), limit=1)
    except Forbidden:
        return False
    return any(gang_of(it) for it in as_list(listed.get("items")))


async def with_capacity(client: Client, seen: GangSnapshot) -> GangSnapshot:
    """The gang with why its StatefulSet never has enough pods at once, as far as that may be read."""
    owner = seen.workload.owner
    if owner is None or (owner.api_version, owner.kind) != (STATEFUL_SETS.api_version, STATEFUL_SETS.kind):
        return seen
    try:
        found = await client.get(STATEFUL_SETS, owner.name, seen.workload.namespace, type=wire.StatefulSet)
    except (Forbidden, NotFound):
        return seen
    return msgspec.structs.replace(seen, cannot_gather=startgroup.lacks_capacity(found, seen.workload))


def gang_of(pod: Json) -> str:
    """Name of the gang of a pod of a start group; "" of any other pod."""
    if names.START_GROUP not in (labels := as_map(nested(pod, "metadata", "labels"))) or names.GATED in labels:
        return ""
    found = startgroup.pod(msgspec.convert(pod, wire.MemberPod))
    return "" if found is None else found.gang


async def _pods(client: Client, namespace: str, name: str) -> list[PodSeen]:
    """Raises CommandError where they may not be read."""
    if not _NAME.fullmatch(name):
        return []
    scope = ListScope(PODS, namespace, START_GROUP.pods_selector(name))
    try:
        listed = list_objects(client, scope, wire.MemberPod, PAGE, on_unreadable=lambda _: None)
        return [pod for pod in [startgroup.pod(it) async for it in listed] if pod is not None]
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('list', PODS, namespace)} ({no.message})") from no


def _names(pod: PodSeen) -> tuple[str, ...]:
    """What its owner may be called, in small letters."""
    owner = pod.member.owner if pod.member is not None else None
    return () if owner is None else (owner.name, f"{owner.kind.lower()}/{owner.name}", pod.workload_uid)


def _owner_list(pods: Iterable[PodSeen]) -> str:
    return ", ".join(sorted(f"{kind} (UID {uid})" for _, kind, uid in map(_names, pods)))
