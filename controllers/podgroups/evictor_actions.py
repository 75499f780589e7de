"""The writes of an eviction (G4).

Each returns False if the object is not what it was when it was planned. An object that is gone needs no write.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Invalid, NotFound, is_uid_mismatch
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS, Resource
from jobset_gate.podgroups import owners
from jobset_gate.podgroups.eviction import JOB, JOBSET, DetachPod, SuspendOwner, SuspendTarget
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.runtime.paging import ListScope, list_objects

_KINDS: Final[Mapping[str, Resource]] = {JOB: JOBS, JOBSET: JOBSETS}
RESUME_INTERVAL: Final = 1.0
"""Seconds between two attempts to resume an owner that a webhook refuses to resume."""
_MESSAGE: Final = "Its group is taken back, since too few of its pods could be placed in time"

_log = structlog.get_logger(__name__)


async def detach_pod(client: Client, step: DetachPod, version: str) -> bool:
    """Does in one write what the Job controller does to a pod that its selector matches no more."""
    pod = step.pod
    body = {
        "metadata": {
            "uid": pod.uid,
            "resourceVersion": version,
            "ownerReferences": [{"$patch": "delete", "uid": step.job}],
            "$deleteFromPrimitiveList/finalizers": [names.JOB_TRACKING_FINALIZER],
            "labels": dict.fromkeys(step.labels),
            "annotations": {names.POD_GROUP_TAKEN_BACK: step.mark},
        }
    }
    return await _patch(client, PODS, pod, body, PatchType.STRATEGIC)


async def mark_owner(client: Client, step: SuspendOwner) -> bool:
    """Marks an owner that has to be suspended once its pods are gone: a successor finds it by the label."""
    return await _patch_owner(client, step.target, suspended=step.target.suspended, mark=step.mark)


async def suspend_owner(client: Client, step: SuspendOwner) -> bool:
    """Suspends and marks an owner."""
    target = step.target
    done = await _patch_owner(client, target, suspended=True, mark=step.mark)
    if done:
        _log.info("suspended", kind=target.kind, namespace=target.namespace, name=target.name, mark=step.mark)
    return done


async def resume_owner(client: Client, target: SuspendTarget) -> bool:
    """Removes the mark, and resumes the owner unless Kueue or another manager decides that."""
    while True:
        managed = target.by_kueue or bool(target.managed_by)
        if await _patch_owner(client, target, suspended=target.suspended and managed, mark=None):
            _log.info("resumed", kind=target.kind, namespace=target.namespace, name=target.name, mark=target.mark)
            return True
        try:
            found = await client.get(_KINDS[target.kind], target.name, target.namespace)
        except NotFound:
            return True
        current = owners.read_target(target.kind, found)
        if (current.uid, current.mark) != (target.uid, target.mark):
            return True  # recreated, or resumed by another client
        if current.resource_version == target.resource_version:
            # A webhook has refused: ours does while a Job that is a gang is still being suspended (K4).
            await asyncio.sleep(RESUME_INTERVAL)
        target = current


async def set_disruption_target(client: Client, pod: MemberPod, now: float) -> bool:
    """Sets the condition that keeps controllers from counting the pod as failed."""
    condition = {
        "type": names.DISRUPTION_TARGET,
        "status": "True",
        "reason": names.REASON_DISRUPTED,
        "message": _MESSAGE,
        "lastTransitionTime": datetime.fromtimestamp(int(now), UTC).isoformat().replace("+00:00", "Z"),
    }
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
    return await _patch(client, PODS, pod, body, PatchType.STRATEGIC, "status")


async def delete_pod(client: Client, pod: MemberPod) -> bool:
    """Deletes the pod with its own grace period."""
    with suppress(NotFound, Conflict):  # gone, or recreated
        await client.delete(PODS, pod.name, pod.namespace, uid=pod.uid)
    return True


async def marked_owners(client: Client, namespace: str | None) -> list[SuspendTarget]:
    """All Jobs and JobSets with the mark of an eviction."""
    found: list[SuspendTarget] = []
    for kind, resource in _KINDS.items():
        scope = ListScope(resource, namespace, names.POD_GROUP_SUSPENDED)
        with suppress(NotFound):  # JobSet is not installed
            async with aclosing(list_objects(client, scope, dict[str, Any])) as listed:
                found += [it async for each in listed if (it := owners.read_target(kind, each)).mark]
    return found


async def _patch_owner(client: Client, target: SuspendTarget, *, suspended: bool, mark: str | None) -> bool:
    meta = {"uid": target.uid, "resourceVersion": target.resource_version}
    marks = {names.POD_GROUP_SUSPENDED: mark}
    body = {"metadata": {**meta, "annotations": marks, "labels": marks}, "spec": {"suspend": suspended}}
    return await _patch(client, _KINDS[target.kind], target, body, PatchType.MERGE)


async def _patch(  # noqa: PLR0917 - what a patch is made of
    client: Client,
    kind: Resource,
    it: MemberPod | SuspendTarget,
    body: dict[str, Any],
    patch: PatchType,
    subresource: str | None = None,
) -> bool:
    try:
        await client.patch(kind, it.name, it.namespace, body=body, patch=patch, subresource=subresource)
    except NotFound:
        return True
    except Conflict:
        return False
    except Invalid as refused:
        if not is_uid_mismatch(refused):
            raise
    return True
