"""What a person names to be watched, found in the cluster: a JobSet with a gate, or a pod group."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jobset_gate import names
from jobset_gate.barrier import decode, wire
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch import jobset_controller
from jobset_gate.cli.fetch.failure_policies import failure_policies
from jobset_gate.cli.fetch.objects import ObjectNotFound, get_object
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.resource_args import ResourceKind, parse_resource
from jobset_gate.cli.watch.view import JobSetTarget, JobSetView, WatchView
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import JOBSETS, PODS
from jobset_gate.objects.unstructured import as_map, nested


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """Where to look; `homes` are further namespaces in which a controller's Lease may be."""

    namespace: str
    config: Path | None
    homes: Sequence[str]
    rights: Permissions


async def find_view(client: Client, text: str, asked: WatchTarget) -> WatchView:
    """Raises Failed for what is not there, may not be read, or has no gate."""
    wanted = parse_resource(text)
    what, name = wanted.kind, wanted.name
    if what is ResourceKind.POD:
        what, name = await _of_pod(client, name, asked.namespace)
    if what is ResourceKind.POD_GROUP:
        return await _group(client, name, asked)
    try:
        return await _jobset(client, name, asked)
    except ObjectNotFound:
        if what is ResourceKind.JOBSET:
            raise
    return await _group(client, name, asked, f"JobSet {name} not found in namespace {asked.namespace}, and ")


async def _jobset(client: Client, name: str, asked: WatchTarget) -> JobSetView:
    raw, controller = await asyncio.gather(
        get_object(client, JOBSETS, asked.namespace, name, msgspec.Raw), _controller(client, asked)
    )
    jobset = decode.jobset(msgspec.json.decode(raw, type=wire.JobSet))
    if jobset is None:
        raise CommandError(f"JobSet {name} in namespace {asked.namespace} asks for no start barrier: it has no gate")
    rules = failure_policies(msgspec.json.decode(raw), jobset.config.targets)
    return JobSetView(client, JobSetTarget(asked.namespace, name, jobset.uid, rules, controller), asked.rights)


async def _group(client: Client, name: str, asked: WatchTarget, before: str = "") -> WatchView:
    # Imported late: whoever asks about a JobSet need not wait for it.
    from jobset_gate.cli import settings_file  # noqa: PLC0415
    from jobset_gate.cli.watch import pod_group_view as groups  # noqa: PLC0415

    settings = settings_file.read(asked.config).admission.groups
    about = groups.PodGroupTarget(asked.namespace, name, await _controller(client, asked), settings, before)
    return groups.PodGroupView(client, about)


async def _of_pod(client: Client, name: str, namespace: str) -> tuple[ResourceKind, str]:
    """The gang of a pod; its JobSet if it has one, since that is what its start waits for."""
    from jobset_gate.podgroups import decode as groups  # noqa: PLC0415 - as above
    from jobset_gate.podgroups import wire as shapes  # noqa: PLC0415 - as above

    raw = await get_object(client, PODS, namespace, name, msgspec.Raw)
    labels = as_map(nested(msgspec.json.decode(raw), "metadata", "labels"))
    if labels.get(names.GATED) == names.GATED_VALUE and labels.get(names.JS_NAME):
        return ResourceKind.JOBSET, str(labels[names.JS_NAME])
    claim = groups.member(msgspec.json.decode(raw, type=shapes.GroupPod)).membership
    if names.POD_GROUP_LABEL in labels and claim is not None:
        return ResourceKind.POD_GROUP, claim.key.name
    raise CommandError(f"pod {name} in namespace {namespace} belongs to no gang: nothing of ours holds it")


async def _controller(client: Client, asked: WatchTarget) -> ControllerStatus:
    return await jobset_controller.jobset_controller_status(client, *asked.homes)
