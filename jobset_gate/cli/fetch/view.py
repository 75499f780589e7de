"""One gang, watched: how far it has come, and for `watch` what it still lacks."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from jobset_gate.barrier.model import GangSnapshot
from jobset_gate.barrier.source import Source
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.events import GangEvents
from jobset_gate.cli.fetch.gangs import GangSource, argument_of, fetch_gang, kubectl_name
from jobset_gate.cli.fetch.leader_worker_set import LeaderWorkerSetSource, LwsGroups, fetch_groups
from jobset_gate.cli.fetch.names import find, gated_gang, get_pod, resolve_name
from jobset_gate.cli.fetch.outcome import WaitGoal, WaitOutcome, gang_outcome, pod_group_outcome
from jobset_gate.cli.fetch.pod_groups import PodGroupSource
from jobset_gate.cli.fetch.resolver import Resolver
from jobset_gate.cli.fetch.source import NamespaceReader, ObjectNotFound
from jobset_gate.cli.options import ResourceArgument, ResourceKind
from jobset_gate.explain.gang import explain_pod_group
from jobset_gate.explain.model import ControllerStatus, Explanation
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.settings import Groups
from jobset_gate.sources.table import LWS

FIRST_READ_TIMEOUT: Final = 60.0
"""Seconds for the first read, however short the wait may be: who waits 0 seconds wants to know how it is now."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """How the gang is now; `explanation` None: it is gone."""

    explanation: Explanation | None
    outcome: WaitOutcome
    problem: str = ""


async def wait_until(view: "WatchView", holds: Callable[[WaitOutcome], bool], seconds: float) -> WaitOutcome:
    """The first outcome that fits. Raises TimeoutError, and CommandError without the right to watch."""
    async with asyncio.timeout(seconds):
        await view.ready()
        while not holds(now := await view.outcome()):
            await view.change()
    return now


async def find_view(resolver: Resolver, argument: ResourceArgument, *, explains: bool = True) -> "WatchView":
    """What is named, read once. Raises CommandError for what is not there, may not be read, or has no gate.

    `explains` False: only `outcome` is called, so that less has to be read.
    """
    argument = await resolve_name(resolver, argument)
    if argument.kind is ResourceKind.POD:
        argument = await _gang_of_pod(resolver, argument.name)
    controller = await resolver.controller() if explains else None

    async def gang(source: Source, name: str) -> "WatchView":
        return GangView(resolver, await get_gang(resolver, source, name), controller, pods=explains)

    async def pod_group(name: str) -> "WatchView":
        settings = resolver.settings
        if not explains:  # then neither nodes nor what is bound to them have to be watched
            settings = msgspec.structs.replace(settings, capacity_check=CapacityCheck.OFF)
        view = PodGroupView(resolver, name, settings, controller)
        await view.load()
        if await view.status() is None:
            raise ObjectNotFound(f"pod group {name} not found in namespace {resolver.namespace}")
        view.first = await view.outcome()
        return view

    if argument.kind is ResourceKind.LWS:
        return LeaderWorkerSetView(resolver, await fetch_groups(resolver, argument.name), controller)
    return await find(argument, gang, pod_group)


async def _gang_of_pod(resolver: Resolver, name: str) -> ResourceArgument:
    """Its workload if that has a barrier, since the pod's start waits for it; else its pod group."""
    if gang := gated_gang(await get_pod(resolver, name)):
        return gang
    for status in await resolver.statuses():
        if any(it.name == name for it in status.snapshot.members):
            return ResourceArgument(ResourceKind.POD_GROUP, status.key.name)
    raise resolver.not_in_a_gang(name)


# --- A gang with a start barrier ------------------------------------------------------------------------------------


async def get_gang(reader: NamespaceReader, source: Source, name: str) -> GangSnapshot:
    """The workload and its ConfigMap, without pods. Raises CommandError where it is not there or asks for no gate."""
    found = await fetch_gang(reader, source, name, pods=False)
    if found is None:
        why = "asks for no start barrier: it has no gate"
        raise CommandError(f"{source.kind} {name} in namespace {reader.namespace} {why}")
    return found.gang


