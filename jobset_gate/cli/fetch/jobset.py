"""One JobSet by name, for a command that acts on it or waits for it: without its pods, which may be many."""

import asyncio
import time
from dataclasses import dataclass

from jobset_gate.barrier import decode, wire
from jobset_gate.barrier.model import ConfigMapSeen, JobSetSeen
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.objects import get_config_map, get_object
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.resource_args import ResourceKind, parse_resource
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS

JOBSET_KIND = f"{JOBSETS.kind.lower()}.{JOBSETS.group}"
UNKNOWN_WITHOUT_CONFIG_MAP = "what was decided is known from the JobSet's condition only"


@dataclass(frozen=True, slots=True)
class JobSetAndVerdict:
    """As it was found. `gate` is its ConfigMap, if there is one and it may be read."""

    jobset: JobSetSeen
    gate: ConfigMapSeen | None
    read_at: float


def jobset_name(text: str) -> str:
    """The name of a JobSet. Raises Failed for what else may be named elsewhere."""
    wanted = parse_resource(text)
    if wanted.kind not in (ResourceKind.ANY, ResourceKind.JOBSET):
        raise CommandError(
            f"{text}: only JobSets have a start barrier: name one as NAME or jobset/NAME", ExitCode.USAGE
        )
    return wanted.name


async def get_gated_jobset(client: Client, namespace: str, name: str, rights: Permissions) -> JobSetAndVerdict:
    """Raises Failed where it is not there, may not be read, or asks for no gate."""
    raw, stored_gate = await asyncio.gather(
        get_object(client, JOBSETS, namespace, name, wire.JobSet),
        rights.read_allowed(
            get_config_map(client, namespace, name), "get", CONFIGMAPS, namespace, UNKNOWN_WITHOUT_CONFIG_MAP
        ),
    )
    jobset = decode.jobset(raw)
    if jobset is None:
        raise CommandError(f"JobSet {name} in namespace {namespace} asks for no start barrier: it has no gate")
    return JobSetAndVerdict(jobset, None if stored_gate is None else decode.config_map(stored_gate), time.time())
