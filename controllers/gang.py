"""The reconciler of gangs: observe, decide, act."""

import asyncio
from collections.abc import Callable, Iterator

import msgspec
import structlog

from controllers.announcements import Announcements
from controllers.closer import Closer
from controllers.gates import ForeignGate, Gates, LookAgain
from controllers.hearing import Hearing
from controllers.heralds import Heralds
from controllers.index import Index
from controllers.keys import Key
from controllers.measures import Measures
from controllers.patches import Patches
from controllers.refusals import terminating
from jobset_gate import count, names
from jobset_gate.decide import can_have_begun, decide
from jobset_gate.doubts import doubtful
from jobset_gate.kube.errors import Forbidden
from jobset_gate.model import (
    Decide,
    Decision,
    GangSeen,
    Generation,
    PodSeen,
    Quiet,
    Report,
    Stage,
    Stand,
    Verdict,
    Wait,
)

_log = structlog.get_logger(__name__)

NOW = 0.0
"""Come back at once."""

SILENT = 10.0
"""Seconds without a sign of life from the watch of pods, after which a release needs a look at the API.

A pod's last start mostly comes through that watch, so this costs nothing. It is for a start that is announced on the
gate stream while the watch is half open, and would count pods that are gone. From the binding of a pod to its barrier,
with something of each step in the watch, mostly fewer seconds pass than these; a look costs a list of the gang's pods.
"""


