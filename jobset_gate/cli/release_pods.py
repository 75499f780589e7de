"""The release by hand of a start group or of a group of a LeaderWorkerSet: the decision, as the controller writes it.

Pods have their annotations from when they are created, so there is none that would ask a controller for it.
"""

import asyncio
import time
from typing import Any, Final

from controllers.barrier.verdict_store import config_map_body
from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec, wire
from jobset_gate.barrier.decide import Facts
from jobset_gate.barrier.model import GangSnapshot, PodSeen, Verdict, VerdictKind, WorkloadSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.source import Permissions, forbidden_text
from jobset_gate.cli.fetch.view import get_gang
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, PODS
from jobset_gate.sources import startgroup

ATTEMPTS: Final = 5
"""Tries while the controller writes the same ConfigMap."""
_PATCHES: Final = 16
"""Pods that are patched at once."""


async def release_pods(
    client: Client, known: WorkloadSeen, permissions: Permissions, *, dry_run: bool
) -> tuple[GangSnapshot, Verdict]:
    """Writes the release of the present attempt into the gang's ConfigMap, by compare-and-swap (A6.1).

    The pods are listed after the version of the ConfigMap that is replaced, so that no attempt is ended unseen (K5).
    Raises CommandError, naming the right that is missing.
    """
    for _ in range(ATTEMPTS):
        before = await _version(client, known)
        seen = await get_gang(client, known.namespace, known.source, known.name, permissions)
        if seen.config_map_conflict:
            raise CommandError(f"{messages.config_map_conflict(seen).message}: nothing was changed")
        if before != (seen.config_map.resource_version if seen.config_map is not None else ""):
            continue
        facts = Facts(seen, time.time())
        if facts.standing is not None:
            raise CommandError(f"its gate was decided meanwhile: {facts.standing.message}; nothing was changed")
        verdict = Verdict(
            kind=VerdictKind.RELEASE,
            generation=facts.generation(0),
            cause=names.REASON_BYPASSED,
            message=f"gate opened by hand with {messages.progress(facts.count)}",
        )
        kept = startgroup.membership_to_write(seen, begins=True) if known.source.keeps_attempt else None
        data = verdict_codec.config_map_data(verdict, facts.clock, kept)
        try:
            await _write(client, seen, verdict, data, dry_run=dry_run)
        except (AlreadyExists, Conflict, NotFound):
            continue
        return seen, verdict
    raise CommandError(f"the ConfigMap {known.source.config_map_name(known.name)} is changed all the time; try again")


async def deliver(client: Client, seen: GangSnapshot, verdict: Verdict) -> str:
    """Annotates the pods that wait, as a controller does, which may know nothing of start groups any more.

    Returns why they were not annotated; "" if they were.
    """
    limit, refused = asyncio.Semaphore(_PATCHES), ""

    async def annotate(pod: PodSeen) -> None:
        nonlocal refused
        text = verdict_codec.render(verdict_codec.addressed(verdict, pod.uid))
        body = {"metadata": {"uid": pod.uid, "annotations": {names.VERDICT: text}}}
        async with limit:
            if refused:
                return
            try:
                await client.patch(PODS, pod.name, pod.namespace, body=body, patch=PatchType.MERGE)
            except Forbidden as no:
                right = forbidden_text("patch", PODS, pod.namespace)
                refused = f"{right}: they go when a controller tells them ({no.message})"
            except (NotFound, Conflict, Invalid):
                return  # deleted, or another pod of its name

    await asyncio.gather(*(annotate(pod) for pod in seen.pods if pod.live))
    return refused


async def _version(client: Client, workload: WorkloadSeen) -> str:
    """Of the gang's ConfigMap; "" if there is none."""
    name = workload.source.config_map_name(workload.name)
    try:
        found = await client.get(CONFIGMAPS, name, workload.namespace, type=wire.AnyObject)
    except NotFound:
        return ""
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('get', CONFIGMAPS, workload.namespace)} ({no.message})") from no
    return found.metadata.resource_version


async def _write(client: Client, seen: GangSnapshot, verdict: Verdict, data: dict[str, str], *, dry_run: bool) -> None:
    workload, gate = seen.workload, seen.config_map
    body = config_map_body(workload, data, messages.decided(verdict))
    verb = "create" if gate is None else "patch"
    try:
        if gate is None:
            await client.create(CONFIGMAPS, body, workload.namespace, dry_run=dry_run)
            return
        its: dict[str, Any] = body["metadata"]
        its |= {"resourceVersion": gate.resource_version, "uid": gate.uid}
        body["data"] = dict.fromkeys((names.KEY_VERDICT, names.KEY_WAITING_SINCE)) | data
        await client.patch(CONFIGMAPS, gate.name, gate.namespace, body=body, patch=PatchType.MERGE, dry_run=dry_run)
    except Forbidden as no:
        right = forbidden_text(verb, CONFIGMAPS, workload.namespace)
        raise CommandError(f"{right}: nothing was changed ({no.message})") from no
