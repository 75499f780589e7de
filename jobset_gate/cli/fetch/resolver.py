"""What a person asks about, found in the cluster and explained: a JobSet, a pod's gang, a pod group."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jobset_gate import names
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch import jobset_controller, jobsets
from jobset_gate.cli.fetch.join import FetchedJobSet
from jobset_gate.cli.fetch.objects import ObjectNotFound, get_object
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.resource_args import ResourceArgument, ResourceKind
from jobset_gate.explain.gang import explain_gang, explain_ungated
from jobset_gate.explain.model import ControllerStatus, Explanation
from jobset_gate.explain.podgroup import explain_pod_group
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.objects.unstructured import as_map, nested
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.settings import Groups


@dataclass(frozen=True, slots=True)
class ExplainedObject:
    """One gang with its explanation, and where that comes from."""

    explanation: Explanation
    jobset: FetchedJobSet | None = None
    report: GroupStatus | None = None


@dataclass(slots=True)
class Resolver:
    """One look at the cluster: what several questions need is read once."""

    client: Client
    namespace: str
    settings: Groups
    lease_namespaces: Sequence[str] = ()
    """Further namespaces in which a controller's Lease may be."""
    permissions: Permissions = field(default_factory=Permissions)
    _controller: ControllerStatus | None = None
    _reports: list[GroupStatus] | None = None

    async def resolve(self, wanted: ResourceArgument) -> list[ExplainedObject]:
        """Everything of that name. Raises Failed if there is nothing, or nothing that may be read."""
        match wanted.kind:
            case ResourceKind.JOBSET:
                return [await self._jobset(wanted.name)]
            case ResourceKind.POD:
                return await self._pod(wanted.name)
            case ResourceKind.POD_GROUP:
                return await self._groups(wanted.name)
            case _:
                return await self._any_kind(wanted.name)

    async def _any_kind(self, name: str) -> list[ExplainedObject]:
        """A JobSet, or else a group: JobSets are what most people have."""
        try:
            return [await self._jobset(name)]
        except ObjectNotFound as absent:
            try:
                return await self._groups(name)
            except ObjectNotFound:
                raise ObjectNotFound(f"{absent}, and no pod group of that name either") from absent

    async def _jobset(self, name: str, pod: str = "") -> ExplainedObject:
        seen = self.permissions.missing[:]
        sight, controller = await asyncio.gather(
            jobsets.fetch_jobset(self.client, self.namespace, name, self.permissions), self._controller_status()
        )
        unknown = [it for it in self.permissions.missing if it not in seen]
        now = time.time()
        if sight.seen is None:
            return ExplainedObject(explain_ungated(self.namespace, name, now), sight)
        told = explain_gang(
            sight.seen,
            now,
            controller=controller,
            policy=sight.policy,
            unknown=unknown,
            pods_forbidden=sight.blind,
            pod=pod,
        )
        return ExplainedObject(told, sight)

    async def _pod(self, name: str) -> list[ExplainedObject]:
        labels = await self._labels(name)
        found = []
        if names.POD_GROUP_LABEL in labels:
            found += [it for it in await self._all_groups() if any(one.name == name for one in it.snapshot.members)]
        groups = [await self._group(it, name) for it in found]
        jobset = labels.get(names.JS_NAME, "") if labels.get(names.GATED) == names.GATED_VALUE else ""
        if jobset:
            groups.append(await self._jobset(jobset, name))
        if not groups:
            raise CommandError(f"pod {name} in namespace {self.namespace} belongs to no gang: nothing of ours holds it")
        return groups

    async def _labels(self, name: str) -> dict[str, str]:
        pod = await get_object(self.client, PODS, self.namespace, name, dict[str, Any])
        return dict(as_map(nested(pod, "metadata", "labels")))

    async def _groups(self, name: str) -> list[ExplainedObject]:
        found = [it for it in await self._all_groups() if it.key.name == name]
        if not found:
            raise ObjectNotFound(f"pod group {name} not found in namespace {self.namespace}")
        return [await self._group(it) for it in found]

    async def _group(self, report: GroupStatus, pod: str = "") -> ExplainedObject:
        controller = await self._controller_status()
        told = explain_pod_group(report, time.time(), controller=controller, unknown=self.permissions.missing, pod=pod)
        return ExplainedObject(told, report=report)

    async def _all_groups(self) -> list[GroupStatus]:
        if self._reports is None:
            # Imported late: whoever asks about a JobSet need not wait for it.
            from jobset_gate.cli.fetch.pod_group_reports import fetch_pod_group_reports  # noqa: PLC0415

            controller = await self._controller_status()
            self._reports = await fetch_pod_group_reports(
                self.client, self.namespace, self.permissions, self.settings, controller
            )
        return self._reports

    async def _controller_status(self) -> ControllerStatus:
        if self._controller is None:
            self._controller = await jobset_controller.jobset_controller_status(self.client, *self.lease_namespaces)
        return self._controller
