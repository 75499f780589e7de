"""The workloads of each source in the API: where they are, how one is read, and how its condition is written."""

from datetime import UTC, datetime
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import ConditionSeen, DesiredCondition, WorkloadSeen
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import JOBS, JOBSETS, LEADER_WORKER_SETS, PODS, Resource
from jobset_gate.runtime.store import ObjectVersion
from jobset_gate.sources import decode, lws
from jobset_gate.sources.table import JOB, JOBSET, LWS

WORKLOADS: Final[dict[str, Resource]] = {JOBSET.name: JOBSETS, JOB.name: JOBS, LWS.name: PODS}
"""By the name of the source: the objects whose UIDs are in generations."""


async def get_workload(client: Client, known: WorkloadSeen) -> WorkloadSeen | None:
    """The workload of this source and name in the API; None if it is no gang. Raises NotFound."""
    if known.source is JOB:
        return decode.job(await client.get(JOBS, known.name, known.namespace, type=wire.Job)).workload
    return decode.jobset(await client.get(JOBSETS, known.name, known.namespace, type=wire.JobSet))


def condition_body(condition: DesiredCondition, current: ConditionSeen | None, now: float) -> dict[str, Any]:
    """The condition GroupStarted as it is written at `now`, Unix time. `current`: the one that is there."""
    same = current is not None and current.status == condition.status and current.since
    since = current.since if same and current else datetime.fromtimestamp(int(now), UTC).isoformat()
    return {
        "type": names.CONDITION,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since.replace("+00:00", "Z"),
    }


async def write_condition(
    client: Client, workload: WorkloadSeen, version: ObjectVersion, condition: dict[str, Any]
) -> None:
    """Writes the condition GroupStarted, and clears a stale start in the same write.

    Raises Conflict or Invalid if this is not the cached workload any more.
    """
    status: dict[str, Any] = {"conditions": [condition]}
    if workload.source is JOB:
        # A Job's conditions are atomic for an apply, and merged by type in a strategic merge patch. The UID, so that
        # the condition is never written to a new Job of the same name; the Job controller's writes are no conflict.
        meta = {"uid": version.uid}
        if workload.stale_start:
            meta["resourceVersion"] = workload.stale_start  # a Job that was resumed meanwhile keeps its start
            status["startTime"] = None
        await client.patch(
            JOBS,
            workload.name,
            workload.namespace,
            body={"metadata": meta, "status": status},
            patch=PatchType.STRATEGIC,
            subresource="status",
        )
        return
    await _apply(client, JOBSETS, workload, version.resource_version, status)


async def write_shared_condition(
    client: Client, seen: lws.LeaderWorkerSetSeen, conditions: list[dict[str, Any]]
) -> None:
    """Writes the condition GroupStarted of all groups, or removes it. Raises Conflict if this is not the cached
    LeaderWorkerSet.
    """
    await _apply(client, LEADER_WORKER_SETS, seen, seen.resource_version, {"conditions": conditions})


async def _apply(
    client: Client, kind: Resource, seen: WorkloadSeen | lws.LeaderWorkerSetSeen, version: str, status: dict[str, Any]
) -> None:
    """Server-side apply on the status of a custom resource."""
    await client.patch(
        kind,
        seen.name,
        seen.namespace,
        # The API server ignores metadata.uid in status writes of custom resources and honours resourceVersion.
        body={"metadata": {"resourceVersion": version}, "status": status},
        patch=PatchType.APPLY,
        subresource="status",
        field_manager=names.FIELD_MANAGER,
        force=True,
    )
