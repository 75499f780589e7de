"""Takes back all opened members of a group and its GangGroup, without failing whoever made them (G4).

What is to be done is worked out anew each time from what the API says at that moment, so that it can be interrupted
anywhere: see `jobset_gate.podgroups.eviction_plan` for the steps and their order.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from controllers.podgroups import evictor_actions as writes
from controllers.podgroups.owners import OwnerReader
from controllers.podgroups.write_refusals import WriteRefusals
from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups import decode, eviction, eviction_plan, wire
from jobset_gate.podgroups.eviction import EvictionPlan, SuspendOwner, SuspendTarget
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.paging import ListScope, list_objects

CONCURRENCY: Final = 32
"""Writes of one roll-back under way at once."""

RECHECK_SECONDS: Final = 3.0
"""Seconds until those that are on their way are looked at again; the watch tells of most of it before."""

FORGET_SECONDS: Final = 60.0
"""Seconds until a look means nothing any more."""

CONFLICT_RETRY_SECONDS: Final = 0.2
"""Seconds until it is tried again where somebody else has written to the same object."""


class EvictionResult(Value, frozen=True):
    """Nothing that was opened is left, but what cannot be taken back."""

    blocked: tuple[str, ...] = ()
    """Names of those pods, and of what nobody lets us change."""
    why: str = ""


class _LastPlan(Value, frozen=True):
    """The last look at a roll-back."""

    at: float
    stuck: frozenset[str]
    """Names of pods that nobody waits for."""
    answer: float | EvictionResult
    clear: bool = False
    """Nothing was left to be taken back."""


class Evictor:
    """All roll-backs. `client` should refuse to write where this process does not lead."""

    def __init__(
        self,
        client: Client,
        *,
        concurrency: int = CONCURRENCY,
        clock: Callable[[], float] = monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._clock, self._wall = client, clock, wall
        self._places = asyncio.Semaphore(concurrency)
        self._looked: dict[str, _LastPlan] = {}

    async def advance_eviction(self, seen: Sequence[GroupSnapshot], record: AdmissionRecord) -> float | EvictionResult:
        """Does all that can be done now; gives the seconds until to look again, or what has come of it.

        `seen` is only asked whether anything has changed: whoever is taken back is looked up in the API.
        """
        wanted = eviction.generations_by_label(record)
        mark = eviction.eviction_mark(*next(iter(wanted.items())))
        members = [member for group in seen for member in group.members]
        known = self._looked.get(mark)
        if known is not None and self._unchanged(known, members, record):
            return (
                known.answer if isinstance(known.answer, EvictionResult) else known.at + RECHECK_SECONDS - self._clock()
            )
        plan, versions = await self._plan(members, record)
        # Nothing was left the last time either: the Jobs have heard by now of all that was done.
        patient = known is not None and known.clear
        objections = WriteRefusals()
        if not await self._act(plan, versions, objections, patient=patient):
            self._looked.pop(mark, None)
            return CONFLICT_RETRY_SECONDS
        if objections.about:
            self._looked.pop(mark, None)
            why = "; ".join(filter(None, (plan.blocked_message, objections.why)))
            return EvictionResult(blocked=(*plan.blocked_pods, *objections.about), why=why)
        if patient and plan.restarts:
            self._looked.pop(mark, None)
            return CONFLICT_RETRY_SECONDS  # their Jobs are yet to hear of it
        answer = EvictionResult(blocked=plan.blocked_pods, why=plan.blocked_message) if plan.done else RECHECK_SECONDS
        self._remember(mark, plan, answer)
        return answer

    async def resume_owners(self, label: str, generation: int, namespace: str | None = None) -> None:
        """Lets the Jobs and JobSets go on that this roll-back has suspended, or an earlier one of the same group.

        For after the record is closed: then our gates hold their new pods. Without a namespace in all of them.
        """
        await self.resume_owners_where(lambda held, number: held == label and number <= generation, namespace)

    async def resume_owners_where(self, ours: Callable[[str, int], bool], namespace: str | None = None) -> None:
        """The same for every owner whose mark (label, generation) is one of those: such as no record knows any more."""
        found = [
            it for it in await writes.marked_owners(self._client, namespace) if ours(*eviction.parse_mark(it.mark))
        ]
        await self._all(writes.resume_owner(self._client, it) for it in found)

    # --- Details ---------------------------------------------------------------------------------------------------

    def _unchanged(self, known: _LastPlan, members: Iterable[MemberPod], record: AdmissionRecord) -> bool:
        if self._clock() - known.at >= RECHECK_SECONDS:
            return False
        wanted = eviction.generations_by_label(record)
        there = {it.name for it in members if eviction.is_evictable(it, wanted)}
        if isinstance(known.answer, EvictionResult):
            return there == known.stuck
        return known.clear or not there <= known.stuck

    def _remember(self, mark: str, plan: EvictionPlan, answer: float | EvictionResult) -> None:
        now = self._clock()
        self._looked = {key: it for key, it in self._looked.items() if now - it.at < FORGET_SECONDS}
        self._looked[mark] = _LastPlan(at=now, stuck=frozenset(plan.blocked_pods), answer=answer, clear=plan.all_gone)

    async def _plan(
        self, members: Iterable[MemberPod], record: AdmissionRecord
    ) -> tuple[EvictionPlan, Mapping[str, str]]:
        """With the version of each pod, by its UID: a pod that has ended meanwhile must not be taken from its Job."""
        wanted = eviction.generations_by_label(record)
        pods: list[MemberPod] = []
        versions: dict[str, str] = {}
        places = sorted({key.namespace for key, _ in record.gangs})
        chosen = f"{names.POD_GROUP_LABEL} in ({','.join(sorted(wanted))})"
        for namespace in places:
            async with aclosing(list_objects(self._client, ListScope(PODS, namespace, chosen), wire.GroupPod)) as found:
                async for it in found:
                    pods.append(decode.member(it))
                    versions[it.metadata.uid] = it.metadata.resource_version
        ungated = frozenset(it.uid for it in members if not it.group_label)
        made = await OwnerReader(self._client, wanted, ungated).owners_of(pods)
        plan = eviction_plan.plan_eviction(pods, wanted, made)
        if plan.all_gone:
            marked = [it for where in places for it in await writes.marked_owners(self._client, where)]
            plan = eviction_plan.plan_eviction(pods, wanted, made, marked)
        return plan, versions

    async def _act(
        self, plan: EvictionPlan, versions: Mapping[str, str], objections: WriteRefusals, *, patient: bool
    ) -> bool:
        """All steps in their order. False: somebody else wrote to one of the objects, so all must be looked at anew."""
        client, heed = self._client, objections.collect
        if (
            not await self._all(heed(_owner(it), writes.mark_owner(client, it)) for it in plan.marks)
            or objections.about
        ):
            return bool(objections.about)  # what is not noted would never be suspended
        if not await self._all(
            heed(_pod(it.pod), writes.release_pod(client, it, versions[it.pod.uid])) for it in plan.detaches
        ):
            return False
        suspends = (*plan.suspends, *(plan.restarts if patient else ()))
        if not await self._all(heed(_owner(it), writes.suspend_owner(client, it)) for it in suspends):
            return False
        await self._all(heed(_title(it), writes.resume_owner(client, it)) for it in plan.resumes)
        now = self._wall()
        whole = await self._all(heed(_pod(it), writes.set_disruption_target(client, it, now)) for it in plan.disrupts)
        # Whose Job does not forget it, or of whom it may not be said that it is no failure, would count as one.
        deletes = [it for it in plan.deletes if _pod(it) not in objections]
        return await self._all(heed(_pod(it), writes.delete_pod(client, it)) for it in deletes) and whole

    async def _all(self, writings: Iterable[Awaitable[bool]]) -> bool:
        """All of them, a few at a time; the first error is raised when the last is through."""

        async def one(writing: Awaitable[bool]) -> bool:
            async with self._places:
                return await writing

        done = await asyncio.gather(*(one(it) for it in writings), return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException):
                raise error
        return all(done)


def _pod(pod: MemberPod) -> str:
    return f"Pod {pod.name}"


def _owner(step: SuspendOwner) -> str:
    return _title(step.target)


def _title(root: SuspendTarget) -> str:
    return f"{root.kind} {root.name}"
