"""Uncached reads of a gang before an irreversible write (controller-runtime: APIReader).

* Before a timeout (A7), and before a release while the cache of pods may be old (A4): Jobs, pods, and, of missing pods,
  Events (A9).
* Before a ConfigMap is created: its workload, whose condition records the verdict of a deleted ConfigMap (A10), and
  which may itself be gone: the garbage collector would delete the ConfigMap, and the next pass would create it again.
* Before a ConfigMap with unexpected content is trusted: its workload.
* Where the pods are all there is of the workload: those, also before a clock or verdict of a new attempt (K5).
"""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

import msgspec
import structlog

from controllers.barrier.workloads import get_workload
from jobset_gate.barrier import events, integrity, lws_wire, wire
from jobset_gate.barrier.model import GangSnapshot, JobSeen, PendingReason, WorkloadSeen
from jobset_gate.barrier.source import Source
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound, RequestFailed
from jobset_gate.kube.resources import EVENTS, JOBS, PODS, STATEFUL_SETS
from jobset_gate.runtime.paging import ListScope, list_objects, list_pages
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate.sources import decode, lws, startgroup
from jobset_gate.sources.table import JOB

EVENTS_PAGE: Final = 50
EVENTS_BYTES: Final = 1024 * 1024
"""Read per reason at most: tenants can create large Events. Events beyond only shorten messages."""

W = TypeVar("W")
M = TypeVar("M")

_Events = tuple[Sequence[events.CoreEvent], Sequence[events.CoreEvent], Sequence[events.CoreEvent]]
"""Rejected pods, provisioned nodes, kubelets' errors."""
_NO_EVENTS: Final[_Events] = ((), (), ())

_log = structlog.get_logger(__name__)