class GangReconciler:
    """One pass over one gang. Safe to be interrupted between any two of its writes."""

    def __init__(
        self,
        *,
        index: Index,
        gates: Gates,
        announcements: Announcements,
        patches: Patches,
        heralds: Heralds,
        closer: Closer,
        measures: Measures,
        now: Callable[[], float],
        silent: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`silent`: seconds since the watch of pods has last shown any sign of life."""
        self._silent = silent
        self._index, self._gates = index, gates
        self._announcements, self._patches = announcements, patches
        self._heralds, self._closer, self._measures = heralds, closer, measures
        self._hearing = Hearing(closer)
        self._now = now

    async def reconcile(self, key: Key) -> float | None:
        """Looks at a gang once. Returns the seconds after which to look again without being asked, if any."""
        seen = self._index.observe(key)
        self._announcements.clear(key)
        if seen is None:
            self._forget(key)
            return None
        if seen.foreign_gate:
            seen = await self._look_past_foreign_gate(key, seen)
        if doubtful(seen):
            seen = self._by_now(key, await self._closer.settle(seen))
            self._index.remember(key, seen.remembered)
        seen = self._hearing.known(seen)
        decision = decide(seen, self._now())
        if isinstance(decision, Decide | Wait | Stand) and not _in_order(seen):
            # Somebody may have taken away the ConfigMap with a verdict in it, of which this view does not know yet. Or
            # it went with its JobSet.
            seen = self._by_now(key, await self._closer.recall(seen))
            decision = decide(seen, self._now())
        looked = isinstance(decision, Decide) and self._is_doubtful(decision)
        if isinstance(decision, Decide) and looked:
            # The verdict of a timeout is the last thing that names the missing: worth asking for reasons as well.
            live = await self._closer.look(seen, reasons=decision.verdict.cause == names.REASON_TIMED_OUT)
            seen = msgspec.structs.replace(self._by_now(key, live), jobs=live.jobs, pods=live.pods)
            decision = decide(seen, self._now())
        try:
            again = await self._act(key, seen, decision)
        except ForeignGate:
            return NOW
        except Forbidden as refused:
            if terminating(refused):
                return None  # the namespace goes, and its gangs with it (A10)
            raise
        if looked and isinstance(decision, Wait):
            # The watch shows another gang than there is, so nothing of it may come to wake this one.
            return SILENT if again is None else min(SILENT, again)
        return again

    def _is_doubtful(self, decision: Decide) -> bool:
        """Whether what the watches show is too little to decide on."""
        cause = decision.verdict.cause
        if cause == names.REASON_TIMED_OUT:
            return True
        return cause == names.REASON_STARTED and self._silent() > SILENT

    def _by_now(self, key: Key, asked: GangSeen) -> GangSeen:
        """JobSet, Jobs and pods as they are known after the API was asked, which may have taken long.

        The ConfigMap stays as it was: the write of another one is refused. Raises LookAgain without the JobSet.
        """
        now = self._index.look(key)
        if now is None or now.jobset.uid != asked.jobset.uid:
            raise LookAgain(f"the JobSet {key} went while the API was asked about it")
        jobset = msgspec.structs.replace(now.jobset, condition=asked.jobset.condition)
        return msgspec.structs.replace(asked, jobset=jobset, jobs=now.jobs, pods=now.pods, announced=now.announced)

    async def _act(self, key: Key, seen: GangSeen, decision: Decision) -> float | None:
        self._index.lacks(key, decision.lacking if isinstance(decision, Wait) else 0)
        match decision:
            case Quiet():
                self._rest(key)
                return None
            case Report():
                self._measures.blocked(key, decision)
                self._heralds.want(seen.jobset, decision.condition)
                return decision.again
            case Wait():
                return await self._wait(key, seen, decision)
            case Decide():
                return await self._decide(key, seen, decision)
            case Stand():
                return await self._stand(key, seen, decision, fresh=False)

    async def _wait(self, key: Key, seen: GangSeen, decision: Wait) -> float | None:
        kept = seen.gate if seen.gate and seen.gate.jobset_uid == seen.jobset.uid else None
        clock = decision.clock or (kept.waiting_since if kept else None)
        if clock is not None and not can_have_begun(clock, seen.jobset, self._now()):
            clock = None
        # A verdict on an older generation stays: it binds nobody younger, and a pod of its own may still read it.
        await self._gates.keep(seen, decision.verdict, clock)
        if seen.jobset.suspended:
            self._measures.nothing_held(key)
        else:
            self._measures.waits(key, seen, decision)
        self._heralds.want(seen.jobset, decision.condition)
        listen = await self._hearing.listen(key, decision.lacks)
        return min((it for it in (decision.again, listen) if it is not None), default=None)

    async def _decide(self, key: Key, seen: GangSeen, decision: Decide) -> float | None:
        await self._gates.keep(seen, decision.verdict, decision.clock)
        now = self._now()
        await self._announcements.tell(key, decision.verdict)
        self._measures.decided(key, seen, decision, now)
        verdict = decision.verdict
        _log.info("decided", verdict=verdict.kind.value, cause=verdict.cause, why=verdict.message)
        await asyncio.sleep(0)  # each of these goes over all pods: between them others get their turn
        stand = Stand(verdict=decision.verdict, clock=decision.clock, condition=decision.condition)
        return await self._stand(key, seen, stand, fresh=True)

    async def _stand(self, key: Key, seen: GangSeen, decision: Stand, *, fresh: bool) -> float | None:
        """The verdict is taken: keep it, spread it, and only then speak of it (A6.3)."""
        if not fresh:
            await self._gates.keep(seen, decision.verdict, decision.clock)
            await self._announcements.tell(key, decision.verdict)
        self._hearing.forget(key)
        straggling = self._patches.want(key, _held(seen, decision.verdict), decision.verdict, fresh=fresh)
        generation = decision.verdict.generation
        self._heralds.want(seen.jobset, decision.condition, f"{generation.attempt}.{generation.epoch}")
        await asyncio.sleep(0)
        self._measures.stands(key, seen, decision.verdict)
        return straggling

    async def _look_past_foreign_gate(self, key: Key, seen: GangSeen) -> GangSeen:
        """Nothing tells us when somebody else's ConfigMap goes: look whether it is still in the way."""
        try:
            gate = await self._gates.look(key)
        except ForeignGate:
            return seen
        return self._by_now(key, msgspec.structs.replace(seen, gate=gate, foreign_gate=False))

    def _rest(self, key: Key) -> None:
        self._patches.forget(key)
        self._hearing.forget(key)
        self._heralds.rest(key)
        self._measures.forget(key)

    def _forget(self, key: Key) -> None:
        self._rest(key)
        self._heralds.forget(key)


def _in_order(seen: GangSeen) -> bool:
    """Whether its ConfigMap is there, and is as one of us has written it."""
    return seen.gate is not None and seen.gate.tidy and seen.gate.jobset_uid == seen.jobset.uid


def _held(seen: GangSeen, verdict: Verdict) -> Iterator[PodSeen]:
    """The pods that wait in their barrier and are bound by this verdict."""
    uid, attempt = seen.jobset.uid, seen.jobset.attempt
    return (
        pod
        for pod in count.members(seen)
        if pod.alive and pod.stage is Stage.RUNNING and verdict.generation.covers(Generation(uid, attempt, pod.epoch))
    )
