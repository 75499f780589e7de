"""A bare name on the command line: that of a JobSet or pod group, unless a Job that is a gang has it."""

from dataclasses import replace

import msgspec

from jobset_gate.barrier import wire
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.options import ResourceArgument, ResourceKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS


class _Meta(wire.WireStruct, frozen=True):
    annotations: wire.Annotations | None = None


class _Workload(wire.WireStruct, frozen=True):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


async def resolve_bare_name(client: Client, namespace: str, argument: ResourceArgument) -> ResourceArgument:
    """The Job if that alone is a gang of this name; any other argument as it is.

    What may not be read is no reason to refuse: without the right to Jobs their gangs are named job/NAME. Raises
    CommandError if the name fits a JobSet, too.
    """
    if argument.kind is not ResourceKind.ANY or not await _is_gang(client, namespace, argument.name):
        return argument
    name = argument.name
    try:
        await client.get(JOBSETS, name, namespace, type=_Workload)
    except (NotFound, Forbidden):
        return replace(argument, kind=ResourceKind.JOB)
    fits = f"{name} fits several in namespace {namespace}: jobset/{name}, job/{name}"
    raise CommandError(f"{fits}; say which one", ExitCode.USAGE)


async def _is_gang(client: Client, namespace: str, name: str) -> bool:
    """Whether a Job of that name asks for a start barrier."""
    try:
        notes = (await client.get(JOBS, name, namespace, type=_Workload)).metadata.annotations
    except (NotFound, Forbidden):
        return False
    return notes is not None and notes.config is not None
