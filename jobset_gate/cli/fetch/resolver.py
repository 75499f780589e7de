"""What the command line names, found in the cluster and explained: a JobSet, the gang of a pod, a pod group."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import GangSnapshot
from jobset_gate.barrier.source import Source
from jobset_gate.cli import settings_file
from jobset_gate.cli.cluster import Invocation
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.controller_status import controller_status
from jobset_gate.cli.fetch.events import GangEvents
from jobset_gate.cli.fetch.gangs import FetchedGang, fetch_gang
from jobset_gate.cli.fetch.leader_worker_set import LeaderWorkerSetSource, LwsGroups
from jobset_gate.cli.fetch.names import SOURCE_OF, find, gated_gang, get_pod, resolve_name
from jobset_gate.cli.fetch.pod_groups import PodGroupSource
from jobset_gate.cli.fetch.source import NamespaceReader, ObjectNotFound
from jobset_gate.cli.options import ResourceArgument, ResourceKind, parse_resource
from jobset_gate.cli.printers import output
from jobset_gate.explain.gang import explain_pod_group, explain_ungated
from jobset_gate.explain.model import ControllerStatus, Explanation
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import STATEFUL_SETS
from jobset_gate.objects.unstructured import as_map, nested
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.settings import Groups
from jobset_gate.sources import startgroup
from jobset_gate.sources.table import LWS


@dataclass(frozen=True, slots=True)
class ExplainedObject:
    """One gang with its explanation, and what that was made from."""

    explanation: Explanation
    gang: FetchedGang | None = None
    """None for a workload without a gate, too."""
    status: GroupStatus | None = None
    groups: LwsGroups | None = None
    """Of a LeaderWorkerSet as a whole; its groups follow."""
    is_part: bool = False
    """One group of a LeaderWorkerSet that was named as a whole."""


@dataclass(slots=True)
class Resolver(NamespaceReader):
    """For one command; what several names need is read once."""

    settings: Groups = field(kw_only=True)
    invocation: Invocation = field(kw_only=True)
    _controller: ControllerStatus | None = None
    _statuses: list[GroupStatus] | None = None

    async def controller(self) -> ControllerStatus:
        if self._controller is None:
            self._controller = await controller_status(self.client, self.client.access.namespace)
        return self._controller

    async def explain_all(self, arguments: Sequence[str], owner: str = "") -> tuple[list[ExplainedObject], ExitCode]:
        """Everything that is named; of several names those that were not found are printed."""
        found: list[ExplainedObject] = []
        code = ExitCode.OK
        for argument in [parse_resource(it, owner) for it in arguments]:
            try:
                rewrite = self.invocation.rewrite_explanation
                found += [replace(it, explanation=rewrite(it.explanation)) for it in await self.explain(argument)]
            except ObjectNotFound as absent:
                if len(arguments) == 1:
                    raise
                output.err(f"error: {absent}")
                code = ExitCode.ERROR
        return found, code

    async def explain(self, argument: ResourceArgument) -> list[ExplainedObject]:
        """Everything of that name. Raises CommandError if there is nothing, or nothing that may be read."""
        argument = await resolve_name(self, argument)
        if argument.kind is ResourceKind.POD:
            return await self._gangs_of_pod(argument.name)
        if argument.kind is ResourceKind.LWS:
            return await self._groups(argument.name)
        return await find(argument, self._gang, self._pod_groups)

    async def statuses(self) -> list[GroupStatus]:
        """Of all pod groups of the namespace."""
        if self._statuses is None:
            controlled = bool((await self.controller()).leads)
            source = PodGroupSource(self.client, self.namespace, self.permissions, self.settings, controlled=controlled)
            await source.load()
            self._statuses = await source.statuses()
        return self._statuses

    async def named_statuses(self, name: str) -> list[GroupStatus]:
        """Of all groups of that name: two designs may have one each. Raises ObjectNotFound if there is none."""
        if found := [it for it in await self.statuses() if it.key.name == name]:
            return found
        raise ObjectNotFound(f"pod group {name} not found in namespace {self.namespace}")

    def not_in_a_gang(self, pod: str) -> CommandError:
        """The error for a pod without our labels."""
        return CommandError(f"pod {pod} in namespace {self.namespace} belongs to no gang: nothing of ours holds it")

    async def _gang(self, source: Source, name: str, pod: str = "") -> list[ExplainedObject]:
        known = self.permissions.missing[:]
        found, controller = await asyncio.gather(fetch_gang(self, source, name), self.controller())
        if found is None:
            return [ExplainedObject(explain_ungated(source, self.namespace, name, time.time()))]
        gang = await _with_capacity(self.client, await GangEvents(self).added(found.gang, time.time()))
        return [self._explained(replace(found, gang=gang), controller, known, pod)]

    def _explained(
        self, found: FetchedGang, controller: ControllerStatus, known: Sequence[str], pod: str = ""
    ) -> ExplainedObject:
        unknown = [it for it in self.permissions.missing if it not in known]
        return ExplainedObject(found.explained(controller, unknown, pod), found)

    async def _groups(self, name: str) -> list[ExplainedObject]:
        """The LeaderWorkerSet as a whole, then each of its groups."""
        known = self.permissions.missing[:]
        source = LeaderWorkerSetSource(self, name)
        _, controller = await asyncio.gather(source.load(), self.controller())
        source.check_found()
        if source.is_ungated:
            return [ExplainedObject(explain_ungated(LWS, self.namespace, name, time.time()))]
        groups, events = source.groups(), GangEvents(self)
        found: dict[int, ExplainedObject] = {}
        for number, it in groups.gangs.items():
            gang = replace(it, gang=await events.added(it.gang, time.time()))
            found[number] = replace(self._explained(gang, controller, known), is_part=True)
        whole = groups.explained({number: it.explanation for number, it in found.items()}, time.time())
        return [ExplainedObject(whole, groups=groups), *found.values()]

    async def _gangs_of_pod(self, name: str) -> list[ExplainedObject]:
        pod = await get_pod(self, name)
        found: list[ExplainedObject] = []
        if names.POD_GROUP_LABEL in as_map(nested(pod, "metadata", "labels")):
            its = [it for it in await self.statuses() if any(one.name == name for one in it.snapshot.members)]
            found += [await self._pod_group(it, name) for it in its]
        if gang := gated_gang(pod):
            found += await self._gang(SOURCE_OF[gang.kind], gang.name, name)
        if not found:
            raise self.not_in_a_gang(name)
        return found

    async def _pod_groups(self, name: str) -> list[ExplainedObject]:
        return [await self._pod_group(it) for it in await self.named_statuses(name)]

    async def _pod_group(self, status: GroupStatus, pod: str = "") -> ExplainedObject:
        explanation = explain_pod_group(
            status, time.time(), controller=await self.controller(), unknown=self.permissions.missing, pod=pod
        )
        return ExplainedObject(explanation, status=status)


async def _with_capacity(client: Client, seen: GangSnapshot) -> GangSnapshot:
    """The gang with why its StatefulSet never has enough pods at once, as far as that may be read."""
    owner = seen.workload.owner
    if owner is None or (owner.api_version, owner.kind) != (STATEFUL_SETS.api_version, STATEFUL_SETS.kind):
        return seen
    try:
        found = await client.get(STATEFUL_SETS, owner.name, seen.workload.namespace, type=wire.StatefulSet)
    except (Forbidden, NotFound):
        return seen
    return msgspec.structs.replace(seen, cannot_gather=startgroup.lacks_capacity(found, seen.workload))


@asynccontextmanager
async def open_resolver(invocation: Invocation, config: Path | None) -> AsyncIterator[Resolver]:
    """With a client, for the options of a command line."""
    settings = settings_file.read_groups(config)
    async with invocation.cluster.connect() as client:
        namespace = invocation.namespace or client.access.namespace
        yield Resolver(client, namespace, settings=settings, invocation=invocation)
