"""Reads what a timeline is made of: the JobSet, its pods with their times, the verdict, and Events of its images."""

import asyncio
import time

from jobset_gate import names
from jobset_gate.barrier import decode, wire
from jobset_gate.barrier.model import JobSetSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.image_pulls import fetch_image_pulls
from jobset_gate.cli.fetch.lists import list_objects
from jobset_gate.cli.fetch.objects import get_config_map, get_object
from jobset_gate.cli.fetch.permissions import Permissions, forbidden_text
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.timeline import decode as timeline_decode
from jobset_gate.timeline.gang import gang_timeline
from jobset_gate.timeline.model import Timeline


async def fetch_gang_timeline(client: Client, namespace: str, name: str, rights: Permissions) -> Timeline:
    """Raises Failed if there is no such gang, or its pods may not be read: without them nothing is left to tell."""
    jobset, pods, stored_gate = await asyncio.gather(
        _jobset(client, namespace, name),
        _pods(client, namespace, name, rights),
        rights.read_allowed(
            get_config_map(client, namespace, name),
            "get",
            CONFIGMAPS,
            namespace,
            "the verdict is known from the condition only",
        ),
    )
    there = await fetch_image_pulls(client, namespace, {pod.metadata.uid for pod in pods}, rights)
    seen = [timeline_decode.decode_pod(pod, there.get(pod.metadata.uid)) for pod in pods]
    its = None if stored_gate is None else decode.config_map(stored_gate)
    return gang_timeline(jobset, its, seen, time.time(), rights.missing)


async def _jobset(client: Client, namespace: str, name: str) -> JobSetSeen:
    seen = decode.jobset(await get_object(client, JOBSETS, namespace, name, wire.JobSet))
    if seen is None:
        raise CommandError(f"JobSet {namespace}/{name} asks for no gate: it has no {names.CONFIG_FIELD}")
    return seen


async def _pods(client: Client, namespace: str, name: str, rights: Permissions) -> list[timeline_decode.TimedPod]:
    mine = f"{names.GATED}={names.GATED_VALUE},{names.JS_NAME}={name}"
    try:
        return await list_objects(
            client, PODS, timeline_decode.TimedPod, namespace, labels=mine, on_problem=rights.missing.append
        )
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('list', PODS, namespace)}: {no.message}") from no
