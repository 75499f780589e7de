"""The single writes of a roll-back (G4).

Each gives False where the object is not what it was, so that all has to be looked at anew. What is gone needs no more.
"""

from collections.abc import Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Invalid, NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS, Resource
from jobset_gate.objects.unstructured import as_list, as_map
from jobset_gate.podgroups import eviction_owners
from jobset_gate.podgroups.eviction import JOB, JOBSET, DetachPod, SuspendOwner, SuspendTarget
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.runtime.paging import ListScope, list_objects

_KINDS: Final[Mapping[str, Resource]] = {JOB: JOBS, JOBSET: JOBSETS}
_MESSAGE: Final = "Its group is taken back, since too few of its pods could be placed in time"

_log = structlog.get_logger(__name__)


async def release_pod(client: Client, step: DetachPod, version: str) -> bool:
    """What the Job controller does itself with a pod that its selector matches no more, in one write."""
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
    return await _patch(client, PODS, pod.name, pod.namespace, body, PatchType.STRATEGIC)


async def suspend_owner(client: Client, step: SuspendOwner) -> bool:
    """The annotation says that it was us; the label finds it again, whatever happens to us."""
    body = _owner(step.target, suspended=True, mark=step.mark)
    done = await _patch(client, _KINDS[step.target.kind], step.target.name, step.target.namespace, body)
    if done:
        _log.info(
            "suspended", kind=step.target.kind, namespace=step.target.namespace, name=step.target.name, mark=step.mark
        )
    return done


async def mark_owner(client: Client, step: SuspendOwner) -> bool:
    """It will have to be suspended when all of its pods are gone; nobody else would know."""
    body = _owner(step.target, suspended=step.target.suspended, mark=step.mark)
    return await _patch(client, _KINDS[step.target.kind], step.target.name, step.target.namespace, body)


async def resume_owner(client: Client, root: SuspendTarget) -> bool:
    """It goes on, unless that is somebody else's to say by now, and nothing of ours is left on it."""
    while True:
        theirs = root.by_kueue or bool(root.managed_by)
        body = _owner(root, suspended=root.suspended and theirs, mark=None)
        if await _patch(client, _KINDS[root.kind], root.name, root.namespace, body):
            _log.info("resumed", kind=root.kind, namespace=root.namespace, name=root.name, mark=root.mark)
            return True
        try:
            found = await client.get(_KINDS[root.kind], root.name, root.namespace)
        except NotFound:
            return True
        stands = eviction_owners.read_target(root.kind, found)
        if (stands.uid, stands.mark) != (root.uid, root.mark):
            return True  # another one of that name, or somebody has seen to it
        root = stands


async def set_disruption_target(client: Client, pod: MemberPod, now: float) -> bool:
    """Tells whoever counts its pods' failures that this one is none."""
    condition = {
        "type": names.DISRUPTION_TARGET,
        "status": "True",
        "reason": names.REASON_DISRUPTED,
        "message": _MESSAGE,
        "lastTransitionTime": datetime.fromtimestamp(int(now), UTC).isoformat().replace("+00:00", "Z"),
    }
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
    return await _patch(client, PODS, pod.name, pod.namespace, body, PatchType.STRATEGIC, "status")


async def delete_pod(client: Client, pod: MemberPod) -> bool:
    """With the time that it asks for to end."""
    try:
        await client.delete(PODS, pod.name, pod.namespace, uid=pod.uid)
    except (NotFound, Conflict):
        return True  # it is gone, and what has its name is another
    return True


async def marked_owners(client: Client, namespace: str | None) -> list[SuspendTarget]:
    """All Jobs and JobSets that any roll-back has suspended or means to, and that nobody has let go on since."""
    found: list[SuspendTarget] = []
    for kind, resource in _KINDS.items():
        scope = ListScope(resource, namespace, names.POD_GROUP_SUSPENDED)
        with suppress(NotFound):  # there are no JobSets in this cluster
            async with aclosing(list_objects(client, scope, dict[str, Any])) as listed:
                found += [root async for it in listed if (root := eviction_owners.read_target(kind, it)).mark]
    return found


def _owner(root: SuspendTarget, *, suspended: bool, mark: str | None) -> dict[str, Any]:
    meta = {"uid": root.uid, "resourceVersion": root.resource_version}
    marks = {names.POD_GROUP_SUSPENDED: mark}
    return {"metadata": {**meta, "annotations": marks, "labels": marks}, "spec": {"suspend": suspended}}


async def _patch(  # noqa: PLR0917 - what a patch is made of
    client: Client,
    kind: Resource,
    name: str,
    namespace: str,
    body: dict[str, Any],
    patch: PatchType = PatchType.MERGE,
    subresource: str | None = None,
) -> bool:
    try:
        await client.patch(kind, name, namespace, body=body, patch=patch, subresource=subresource)
    except NotFound:
        return True
    except Conflict:
        return False
    except Invalid as refused:
        if not _of_another(refused):
            raise
    return True


def _of_another(refused: Invalid) -> bool:
    """Whether the name is another object's by now: an API server calls the UID immutable then."""
    return any(as_map(it).get("field") == "metadata.uid" for it in as_list(refused.details.get("causes")))
