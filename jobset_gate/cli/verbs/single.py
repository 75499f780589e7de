"""One JobSet by name, for a command that acts on it or waits for it: without its pods, which may be many."""

import asyncio
import time
from dataclasses import dataclass

from jobset_gate import read, wire
from jobset_gate.cli.exits import Exit, Failed
from jobset_gate.cli.looking.objects import gate, stored
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.looking.subjects import What, named
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate.model import GateSeen, JobSetSeen

KIND = f"{JOBSETS.kind.lower()}.{JOBSETS.group}"
BLIND = "what was decided is known from the JobSet's condition only"


@dataclass(frozen=True, slots=True)
class Single:
    """As it was found. `gate` is its ConfigMap, if there is one and it may be read."""

    jobset: JobSetSeen
    gate: GateSeen | None
    seen_at: float


def subject(text: str) -> str:
    """The name of a JobSet. Raises Failed for what else may be named elsewhere."""
    wanted = named(text)
    if wanted.what not in (What.ANY, What.JOBSET):
        raise Failed(f"{text}: only JobSets have a start barrier: name one as NAME or jobset/NAME", Exit.USAGE)
    return wanted.name


async def find(client: Client, namespace: str, name: str, rights: Rights) -> Single:
    """Raises Failed where it is not there, may not be read, or asks for no gate."""
    raw, stored_gate = await asyncio.gather(
        stored(client, JOBSETS, namespace, name, wire.JobSet),
        rights.ask(gate(client, namespace, name), "get", CONFIGMAPS, namespace, BLIND),
    )
    jobset = read.jobset(raw)
    if jobset is None:
        raise Failed(f"JobSet {name} in namespace {namespace} asks for no start barrier: it has no gate")
    return Single(jobset, None if stored_gate is None else read.gate(stored_gate), time.time())
