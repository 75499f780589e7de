"""Asks the API which Job or JobSet stands behind each pod of a group, when the group is to be taken back (G4).

Nothing is remembered: what is suspended on the strength of it must have been looked at just now.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS, Resource
from jobset_gate.objects.unstructured import Json, as_map
from jobset_gate.podgroups import decode, eviction, eviction_owners, wire
from jobset_gate.podgroups.eviction import JOB, JOBSET, PodProvenance, SuspendTarget
from jobset_gate.podgroups.snapshot import ControllerRef, MemberPod
from jobset_gate.runtime.paging import ListScope, list_objects


class OwnerReader:
    """`wanted`: the labels of the gangs that are taken back. `ungated`: UIDs of their pods that carry no label."""

    def __init__(self, client: Client, wanted: Mapping[str, int], ungated: frozenset[str] = frozenset()) -> None:
        self._client, self._wanted, self._ungated = client, wanted, ungated
        self._jobsets: dict[tuple[str, str], SuspendTarget | None] = {}
        self._jobs: dict[str, PodProvenance] = {}

    async def owners_of(self, pods: Sequence[MemberPod]) -> dict[str, PodProvenance]:
        """By the pod's UID, of those that Jobs have made; of those that our gate still holds only the JobSet."""
        made: dict[str, PodProvenance] = {}
        for pod in pods:
            if pod.controller is None or not eviction.is_job_pod(pod):
                continue
            if not pod.gated:
                made[pod.uid] = await self._job(pod, pod.controller)
            elif pod.jobset:
                made[pod.uid] = PodProvenance(target=await self._jobset(pod.namespace, pod.jobset))
        return made

    async def _job(self, pod: MemberPod, maker: ControllerRef) -> PodProvenance:
        if maker.uid not in self._jobs and pod.jobset:
            await self._siblings(pod.namespace, pod.jobset)
        if maker.uid not in self._jobs:
            job = await self._get(JOBS, pod.namespace, maker.name, maker.uid)
            self._jobs[maker.uid] = PodProvenance() if job is None else await self._made(pod.namespace, job)
        return self._jobs[maker.uid]

    async def _siblings(self, namespace: str, jobset: str) -> None:
        """All Jobs of a JobSet at once: there may be as many as pods."""
        scope = ListScope(JOBS, namespace, f"{names.JS_NAME}={jobset}")
        async with aclosing(list_objects(self._client, scope, dict[str, Any])) as found:
            async for job in found:
                self._jobs[str(as_map(job.get("metadata")).get("uid"))] = await self._made(namespace, job)

    async def _made(self, namespace: str, job: Json) -> PodProvenance:
        by, above = eviction_owners.detach_labels(job), eviction_owners.jobset_of(job)
        if above is not None:
            return PodProvenance(target=await self._jobset(namespace, *above), labels=by)
        others = await self._others(namespace, eviction_owners.selector(job), JOB, job)
        return PodProvenance(target=eviction_owners.read_target(JOB, job, others), labels=by)

    async def _jobset(self, namespace: str, name: str, uid: str = "") -> SuspendTarget | None:
        if (namespace, name) not in self._jobsets:
            jobset = await self._get(JOBSETS, namespace, name, uid)
            root = None
            if jobset is not None:
                others = await self._others(namespace, f"{names.JS_NAME}={name}", JOBSET, jobset)
                root = eviction_owners.read_target(JOBSET, jobset, others)
            self._jobsets[namespace, name] = root
        root = self._jobsets[namespace, name]
        return root if root is None or uid in ("", root.uid) else None

    async def _get(self, kind: Resource, namespace: str, name: str, uid: str) -> Json | None:
        """None if it is gone, or another of that name is there by now."""
        try:
            found = await self._client.get(kind, name, namespace)
        except NotFound:
            return None
        return found if not uid or as_map(found.get("metadata")).get("uid") == uid else None

    async def _others(self, namespace: str, selector: str, kind: str, owner: Json) -> tuple[str, ...]:
        """Its living pods that are not in the group."""
        async with aclosing(list_objects(self._client, ListScope(PODS, namespace, selector), wire.GroupPod)) as found:
            pods = [decode.member(it) async for it in found]
        if kind == JOB:
            uid = as_map(owner.get("metadata")).get("uid")
            pods = [it for it in pods if it.controller is not None and it.controller.uid == uid]
        # One without a label could not be told apart any more once its Job has forgotten it.
        ungated = frozenset() if eviction_owners.can_fail_job(kind, owner) else self._ungated
        return tuple(
            it.name
            for it in pods
            if not it.deleting
            and it.phase not in eviction.FINISHED
            and it.group_label not in self._wanted
            and it.uid not in ungated
        )
