"""A bare name on the command line: that of a JobSet or pod group, unless a gang of another source has it."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from jobset_gate.barrier import wire
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.start_groups import is_start_group
from jobset_gate.cli.options import ResourceArgument, ResourceKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, LEADER_WORKER_SETS, Resource


class _Workload(wire.WireStruct, frozen=True):
    metadata: wire.Meta


async def resolve_bare_name(client: Client, namespace: str, argument: ResourceArgument) -> ResourceArgument:
    """The Job, LeaderWorkerSet or start group if that alone has this name; any other argument as it is.

    What may not be read is no reason to refuse: without the right to Jobs their gangs are named job/NAME. Raises
    CommandError if the name fits several, a JobSet among them or not.
    """
    if argument.kind is not ResourceKind.ANY:
        return argument
    name = argument.name
    job, lws, start_group = await asyncio.gather(
        _asks(client, JOBS, namespace, name),
        _asks(client, LEADER_WORKER_SETS, namespace, name),
        is_start_group(client, namespace, name),
    )
    fits = [ResourceKind.JOB] * job + [ResourceKind.LWS] * lws + [ResourceKind.START_GROUP] * start_group
    if not fits:
        return argument
    with suppress(NotFound, Forbidden):
        await client.get(JOBSETS, name, namespace, type=wire.AnyObject)
        fits.insert(0, ResourceKind.JOBSET)
    if len(fits) == 1:
        return replace(argument, kind=fits[0])
    said = ", ".join(f"{kind}/{name}" for kind in fits)
    raise CommandError(f"{name} fits several in namespace {namespace}: {said}; say which one", ExitCode.USAGE)


async def _asks(client: Client, resource: Resource, namespace: str, name: str) -> bool:
    """Whether the object of that name asks for a start barrier."""
    try:
        notes = (await client.get(resource, name, namespace, type=_Workload)).metadata.annotations
    except (NotFound, Forbidden):
        return False
    return notes is not None and notes.config is not None
