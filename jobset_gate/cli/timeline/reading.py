"""Reads what a timeline is made of: the JobSet, its pods with their times, the verdict, and Events of its images."""

import asyncio
import time

from jobset_gate import names, read, timeline_read, wire
from jobset_gate.cli.exits import Failed
from jobset_gate.cli.looking.listing import listed
from jobset_gate.cli.looking.objects import gate, stored
from jobset_gate.cli.looking.rights import Rights, refused
from jobset_gate.cli.timeline.pulls import pulls
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.model import JobSetSeen
from jobset_gate.timeline import Timeline
from jobset_gate.timeline_make import make


async def timeline(client: Client, namespace: str, name: str, rights: Rights) -> Timeline:
    """Raises Failed if there is no such gang, or its pods may not be read: without them nothing is left to tell."""
    jobset, pods, stored_gate = await asyncio.gather(
        _jobset(client, namespace, name),
        _pods(client, namespace, name, rights),
        rights.ask(
            gate(client, namespace, name), "get", CONFIGMAPS, namespace, "the verdict is known from the condition only"
        ),
    )
    there = await pulls(client, namespace, {pod.metadata.uid for pod in pods}, rights)
    seen = [timeline_read.pod(pod, there.get(pod.metadata.uid)) for pod in pods]
    its = None if stored_gate is None else read.gate(stored_gate)
    return make(jobset, its, seen, time.time(), rights.missing)


async def _jobset(client: Client, namespace: str, name: str) -> JobSetSeen:
    seen = read.jobset(await stored(client, JOBSETS, namespace, name, wire.JobSet))
    if seen is None:
        raise Failed(f"JobSet {namespace}/{name} asks for no gate: it has no {names.CONFIG_FIELD}")
    return seen


async def _pods(client: Client, namespace: str, name: str, rights: Rights) -> list[timeline_read.Pod]:
    mine = f"{names.GATED}={names.GATED_VALUE},{names.JS_NAME}={name}"
    try:
        return await listed(client, PODS, timeline_read.Pod, namespace, labels=mine, on_problem=rights.missing.append)
    except Forbidden as no:
        raise Failed(f"{refused('list', PODS, namespace)}: {no.message}") from no