class GangView(GangSource):
    """This workload, not a later one of its name. Without `pods` only `outcome` says anything."""

    goal = WaitGoal.RELEASED

    def __init__(
        self, reader: NamespaceReader, found: GangSnapshot, controller: ControllerStatus | None = None, *, pods: bool
    ) -> None:
        workload = found.workload
        of, name = (workload.source,), workload.name
        super().__init__(reader.client, reader.namespace, reader.permissions, of=of, name=name, pods=pods)
        self.subject, self.argument = kubectl_name(workload), argument_of(workload)
        self.first = gang_outcome(found, time.time())
        self._uid, self._controller = workload.uid, controller
        self._events = GangEvents(reader)

    async def outcome(self) -> WaitOutcome:
        return self._outcome(self._gang())

    async def state(self) -> ViewState:
        found, gang = self.one(), self._gang()
        its = self._outcome(gang)
        if found is None or gang is None:
            return ViewState(None, its, self.problem)
        if not (its.reached or its.final or found.pods_forbidden):
            gang = await self._events.added(gang, time.time())
        explanation = replace(found, gang=gang).explained(self._controller, self.permissions.missing)
        return ViewState(explanation, its, self.problem)

    def _gang(self) -> GangSnapshot | None:
        found = self.one()
        return found.gang if found and found.gang.workload.uid == self._uid else None

    def _outcome(self, gang: GangSnapshot | None) -> WaitOutcome:
        if gang is not None:
            return gang_outcome(gang, time.time())
        (source,) = self._of
        return WaitOutcome(
            message="has no pod now" if source.gates_pods else "was deleted", final=not source.gates_pods
        )


# --- All groups of a LeaderWorkerSet ----------------------------------------------------------------------------------


class LeaderWorkerSetView(LeaderWorkerSetSource):
    """Released when every group below spec.replicas is."""

    goal = WaitGoal.RELEASED

    def __init__(self, reader: NamespaceReader, found: LwsGroups, controller: ControllerStatus | None) -> None:
        super().__init__(reader, found.name)
        self.subject = self.argument = f"{LWS.resource}/{found.name}"
        self.first = found.outcome(time.time())
        self._controller, self._events = controller, GangEvents(reader)

    async def outcome(self) -> WaitOutcome:
        return self.groups().outcome(time.time())

    async def state(self) -> ViewState:
        groups, now = self.groups(), time.time()
        its = groups.outcome(now)
        if its.final:
            return ViewState(None, its, self.problem)
        found = {}
        for number, it in groups.gangs.items():
            gang = await self._events.added(it.gang, now)
            found[number] = replace(it, gang=gang).explained(self._controller, self.permissions.missing)
        return ViewState(groups.explained(found, now, with_missing=True), its, self.problem)


# --- A pod group -----------------------------------------------------------------------------------------------------


class PodGroupView(PodGroupSource):
    """A group of any format; of several of one name the first, by its flavor."""

    goal = WaitGoal.SATISFIED

    def __init__(self, resolver: Resolver, name: str, settings: Groups, controller: ControllerStatus | None) -> None:
        controlled = bool(controller is not None and controller.leads)
        super().__init__(resolver.client, resolver.namespace, resolver.permissions, settings, controlled=controlled)
        self.subject = self.argument = f"podgroup/{name}"
        self.first = WaitOutcome()
        self._name, self._controller = name, controller

    async def outcome(self) -> WaitOutcome:
        return pod_group_outcome(await self.status())

    async def state(self) -> ViewState:
        status = await self.status()
        its = pod_group_outcome(status)
        if status is None:
            return ViewState(None, its, self.problem)
        unknown = self.permissions.missing
        explanation = explain_pod_group(status, time.time(), controller=self._controller, unknown=unknown)
        return ViewState(explanation, its, self.problem)

    async def status(self) -> GroupStatus | None:
        """None if there is no such group."""
        return next((it for it in await self.statuses() if it.key.name == self._name), None)


WatchView = GangView | LeaderWorkerSetView | PodGroupView
"""`async with` it: one gang. `goal` is what the user hopes for; `subject` and `argument` are what messages, and other
commands of ours, call it; `first` is how far it had come when it was found.

`await outcome()` tells how far it has come, `await state()` the same, explained.
"""
