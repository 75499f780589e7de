"""What a person names to be watched, found in the cluster: a JobSet with a gate, or a pod group."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jobset_gate import names, read, wire
from jobset_gate.cli.exits import Failed
from jobset_gate.cli.looking import keeper
from jobset_gate.cli.looking.objects import Absent, stored
from jobset_gate.cli.looking.policies import policy
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.looking.subjects import What, named
from jobset_gate.cli.verbs.scenes import About, JobSetScene, Scene
from jobset_gate.explained import Controller
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import JOBSETS, PODS
from jobset_gate.template import dig, mapping


@dataclass(frozen=True, slots=True)
class Asked:
    """Where to look; `homes` are further namespaces in which a controller's Lease may be."""

    namespace: str
    config: Path | None
    homes: Sequence[str]
    rights: Rights


async def scene(client: Client, text: str, asked: Asked) -> Scene:
    """Raises Failed for what is not there, may not be read, or has no gate."""
    wanted = named(text)
    what, name = wanted.what, wanted.name
    if what is What.POD:
        what, name = await _of_pod(client, name, asked.namespace)
    if what is What.GROUP:
        return await _group(client, name, asked)
    try:
        return await _jobset(client, name, asked)
    except Absent:
        if what is What.JOBSET:
            raise
    return await _group(client, name, asked, f"JobSet {name} not found in namespace {asked.namespace}, and ")


async def _jobset(client: Client, name: str, asked: Asked) -> JobSetScene:
    raw, controller = await asyncio.gather(
        stored(client, JOBSETS, asked.namespace, name, msgspec.Raw), _controller(client, asked)
    )
    jobset = read.jobset(msgspec.json.decode(raw, type=wire.JobSet))
    if jobset is None:
        raise Failed(f"JobSet {name} in namespace {asked.namespace} asks for no start barrier: it has no gate")
    rules = policy(msgspec.json.decode(raw), jobset.config.targets)
    return JobSetScene(client, About(asked.namespace, name, jobset.uid, rules, controller), asked.rights)


async def _group(client: Client, name: str, asked: Asked, before: str = "") -> Scene:
    # Imported late: whoever asks about a JobSet need not wait for it.
    from jobset_gate.cli import settings_file  # noqa: PLC0415
    from jobset_gate.cli.groups import scene as groups  # noqa: PLC0415

    settings = settings_file.read(asked.config).admission.groups
    about = groups.About(asked.namespace, name, await _controller(client, asked), settings, before)
    return groups.GroupScene(client, about)


async def _of_pod(client: Client, name: str, namespace: str) -> tuple[What, str]:
    """The gang of a pod; its JobSet if it has one, since that is what its start waits for."""
    from jobset_gate.groups import read as groups  # noqa: PLC0415 - as above
    from jobset_gate.groups import wire as shapes  # noqa: PLC0415 - as above

    raw = await stored(client, PODS, namespace, name, msgspec.Raw)
    labels = mapping(dig(msgspec.json.decode(raw), "metadata", "labels"))
    if labels.get(names.GATED) == names.GATED_VALUE and labels.get(names.JS_NAME):
        return What.JOBSET, str(labels[names.JS_NAME])
    claim = groups.member(msgspec.json.decode(raw, type=shapes.Pod)).claim
    if names.GANG in labels and claim is not None:
        return What.GROUP, claim.key.name
    raise Failed(f"pod {name} in namespace {namespace} belongs to no gang: nothing of ours holds it")


async def _controller(client: Client, asked: Asked) -> Controller:
    return await keeper.controller(client, *asked.homes)
