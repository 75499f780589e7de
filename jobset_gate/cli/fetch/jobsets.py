"""Reads gangs from the API for a person, with whatever rights he has: one JobSet by name, or all of a namespace.

The same shapes and readers as the controller's, so that both see the same; the cluster is asked, never the controller.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from jobset_gate import names
from jobset_gate.barrier import decode, wire
from jobset_gate.barrier.model import ConfigMapSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch import events as news
from jobset_gate.cli.fetch.join import FetchedJobSet, JobSetParts, join_jobset
from jobset_gate.cli.fetch.lists import PAGE, list_objects
from jobset_gate.cli.fetch.objects import get_config_map, get_object
from jobset_gate.cli.fetch.permissions import Permissions, forbidden_text
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.runtime.paging import ListScope, list_pages

GATED = f"{names.GATED}={names.GATED_VALUE}"
GATES = f"{names.GATE}={names.GATE_VALUE}"
_UNKNOWN_WITHOUT = {
    JOBS: "what has finished is not known",
    PODS: "how many have started is not known",
    CONFIGMAPS: "what was decided is known from the JobSet's condition only",
}

W = TypeVar("W", wire.Job, wire.Pod, wire.ConfigMap)


async def fetch_jobset(
    client: Client, namespace: str, name: str, permissions: Permissions, *, events: bool = True
) -> FetchedJobSet:
    """One JobSet with all that belongs to it. Raises Failed if it is not there or may not be read."""
    mine = f"{GATED},{names.JS_NAME}={name}"
    jobset, jobs, pods, maps = await asyncio.gather(
        get_object(client, JOBSETS, namespace, name, msgspec.Raw),
        _all(client, JOBS, wire.Job, namespace, permissions, labels=mine),
        _all(client, PODS, wire.Pod, namespace, permissions, labels=mine),
        permissions.read_allowed(
            _gate(client, namespace, name), "get", CONFIGMAPS, namespace, _UNKNOWN_WITHOUT[CONFIGMAPS]
        ),
    )
    ours, foreign = maps or (None, False)
    found = join_jobset(jobset, JobSetParts(jobs, pods, ours, foreign))
    if found.seen is None or not events:
        return found
    return found.with_gang(await news.add_events(client, found.seen, permissions))


async def fetch_jobsets(client: Client, namespace: str | None, permissions: Permissions) -> list[FetchedJobSet]:
    """All JobSets that ask for a gate, of a namespace (None: of all), by namespace and name; without Events.

    Of a ConfigMap that is not ours only the JobSet's condition tells here. Raises Failed if JobSets may not be listed.
    """
    jobsets, jobs, pods, maps = await asyncio.gather(
        _jobsets(client, namespace),
        _all(client, JOBS, wire.Job, namespace, permissions, labels=GATED),
        _all(client, PODS, wire.Pod, namespace, permissions, labels=GATED),
        _all(client, CONFIGMAPS, wire.ConfigMap, namespace, permissions, labels=GATES),
    )
    jobs_of, pods_of = _by_gang(jobs or ()), _by_gang(pods or ())
    gate_of = {(it.namespace, it.gang): it for it in map(decode.config_map, maps or ()) if it is not None}
    found = []
    for raw in jobsets:
        bare = msgspec.json.decode(raw, type=wire.MetadataOnly).metadata
        key = (bare.namespace, bare.name)
        parts = JobSetParts(
            None if jobs is None else jobs_of[key],
            None if pods is None else pods_of[key],
            gate_of.get(key),
        )
        found.append(join_jobset(raw, parts))
    return sorted((it for it in found if it.seen is not None), key=lambda it: (it.namespace, it.name))


async def _all(
    client: Client, resource: Resource, shape: type[W], namespace: str | None, rights: Permissions, *, labels: str
) -> list[W] | None:
    """None where they may not be listed."""
    wanted = list_objects(client, resource, shape, namespace, labels=labels, on_problem=rights.missing.append)
    return await rights.read_allowed(wanted, "list", resource, namespace, _UNKNOWN_WITHOUT[resource])


def _by_gang(objects: Iterable[Any]) -> defaultdict[tuple[str, str], list[Any]]:
    """By namespace and the JobSet's name."""
    found: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for one in objects:
        if one.metadata.labels is not None:
            found[one.metadata.namespace, one.metadata.labels.jobset].append(one)
    return found


async def _jobsets(client: Client, namespace: str | None) -> list[msgspec.Raw]:
    found: list[msgspec.Raw] = []
    try:
        async for items, _ in list_pages(client, ListScope(JOBSETS, namespace), PAGE):
            found += items
    except NotFound as gone:
        raise CommandError("the cluster knows no JobSets: their CRD is not installed") from gone
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('list', JOBSETS, namespace)} ({no.message})") from no
    return found


async def _gate(client: Client, namespace: str, name: str) -> tuple[ConfigMapSeen | None, bool]:
    """The gang's ConfigMap, and whether one of its name is somebody else's (A10)."""
    found = await get_config_map(client, namespace, name)
    if found is None:
        return None, False
    ours = decode.config_map(found)
    return ours, ours is None
