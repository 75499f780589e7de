"""Reads the owners of a group's pods: how many they can create (G3), which an eviction has to suspend (G4)."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import (
    JOBS,
    JOBSETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from jobset_gate.objects.caches import TTLCache
from jobset_gate.objects.unstructured import Json, as_map
from jobset_gate.podgroups import decode, eviction, wire
from jobset_gate.podgroups import owners as owner_rules
from jobset_gate.podgroups.eviction import JOB, JOBSET, PodProvenance, SuspendTarget
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.owners import OwnerCapacity
from jobset_gate.podgroups.snapshot import ControllerRef, GroupSnapshot, MemberPod
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.paging import ListScope, list_objects

CREATION_GRACE_SECONDS: Final = 30.0
"""After its youngest member, in which the owners of a group are likely still creating pods."""

CACHE_SECONDS: Final = 60.0
"""For which what owners say counts: they may be scaled."""

MAX_CACHED: Final = 10_000
"""Groups."""

MAX_OWNERS: Final = 20
"""A group with more owners is not looked up: it would cost more than the reason is worth."""

_KINDS: Final[Mapping[tuple[str, str], Resource]] = MappingProxyType(
    {(it.api_version, it.kind): it for it in (JOBS, JOBSETS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)}
)


class OwnerCapacities:
    """`known`: of the owners of groups that do not gather. They are read once in CACHE_SECONDS."""

    def __init__(
        self, client: Client, clock: Callable[[], float] = time.time, monotonic: Callable[[], float] = monotonic
    ) -> None:
        """`clock`: Unix time."""
        self.known: dict[PodGroupKey, tuple[OwnerCapacity, ...]] = {}
        self._client, self._clock = client, clock
        self._cached: TTLCache[tuple[PodGroupKey, frozenset[str]], tuple[OwnerCapacity, ...]]
        """By group and UIDs of its owners: the answer of a JobSet depends on the group."""
        self._cached = TTLCache(MAX_CACHED, monotonic)

    async def refresh_group(self, seen: GroupSnapshot) -> float | None:
        """Reads the owners of a group if it is time. Returns the seconds until the next time."""
        key = seen.group.key
        if seen.group.gathered or not seen.members:
            self.forget_group(key)
            return None
        wait = max(it.created for it in seen.members) + CREATION_GRACE_SECONDS - self._clock()
        if wait > 0:
            return wait
        self.known[key] = await self.capacities_of(seen)
        return CACHE_SECONDS

    def forget_group(self, key: PodGroupKey) -> None:
        """Drops the capacities of a group that has gathered or is gone."""
        self.known.pop(key, None)

    async def capacities_of(self, seen: GroupSnapshot) -> tuple[OwnerCapacity, ...]:
        """Of the owners of all existing pods; an owner that has created none yet is not among them."""
        # All Jobs of a JobSet lead to it, and there may be as many of them as pods.
        owners = {it.jobset or it.controller.uid: it.controller for it in seen.members if it.controller is not None}
        if len(owners) > MAX_OWNERS:
            return ()
        key, uids = seen.group.key, {"" if it.controller is None else it.controller.uid for it in seen.members}
        known = self._cached.get((key, frozenset(uids)))
        if known is not None:
            return known[0]
        found = {f"{it.kind} {it.name}": it for name in sorted(owners) for it in await self._read(owners[name], key)}
        if "" in uids:
            found[""] = owner_rules.unknown_owner("Pod", "")  # the user may create more
        self._cached.put((key, frozenset(uids)), tuple(found.values()), CACHE_SECONDS)
        return tuple(found.values())

    async def _read(self, owner: ControllerRef, key: PodGroupKey) -> tuple[OwnerCapacity, ...]:
        unknown = (owner_rules.unknown_owner(owner.kind, owner.name),)
        kind = _KINDS.get((owner.api_version, owner.kind))
        obj = None if kind is None else await self._get(kind, owner.name, key.namespace)
        if obj is None:
            return unknown
        jobset_ref = owner_rules.jobset_of(obj) if kind is JOBS else None
        if jobset_ref is None:
            return owner_rules.read_owner(owner.kind, obj, key)
        jobset = await self._get(JOBSETS, jobset_ref[0], key.namespace)
        return unknown if jobset is None else owner_rules.read_owner("JobSet", jobset, key)

    async def _get(self, kind: Resource, name: str, namespace: str) -> dict[str, Any] | None:
        """None where the object is gone, or may not be read."""
        try:
            return await self._client.get(kind, name, namespace)
        except (NotFound, Forbidden):
            return None


class OwnerReader:
    """The owners to suspend, for one step of an eviction: nothing is cached, since it is written to at once.

    `generations`: labels of the evicted gangs. `unlabelled`: UIDs of their pods that carry no label.
    """

    def __init__(
        self, client: Client, generations: Mapping[str, int], unlabelled: frozenset[str] = frozenset()
    ) -> None:
        self._client, self._generations, self._unlabelled = client, generations, unlabelled
        self._jobsets: dict[tuple[str, str], SuspendTarget | None] = {}
        self._jobs: dict[str, PodProvenance] = {}

    async def owners_of(self, pods: Sequence[MemberPod]) -> dict[str, PodProvenance]:
        """By UID, of pods that Jobs have created; of gated ones only the JobSet."""
        found: dict[str, PodProvenance] = {}
        for pod in pods:
            if pod.controller is None or not eviction.is_job_pod(pod):
                continue
            if not pod.gated:
                found[pod.uid] = await self._job(pod, pod.controller)
            elif pod.jobset:
                found[pod.uid] = PodProvenance(target=await self._jobset(pod.namespace, pod.jobset))
        return found

    async def _job(self, pod: MemberPod, owner: ControllerRef) -> PodProvenance:
        if owner.uid not in self._jobs and pod.jobset:
            await self._list_jobs(pod.namespace, pod.jobset)
        if owner.uid not in self._jobs:
            job = await self._get(JOBS, pod.namespace, owner.name, owner.uid)
            self._jobs[owner.uid] = PodProvenance() if job is None else await self._provenance(pod.namespace, job)
        return self._jobs[owner.uid]

    async def _list_jobs(self, namespace: str, jobset: str) -> None:
        """All Jobs of a JobSet in one list: there may be as many as pods."""
        scope = ListScope(JOBS, namespace, f"{names.JS_NAME}={jobset}")
        async with aclosing(list_objects(self._client, scope, dict[str, Any])) as found:
            async for job in found:
                self._jobs[str(as_map(job.get("metadata")).get("uid"))] = await self._provenance(namespace, job)

    async def _provenance(self, namespace: str, job: Json) -> PodProvenance:
        labels, above = owner_rules.detach_labels(job), owner_rules.jobset_of(job)
        if above is not None:
            return PodProvenance(target=await self._jobset(namespace, *above), labels=labels)
        others = await self._others(namespace, owner_rules.selector(job), JOB, job)
        return PodProvenance(target=owner_rules.read_target(JOB, job, others), labels=labels)

    async def _jobset(self, namespace: str, name: str, uid: str = "") -> SuspendTarget | None:
        if (namespace, name) not in self._jobsets:
            jobset = await self._get(JOBSETS, namespace, name, uid)
            target = None
            if jobset is not None:
                others = await self._others(namespace, f"{names.JS_NAME}={name}", JOBSET, jobset)
                target = owner_rules.read_target(JOBSET, jobset, others)
            self._jobsets[namespace, name] = target
        target = self._jobsets[namespace, name]
        return target if target is None or uid in ("", target.uid) else None

    async def _get(self, kind: Resource, namespace: str, name: str, uid: str) -> Json | None:
        """None if it is gone or recreated."""
        try:
            found = await self._client.get(kind, name, namespace)
        except NotFound:
            return None
        return found if not uid or as_map(found.get("metadata")).get("uid") == uid else None

    async def _others(self, namespace: str, selector: str, kind: str, owner: Json) -> tuple[str, ...]:
        """Names of the owner's living pods that are not evicted."""
        async with aclosing(list_objects(self._client, ListScope(PODS, namespace, selector), wire.GroupPod)) as found:
            pods = [decode.decode_member(it) async for it in found]
        if kind == JOB:
            uid = as_map(owner.get("metadata")).get("uid")
            pods = [it for it in pods if it.controller is not None and it.controller.uid == uid]
        # An unlabelled pod could not be found again once it is detached from its Job.
        unlabelled = frozenset() if owner_rules.can_fail_job(kind, owner) else self._unlabelled
        return tuple(
            it.name
            for it in pods
            if not it.deleting and not it.ended and it.group_label not in self._generations and it.uid not in unlabelled
        )
