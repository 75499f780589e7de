"""One LeaderWorkerSet with all its groups: read, explained as a whole, and how far it has come (K7)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from jobset_gate.barrier.missing import commands
from jobset_gate.barrier.model import MissingByReason
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.gangs import FetchedGang, GangSource
from jobset_gate.cli.fetch.outcome import WaitGoal, WaitOutcome, gang_outcome
from jobset_gate.cli.fetch.source import NamespaceReader, ObjectNotFound
from jobset_gate.explain.model import Explanation, GangState, ReplicatedJobCount
from jobset_gate.kube.resources import LEADER_WORKER_SETS, Resource
from jobset_gate.sources.lws import LeaderWorkerSetSeen, group_index
from jobset_gate.sources.table import LWS

MOST_NAMED: Final = 10
"""LwsGroups that are named."""


class LeaderWorkerSetSource(GangSource):
    """All groups of the LeaderWorkerSet `name`."""

    def __init__(self, reader: NamespaceReader, name: str) -> None:
        self._key = reader.namespace, name
        super().__init__(reader.client, reader.namespace, reader.permissions, of=(LWS,))
        self._lws, self._lws_pods_labels = name, f"{LWS.pods_label}={name}"

    @property
    def is_ungated(self) -> bool:
        """It is there and asks for no gate, and no group has one from before."""
        return not self._lws_pods and self._leader_worker_sets.get(self._key) == (None,)

    def groups(self) -> "LwsGroups":
        """What there is of it; no parent if it is gone, has no config, or may not be read."""
        found = {group_index(it.gang.workload.key): it for it in self.gangs()}
        (parent,) = self._leader_worker_sets.get(self._key, (None,))
        return LwsGroups(*self._key, parent, {number: it for number, it in found.items() if number >= 0})

    def check_found(self) -> None:
        """Raises ObjectNotFound, and CommandError where it may not be read and no group is seen."""
        if self._lws_pods or self._leader_worker_sets:
            return
        namespace, name = self._key
        if LEADER_WORKER_SETS in self._forbidden:
            self._add_missing_of_lws()
            raise CommandError(f"{LWS.kind} {name} in namespace {namespace} has no gated pod that can be seen")
        raise ObjectNotFound(f"{LWS.kind} {name} not found in namespace {namespace}")


async def fetch_groups(
    reader: NamespaceReader, name: str, known: Mapping[Resource, Sequence[Any]] | None = None
) -> "LwsGroups":
    """Those of a LeaderWorkerSet with a gate. Raises ObjectNotFound, and CommandError if it asks for none."""
    source = LeaderWorkerSetSource(reader, name)
    await source.load(known)
    source.check_found()
    if source.is_ungated:
        raise CommandError(
            f"{LWS.kind} {name} in namespace {reader.namespace} asks for no start barrier: it has no gate"
        )
    return source.groups()


@dataclass(frozen=True, slots=True)
class LwsGroups:
    """The groups of a LeaderWorkerSet by their numbers. `parent` None: it is gone, or may not be read."""

    namespace: str
    name: str
    parent: LeaderWorkerSetSeen | None
    gangs: Mapping[int, FetchedGang]

    @property
    def wanted(self) -> Sequence[int]:
        """Those below spec.replicas, which the condition counts; without the LeaderWorkerSet those that there are."""
        return sorted(self.gangs) if self.parent is None else range(self.parent.replicas)

    def _wanted_of(self, numbers: Iterable[int]) -> list[int]:
        """Of these."""
        wanted = self.wanted
        return sorted(number for number in numbers if number in wanted)

    def outcome(self, now: float) -> WaitOutcome:
        """Released when every group that is wanted is: LWS creates a group that has timed out again."""
        if not self.gangs and self.parent is None:
            return WaitOutcome(message="was deleted", final=True)
        found = {number: gang_outcome(self.gangs[number].gang, now) for number in self._wanted_of(self.gangs)}
        open_ = [number for number, it in found.items() if WaitGoal.RELEASED in it.reached]
        late = {number: it for number, it in found.items() if WaitGoal.TIMED_OUT in it.reached}
        ended = next((number for number in late if number not in open_), None)
        if ended is not None:
            reached = frozenset({WaitGoal.TIMED_OUT})
            return WaitOutcome(reached, f"group {ended}: {late[ended].message}", recreated=True)
        if len(open_) < len(self.wanted):
            return WaitOutcome(message=started_groups(len(open_), len(self.wanted)))
        both = {WaitGoal.RELEASED} | ({WaitGoal.TIMED_OUT} if late else set())
        return WaitOutcome(frozenset(both), started_groups(len(open_), len(self.wanted)))

    def explained(self, groups: Mapping[int, Explanation], now: float, *, with_missing: bool = False) -> Explanation:
        """As a whole. `groups`: their explanations; `with_missing`: what they lack, too."""
        wanted = self.wanted
        there = {number: groups[number] for number in self._wanted_of(groups)}
        waiting = {number: it for number, it in there.items() if it.state != GangState.RELEASED}
        absent = [number for number in wanted[: len(there) + MOST_NAMED] if number not in there]
        message = started_groups(len(there) - len(waiting), len(wanted))
        if many := len(wanted) - len(there):
            named = ", ".join(map(str, absent[:MOST_NAMED])) + (", ..." if many > MOST_NAMED else "")
            message += f"; without a leader pod: {named}"
        clocks = [it.waiting_since for it in waiting.values() if it.waiting_since is not None]
        states = {it.state for it in waiting.values()} if not many else {GangState.WAITING}
        state = GangState.WAITING if len(states) > 1 else next(iter(states), GangState.RELEASED)
        missing = _missing(waiting) if with_missing else ()
        pods = f"kubectl get pods -n {self.namespace} -l {LWS.pods_label}={self.name}"
        size = max((it.expected for it in there.values()), default=0)
        return Explanation(
            kind=LWS.kind,
            source=LWS.name,
            namespace=self.namespace,
            name=self.name,
            state=state,
            message=message,
            now=now,
            expected=sum(it.expected for it in there.values()) + many * size,
            started=None
            if any(it.started is None for it in there.values())
            else sum(it.started or 0 for it in there.values()),
            passed=sum(it.passed for it in there.values()),
            parts=tuple(
                ReplicatedJobCount(name=str(number), started=it.started or 0, expected=it.expected)
                for number, it in there.items()
            ),
            missing=missing,
            timeout=next((it.timeout for it in waiting.values()), None),
            waiting_since=min(clocks, default=None),
            controller=next((it.controller for it in there.values()), None),
            unknown=next((it.unknown for it in there.values()), ()),
            commands=commands(missing) or (pods,),
        )


def started_groups(started: int, of: int) -> str:
    """In the words of the condition."""
    return f"all {of} groups have started" if started >= of else f"{started} of {of} groups have started"


def _missing(waiting: Mapping[int, Explanation]) -> tuple[MissingByReason, ...]:
    """Of all groups, longest waiting first, with the number of the group at each slot."""
    found = [
        msgspec.structs.replace(one, slots=tuple(f"{number}: {slot}" for slot in one.slots))
        for number, it in waiting.items()
        for one in it.missing
    ]
    return tuple(sorted(found, key=lambda it: (it.oldest_created_at is None, it.oldest_created_at or 0.0)))
