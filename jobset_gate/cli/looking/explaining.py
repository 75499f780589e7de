"""What a person asks about, found in the cluster and explained: a JobSet, a pod's gang, a pod group."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jobset_gate import names
from jobset_gate.cli.exits import Failed
from jobset_gate.cli.looking import gangs, keeper
from jobset_gate.cli.looking.objects import Absent, stored
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.looking.sights import Sight
from jobset_gate.cli.looking.subjects import Named, What
from jobset_gate.explain import explain, not_gated
from jobset_gate.explain_group import explain_group
from jobset_gate.explained import Controller, Explanation
from jobset_gate.groups.report import Report
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.settings import Groups
from jobset_gate.template import dig, mapping


@dataclass(frozen=True, slots=True)
class Found:
    """One gang with its explanation, and where that comes from."""

    explanation: Explanation
    sight: Sight | None = None
    report: Report | None = None


@dataclass(slots=True)
class Asking:
    """One look at the cluster: what several questions need is read once."""

    client: Client
    namespace: str
    settings: Groups
    homes: Sequence[str] = ()
    """Further namespaces in which a controller's Lease may be."""
    rights: Rights = field(default_factory=Rights)
    _controller: Controller | None = None
    _reports: list[Report] | None = None

    async def about(self, wanted: Named) -> list[Found]:
        """Everything of that name. Raises Failed if there is nothing, or nothing that may be read."""
        match wanted.what:
            case What.JOBSET:
                return [await self._jobset(wanted.name)]
            case What.POD:
                return await self._pod(wanted.name)
            case What.GROUP:
                return await self._groups(wanted.name)
            case _:
                return await self._any(wanted.name)

    async def _any(self, name: str) -> list[Found]:
        """A JobSet, or else a group: JobSets are what most people have."""
        try:
            return [await self._jobset(name)]
        except Absent as absent:
            try:
                return await self._groups(name)
            except Absent:
                raise Absent(f"{absent}, and no pod group of that name either") from absent

    async def _jobset(self, name: str, pod: str = "") -> Found:
        seen = self.rights.missing[:]
        sight, controller = await asyncio.gather(
            gangs.gang(self.client, self.namespace, name, self.rights), self._keeper()
        )
        unknown = [it for it in self.rights.missing if it not in seen]
        now = time.time()
        if sight.seen is None:
            return Found(not_gated(self.namespace, name, now), sight)
        told = explain(
            sight.seen,
            now,
            controller=controller,
            policy=sight.policy,
            unknown=unknown,
            blind=sight.blind,
            pod=pod,
        )
        return Found(told, sight)

    async def _pod(self, name: str) -> list[Found]:
        labels = await self._labels(name)
        found = []
        if names.GANG in labels:
            found += [it for it in await self._all_groups() if any(one.name == name for one in it.seen.members)]
        groups = [await self._group(it, name) for it in found]
        jobset = labels.get(names.JS_NAME, "") if labels.get(names.GATED) == names.GATED_VALUE else ""
        if jobset:
            groups.append(await self._jobset(jobset, name))
        if not groups:
            raise Failed(f"pod {name} in namespace {self.namespace} belongs to no gang: nothing of ours holds it")
        return groups

    async def _labels(self, name: str) -> dict[str, str]:
        pod = await stored(self.client, PODS, self.namespace, name, dict[str, Any])
        return dict(mapping(dig(pod, "metadata", "labels")))

    async def _groups(self, name: str) -> list[Found]:
        found = [it for it in await self._all_groups() if it.key.name == name]
        if not found:
            raise Absent(f"pod group {name} not found in namespace {self.namespace}")
        return [await self._group(it) for it in found]

    async def _group(self, report: Report, pod: str = "") -> Found:
        controller = await self._keeper()
        told = explain_group(report, time.time(), controller=controller, unknown=self.rights.missing, pod=pod)
        return Found(told, report=report)

    async def _all_groups(self) -> list[Report]:
        if self._reports is None:
            # Imported late: whoever asks about a JobSet need not wait for it.
            from jobset_gate.cli.looking.groups import groups  # noqa: PLC0415

            controller = await self._keeper()
            self._reports = await groups(self.client, self.namespace, self.rights, self.settings, controller)
        return self._reports

    async def _keeper(self) -> Controller:
        if self._controller is None:
            self._controller = await keeper.controller(self.client, *self.homes)
        return self._controller