class LiveReader:
    """`pod_staleness`: the cache has all writes of pods of this source that are older, in seconds."""

    def __init__(self, client: Client, pod_staleness: Callable[[Source], float] = lambda _: 0.0) -> None:
        self._client, self.pod_staleness = client, pod_staleness
        # No retries in the client: after a throttled request the gang is counted again first.
        self._no_retry = client.without_retries()

    async def refresh(self, seen: GangSnapshot, *, reasons: bool = True) -> GangSnapshot:
        """With Jobs, pods and, for `reasons`, Events from the API. Raises if Jobs or pods cannot be listed."""
        namespace = seen.workload.namespace
        # Events first: pods may start or go while Events, which only matter for messages, are listed.
        causes = await self._list_reasons(seen) if reasons else _NO_EVENTS
        if seen.workload.source.gates_pods:
            return events.with_events(await self._gather(seen), *causes)
        mine = seen.workload.source.pods_selector(seen.workload.name)
        jobs = await self._read_jobs(seen, mine)
        pods = await self._list_all(ListScope(PODS, namespace, mine), wire.Pod, decode.pod)
        return events.with_events(msgspec.structs.replace(seen, jobs=jobs, pods=pods), *causes)

    async def _gather(self, seen: GangSnapshot) -> GangSnapshot:
        """The gang that its pods in the API are. Raises Requeue without any, or under another leader."""
        workload = seen.workload
        scope = ListScope(PODS, workload.namespace, workload.source.pods_selector(workload.name))
        if not workload.source.keeps_attempt:
            return await self._gather_group(seen, scope)
        labelled = await self._list_all(scope, wire.MemberPod, startgroup.pod)
        pods = tuple(pod for pod in labelled if pod is not None and pod.workload_uid == workload.uid)
        if not pods:
            raise Requeue(f"the {workload.source.kind} {workload.key} is gone")
        return startgroup.regathered(msgspec.structs.replace(seen, pods=pods))

    async def _gather_group(self, seen: GangSnapshot, scope: ListScope) -> GangSnapshot:
        """The same of a group of a LeaderWorkerSet, whose StatefulSets tell which pods belong to its leader."""
        its = dataclasses.replace(scope, resource=STATEFUL_SETS, label_selector=lws.worker_sets_selector(seen.workload))
        # StatefulSets first: a pod whose StatefulSet came later counts in the next pass.
        found = await self._list_all(its, lws_wire.WorkerSet, lws.worker_set)
        worker_sets = {it.uid: it.leader_uid for it in found if it is not None}
        labelled = await self._list_all(scope, wire.MemberPod, lws.pod)
        pods = [pod for pod in labelled if pod is not None and pod.gang == seen.workload.name]
        live = lws.regathered(seen, pods, worker_sets)
        if live is None:
            raise Requeue(f"the leader pod {seen.workload.key} is gone, or another one")
        return live

    async def verify_config_map(self, seen: GangSnapshot) -> GangSnapshot:
        """With the workload's condition in the API, and without ConfigMap content that the workload does not support.

        Raises Requeue if the workload is gone, being deleted or another one, and the error of a failed read.
        """
        if seen.workload.source.gates_pods:
            live = await self._gather(seen)
            return integrity.without_edits(live, live.workload)
        return integrity.without_edits(seen, await self._get_workload(seen))

    async def _get_workload(self, seen: GangSnapshot) -> WorkloadSeen:
        known = seen.workload
        what = f"the {known.source.kind} {known.key}"
        try:
            live = await get_workload(self._no_retry, known)
        except NotFound as gone:
            raise Requeue(f"{what} is gone") from gone
        if live is None or live.uid != known.uid:
            raise Requeue(f"{what} is another one")
        if live.deleting:
            raise Requeue(f"{what} is being deleted")
        return live

    async def _read_jobs(self, seen: GangSnapshot, mine: str) -> tuple[JobSeen, ...]:
        """The gang's Jobs; where a Job is the workload, that one."""
        namespace, name = seen.workload.namespace, seen.workload.name
        if seen.workload.source is not JOB:
            return await self._list_all(ListScope(JOBS, namespace, mine), wire.Job, decode.job)
        try:
            return (decode.job(await self._no_retry.get(JOBS, name, namespace, type=wire.Job)),)
        except NotFound:
            return ()

    async def _list_reasons(self, seen: GangSnapshot) -> _Events:
        """Events of pods that do not exist, have no node, or have not started; others are not listed."""
        namespace = seen.workload.namespace
        reasons = {pod.pending.reason for pod in seen.pods if pod.pending is not None}
        provisioning = events.NODE_PROVISIONING_REASONS if PendingReason.UNSCHEDULED in reasons else ()
        kubelet = events.KUBELET_REASONS if PendingReason.STARTING in reasons else ()
        try:
            return (
                await self._list_events(namespace, creator_kind(seen), events.FAILED_CREATE),
                [event for reason in provisioning for event in await self._list_events(namespace, "Pod", reason)],
                [event for reason in kubelet for event in await self._list_events(namespace, "Pod", reason)],
            )
        except RequestFailed as error:
            _log.warning("events not read, the verdict says less", namespace=namespace, error=str(error))
            return _NO_EVENTS

    async def list_denials(self, namespace: str, kind: str) -> dict[str, str]:
        """By object of this kind, which creates pods, the message of the last rejected pod.

        Raises the error of a failed list.
        """
        return events.denials_by_job(await self._list_events(namespace, kind, events.FAILED_CREATE))

    async def get_stateful_set(self, name: str, namespace: str) -> wire.StatefulSet | None:
        """None without it, or without the right to read it. Raises the error of a failed read."""
        try:
            return await self._no_retry.get(STATEFUL_SETS, name, namespace, type=wire.StatefulSet)
        except (Forbidden, NotFound):
            return None

    async def _list_events(self, namespace: str, kind: str, reason: str) -> list[events.CoreEvent]:
        selector = f"involvedObject.kind={kind},reason={reason}"
        scope = ListScope(EVENTS, namespace, field_selector=selector)
        found: list[events.CoreEvent] = []
        size = 0
        async with aclosing(list_pages(self._client, scope, EVENTS_PAGE, EVENTS_BYTES)) as in_turn:
            async for items, _ in in_turn:
                found += (event for item in items if (event := _event(item)) is not None)
                size += sum(len(memoryview(item)) for item in items)
                if len(found) >= events.MAX_EVENTS or size >= EVENTS_BYTES:
                    break
        return found

    async def _list_all(self, scope: ListScope, kind: type[W], convert: Callable[[W], M]) -> tuple[M, ...]:
        async with aclosing(list_objects(self._no_retry, scope, kind)) as read_in_turn:
            return tuple([convert(it) async for it in read_in_turn])


def creator_kind(seen: GangSnapshot) -> str:
    """The kind of the objects that create the gang's pods."""
    workload = seen.workload
    return workload.source.pods_creator or workload.involved_object.kind


def _event(item: msgspec.Raw) -> events.CoreEvent | None:
    """None for an Event that cannot be decoded."""
    try:
        return msgspec.json.decode(item, type=events.CoreEvent)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
