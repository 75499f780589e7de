"""Executes evictions: removes all admitted pods of a group and its GangGroup without failing their Jobs (G4).

Each step is planned from what the API server returns at that moment, so that it may be interrupted anywhere; see
`jobset_gate.podgroups.eviction` for the steps and their order.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final

import structlog

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.owners import OwnerReader
from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.barrier.verdict_codec import truncate
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RequestFailed,
    is_namespace_terminating,
    is_uid_mismatch,
)
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS, Resource
from jobset_gate.objects import terminal_text
from jobset_gate.podgroups import decode, eviction, owners, wire
from jobset_gate.podgroups.eviction import JOB, JOBSET, DetachPod, EvictionPlan, SuspendOwner, SuspendTarget
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.paging import ListScope, list_objects

CONCURRENCY: Final = 32
"""Writes of all evictions at once."""

RECHECK_SECONDS: Final = 3.0
"""Until pods that terminate are listed again; informers report most of them before."""

FORGET_SECONDS: Final = 60.0
"""After which the last plan of an eviction means nothing."""

CONFLICT_RETRY_SECONDS: Final = 0.2

MAX_REFUSAL_BYTES: Final = 300
MAX_REFUSALS_LISTED: Final = 3

SWEEP_RETRY_SECONDS: Final = 5.0
SWEEP_SECONDS: Final = 300.0
"""Between two searches for owners that no eviction suspends any more."""

_log = structlog.get_logger(__name__)
Refusals = dict[str, str]
"""Writes of one step that the API server refuses for good, such as for a policy: by object, its message."""


class EvictionResult(Value, frozen=True):
    """No admitted pod is left, but what cannot be evicted."""

    blocked: tuple[str, ...] = ()
    """Names of those pods, and of objects that may not be changed."""
    why: str = ""


class _LastPlan(Value, frozen=True):
    at: float
    blocked_pods: frozenset[str]
    answer: float | EvictionResult
    all_gone: bool = False
    """No pod was left to evict."""


class Evictor:
    """All evictions. `client` refuses to write where this process does not lead; `wall` is Unix time."""

    def __init__(self, client: Client, wall: Callable[[], float] = time.time) -> None:
        self._client, self._wall = client, wall
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._last: dict[str, _LastPlan] = {}

    async def advance_eviction(self, seen: Sequence[GroupSnapshot], record: AdmissionRecord) -> float | EvictionResult:
        """Does all that can be done now. Returns the seconds until the next step, or the result.

        `seen` only tells whether anything has changed; the pods to evict are listed.
        """
        generations = eviction.generations_by_label(record)
        mark = eviction.eviction_mark(*next(iter(generations.items())))
        members = [member for group in seen for member in group.members]
        last = self._last.get(mark)
        if last is not None and self._is_unchanged(last, members, record):
            return last.answer if isinstance(last.answer, EvictionResult) else last.at + RECHECK_SECONDS - monotonic()
        plan, versions = await self._plan(members, record)
        # No pod was left at the last step either: by now the Jobs have observed all of it.
        observed = last is not None and last.all_gone
        refusals: Refusals = {}
        unchanged = await self._act(plan, versions, refusals, restart=observed)
        self._last.pop(mark, None)
        if not unchanged:
            return CONFLICT_RETRY_SECONDS
        if refusals:
            why = "; ".join(filter(None, (plan.blocked_message, _why_refused(refusals))))
            return EvictionResult(blocked=(*plan.blocked_pods, *sorted(refusals)), why=why)
        if observed and plan.restarts:
            return CONFLICT_RETRY_SECONDS  # the Jobs have yet to observe it
        answer = EvictionResult(blocked=plan.blocked_pods, why=plan.blocked_message) if plan.done else RECHECK_SECONDS
        self._remember(mark, plan, answer)
        return answer

    async def resume_owners(self, label: str, generation: int, namespace: str | None = None) -> None:
        """Resumes the Jobs and JobSets that this eviction, or an earlier one of the group, has suspended.

        For after the record is closed: then our gates hold their new pods. Namespace None: all.
        """
        await self.resume_owners_where(lambda mark: mark[0] == label and mark[1] <= generation, namespace)

    async def resume_owners_where(self, ours: Callable[[tuple[str, int]], bool], namespace: str | None = None) -> None:
        """The same for every owner with such a mark (label, generation)."""
        marked = await marked_owners(self._client, namespace)
        await self._all(resume_owner(self._client, it) for it in marked if ours(eviction.parse_mark(it.mark)))

    # --- Details ---------------------------------------------------------------------------------------------------

    def _is_unchanged(self, last: _LastPlan, members: Iterable[MemberPod], record: AdmissionRecord) -> bool:
        if monotonic() >= last.at + RECHECK_SECONDS:
            return False
        generations = eviction.generations_by_label(record)
        evictable = {it.name for it in members if eviction.is_evictable(it, generations)}
        if isinstance(last.answer, EvictionResult):
            return evictable == last.blocked_pods
        return last.all_gone or not evictable <= last.blocked_pods

    def _remember(self, mark: str, plan: EvictionPlan, answer: float | EvictionResult) -> None:
        now = monotonic()
        self._last = {key: it for key, it in self._last.items() if now - it.at < FORGET_SECONDS}
        blocked = frozenset(plan.blocked_pods)
        self._last[mark] = _LastPlan(at=now, blocked_pods=blocked, answer=answer, all_gone=plan.all_gone)

    async def _plan(
        self, members: Iterable[MemberPod], record: AdmissionRecord
    ) -> tuple[EvictionPlan, Mapping[str, str]]:
        """The plan, and the resourceVersion of each pod by UID: a pod that has ended since stays with its Job."""
        generations = eviction.generations_by_label(record)
        pods: list[MemberPod] = []
        versions: dict[str, str] = {}
        namespaces = sorted({key.namespace for key, _ in record.gangs})
        selector = f"{names.POD_GROUP_LABEL} in ({','.join(sorted(generations))})"
        for namespace in namespaces:
            scope = ListScope(PODS, namespace, selector)
            async with aclosing(list_objects(self._client, scope, wire.GroupPod)) as listed:
                async for it in listed:
                    pods.append(decode.decode_member(it))
                    versions[it.metadata.uid] = it.metadata.resource_version
        unlabelled = frozenset(it.uid for it in members if not it.group_label)
        owners = await OwnerReader(self._client, generations, unlabelled).owners_of(pods)
        plan = eviction.plan_eviction(pods, generations, owners)
        if plan.all_gone:
            marked = [it for where in namespaces for it in await marked_owners(self._client, where)]
            plan = eviction.plan_eviction(pods, generations, owners, marked)
        return plan, versions

    async def _act(self, plan: EvictionPlan, versions: Mapping[str, str], refusals: Refusals, *, restart: bool) -> bool:
        """All steps in their order. False: an object has changed since it was read, so all has to be planned again."""
        client, collect = self._client, partial(_collect, refusals)
        marks = (collect(_name(it.target), mark_owner(client, it)) for it in plan.marks)
        if not await self._all(marks) or refusals:
            return bool(refusals)  # an owner without a mark would never be suspended
        detaches = (collect(_pod(it.pod), detach_pod(client, it, versions[it.pod.uid])) for it in plan.detaches)
        if not await self._all(detaches):
            return False
        suspends = (*plan.suspends, *(plan.restarts if restart else ()))
        if not await self._all(collect(_name(it.target), suspend_owner(client, it)) for it in suspends):
            return False
        await self._all(collect(_name(it), resume_owner(client, it)) for it in plan.resumes)
        now = self._wall()
        disrupts = (collect(_pod(it), set_disruption_target(client, it, now)) for it in plan.disrupts)
        unchanged = await self._all(disrupts)
        # A pod that could not be detached, or marked as disrupted, would count as failed.
        deletes = [it for it in plan.deletes if _pod(it) not in refusals]
        return await self._all(collect(_pod(it), delete_pod(client, it)) for it in deletes) and unchanged

    async def _all(self, writes: Iterable[Awaitable[bool]]) -> bool:
        """All writes, some at a time; the first error is raised when the last one is done."""

        async def one(write: Awaitable[bool]) -> bool:
            async with self._slots:
                return await write

        done = await asyncio.gather(*(one(it) for it in writes), return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException):
                raise error
        return all(done)


class ResumeSweeper:
    """Resumes owners whose eviction no record shows any more, when this process is elected and now and then."""

    def __init__(self, groups: PodGroupCache, evictor: Evictor, namespace: str | None) -> None:
        self._groups, self._evictor, self._namespace = groups, evictor, namespace

    async def run(self) -> None:
        """Until cancelled, or until this process no longer leads (NotLeader)."""
        while True:
            evicted = cache(self._evicted)  # read once, after the marked owners were listed
            try:
                await self._evictor.resume_owners_where(lambda mark: mark not in evicted(), self._namespace)  # noqa: B023 - awaited here
            except RequestFailed as error:
                _log.warning("owners not resumed", error=str(error))
                await asyncio.sleep(SWEEP_RETRY_SECONDS)
            else:
                await asyncio.sleep(SWEEP_SECONDS)

    def _evicted(self) -> set[tuple[str, int]]:
        """Labels and generations of the groups that are being evicted."""
        seen = (it for key in list(self._groups.keys()) if (it := self._groups.snapshot(key)) is not None)
        return {
            (it.label, it.record.generation)
            for it in seen
            if it.record is not None and it.record.stage is AdmissionState.ROLLING_BACK
        }


async def _collect(refusals: Refusals, about: str, write: Awaitable[bool]) -> bool:
    """The result of the write; True where it was refused, since reading again would not help."""
    try:
        return await write
    except (BadRequest, Forbidden, Invalid) as refused:
        if is_namespace_terminating(refused):
            raise
        refusals[about] = truncate(terminal_text.line(refused.message), MAX_REFUSAL_BYTES)
        return True


def _why_refused(refusals: Refusals) -> str:
    """The first few: a thousand pods that may not be changed mostly have one reason."""
    listed = [f"{it} may not be changed: {refusals[it]}" for it in sorted(refusals)[:MAX_REFUSALS_LISTED]]
    more = len(refusals) - MAX_REFUSALS_LISTED
    return "; ".join([*listed, *([f"and {more} more"] if more > 0 else [])])


def _pod(pod: MemberPod) -> str:
    return f"Pod {pod.name}"


def _name(target: SuspendTarget) -> str:
    return f"{target.kind} {target.name}"


_KINDS: Final[Mapping[str, Resource]] = {JOB: JOBS, JOBSET: JOBSETS}
RESUME_INTERVAL: Final = 1.0
"""Seconds between two attempts to resume an owner that a webhook refuses to resume."""
_MESSAGE: Final = "Its group is taken back, since too few of its pods could be placed in time"


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
