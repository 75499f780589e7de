"""What timelines are made of: the gang, its pods with their times, and the Events of pulled images."""

import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import aclosing
from typing import Final

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.events import CoreEvent
from jobset_gate.barrier.source import Source
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.gangs import GATED_PODS, FetchedGang, fetch_gang
from jobset_gate.cli.fetch.leader_worker_set import fetch_groups
from jobset_gate.cli.fetch.resolver import Resolver
from jobset_gate.cli.fetch.source import PAGE, Permissions, forbidden_text
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import EVENTS, PODS
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.timeline import decode
from jobset_gate.timeline.gang import gang_timeline, pod_group_timeline
from jobset_gate.timeline.model import Timeline

MAX_EVENTS: Final = 50_000
"""Events that are read: those of other pods in the namespace are among them, and cannot be left out."""


async def fetch_gang_timeline(resolver: Resolver, source: Source, name: str) -> list[Timeline]:
    """A list of one. Raises CommandError if there is no such gang, or its pods may not be read."""
    client, namespace, permissions = resolver.client, resolver.namespace, resolver.permissions
    pods = await _timed_pods(client, namespace, source.pods_selector(name), permissions)
    found = await fetch_gang(client, namespace, source, name, permissions, pods=source.gates_pods, known={PODS: pods})
    if found is None:
        what = names.CONFIG_FIELD if source.has_config_field else f"annotation {names.CONFIG}"
        raise CommandError(f"{source.kind} {namespace}/{name} asks for no gate: it has no {what}")
    return await _gang_timelines(resolver, [found], pods)


async def fetch_lws_timelines(resolver: Resolver, name: str) -> list[Timeline]:
    """Those of all groups of a LeaderWorkerSet. Raises CommandError if it is not there, or its pods may not be read."""
    client, namespace, permissions = resolver.client, resolver.namespace, resolver.permissions
    pods = await _timed_pods(client, namespace, f"{GATED_PODS},{names.LWS_NAME}={name}", permissions)
    groups = await fetch_groups(client, namespace, name, permissions, known={PODS: pods})
    return await _gang_timelines(resolver, groups.gangs.values(), pods)


async def _gang_timelines(
    resolver: Resolver, gangs: Iterable[FetchedGang], pods: Sequence[wire.MemberPod]
) -> list[Timeline]:
    permissions, now = resolver.permissions, time.time()
    pulls = await fetch_image_pulls(
        resolver.client, resolver.namespace, {pod.metadata.uid for pod in pods}, permissions
    )
    ways = [decode.decode_pod(pod, pulls.get(pod.metadata.uid)) for pod in pods]
    return [
        gang_timeline(it.workload, it.config_map, decode.pods_of_gang(it, ways), now, permissions.missing)
        for it in (found.gang for found in gangs)
    ]


async def fetch_pod_group_timelines(resolver: Resolver, name: str) -> list[Timeline]:
    """Those of all groups of that name. Raises ObjectNotFound if there is none."""
    return [await _pod_group_timeline(resolver, it) for it in await resolver.named_statuses(name)]


async def _pod_group_timeline(resolver: Resolver, status: GroupStatus) -> Timeline:
    labels, permissions = f"{names.POD_GROUP_LABEL}={status.label}", resolver.permissions
    pods = await _timed_pods(resolver.client, status.key.namespace, labels, permissions)
    return pod_group_timeline(status, map(decode.decode_pod, pods), time.time(), permissions.missing)


async def _timed_pods(client: Client, namespace: str, labels: str, permissions: Permissions) -> list[wire.MemberPod]:
    scope, add = ListScope(PODS, namespace, labels), permissions.add_sentence
    try:
        return [it async for it in list_objects(client, scope, wire.MemberPod, page_size=PAGE, on_unreadable=add)]
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('list', PODS, namespace)}: {no.message}") from no


async def fetch_image_pulls(
    client: Client, namespace: str, pods: Collection[str], permissions: Permissions
) -> dict[str, dict[str, float]]:
    """By UID of a pod, then by container. What may not be read is named in `permissions`."""
    found: dict[str, dict[str, float]] = {}
    scope, seen = ListScope(EVENTS, namespace, "", decode.PULLED), 0
    add = permissions.add_sentence
    try:
        async with aclosing(list_objects(client, scope, CoreEvent, page_size=PAGE, on_unreadable=add)) as events:
            async for event in events:
                decode.add_pull(found, event, pods)
                seen += 1
                if seen >= MAX_EVENTS:
                    add(f"only the first {seen} Events were read: more pulls may be known than are shown")
                    break
    except Forbidden:
        permissions.add_missing("list", EVENTS, namespace, "when images were pulled is not known")
    return found
