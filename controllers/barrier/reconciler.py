"""The reconciler of gangs: observe, decide, act."""

import asyncio
from collections.abc import Callable, Iterator

import msgspec
import structlog

from controllers.barrier.cache import GangCache
from controllers.barrier.gang_key import GangKey
from controllers.barrier.live_reader import LiveReader
from controllers.barrier.metrics import GangMetrics
from controllers.barrier.quota_denials import QuotaDenials
from controllers.barrier.status import GangStatusWriter
from controllers.barrier.stream.registry import WaiterRegistry
from controllers.barrier.verdict_patcher import VerdictPatcher
from controllers.barrier.verdict_store import ConfigMapConflict, VerdictStore
from jobset_gate import names
from jobset_gate.barrier import count
from jobset_gate.barrier.decide import decide, is_plausible_clock
from jobset_gate.barrier.integrity import needs_verification
from jobset_gate.barrier.model import (
    BarrierStage,
    Blocked,
    Decide,
    Decision,
    Enforce,
    GangSnapshot,
    Generation,
    Ignore,
    PodSeen,
    Verdict,
    Wait,
)
from jobset_gate.kube.errors import Forbidden, is_namespace_terminating
from jobset_gate.runtime.workqueue import Requeue

_log = structlog.get_logger(__name__)

REQUEUE = 0.0
"""Come back at once."""

MAX_POD_WATCH_SILENCE = 10.0
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
        cache: GangCache,
        verdict_store: VerdictStore,
        waiters: WaiterRegistry,
        patcher: VerdictPatcher,
        status: GangStatusWriter,
        live_reader: LiveReader,
        metrics: GangMetrics,
        now: Callable[[], float],
        pod_watch_silence: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`silent`: seconds since the watch of pods has last shown any sign of life."""
        self._pod_watch_silence = pod_watch_silence
        self._cache, self._verdict_store = cache, verdict_store
        self._waiters, self._patcher = waiters, patcher
        self._status, self._live_reader, self._metrics = status, live_reader, metrics
        self._quota_denials = QuotaDenials(live_reader)
        self._now = now

    async def reconcile(self, key: GangKey) -> float | None:
        """Looks at a gang once. Returns the seconds after which to look again without being asked, if any."""
        seen = self._cache.snapshot(key)
        self._waiters.drop_stale_requests(key)
        if seen is None:
            self._forget_gang(key)
            return None
        if seen.config_map_conflict:
            seen = await self._recheck_config_map_conflict(key, seen)
        if needs_verification(seen):
            seen = self._with_cached(key, await self._live_reader.verify_config_map(seen))
            self._cache.remember_verdict(key, seen.remembered)
        seen = self._quota_denials.with_denials(seen)
        decision = decide(seen, self._now())
        if isinstance(decision, Decide | Wait | Enforce) and not _is_config_map_canonical(seen):
            # Somebody may have taken away the ConfigMap with a verdict in it, of which this view does not know yet. Or
            # it went with its JobSet.
            seen = self._with_cached(key, await self._live_reader.refresh_condition(seen))
            decision = decide(seen, self._now())
        looked = isinstance(decision, Decide) and self._needs_refresh(decision)
        if isinstance(decision, Decide) and looked:
            # The verdict of a timeout is the last thing that names the missing: worth asking for reasons as well.
            live = await self._live_reader.refresh(seen, reasons=decision.verdict.cause == names.REASON_TIMED_OUT)
            seen = msgspec.structs.replace(self._with_cached(key, live), jobs=live.jobs, pods=live.pods)
            decision = decide(seen, self._now())
        try:
            again = await self._act(key, seen, decision)
        except ConfigMapConflict:
            return REQUEUE
        except Forbidden as refused:
            if is_namespace_terminating(refused):
                return None  # the namespace goes, and its gangs with it (A10)
            raise
        if looked and isinstance(decision, Wait):
            # The watch shows another gang than there is, so nothing of it may come to wake this one.
            return MAX_POD_WATCH_SILENCE if again is None else min(MAX_POD_WATCH_SILENCE, again)
        return again

    def _needs_refresh(self, decision: Decide) -> bool:
        """Whether what the watches show is too little to decide on."""
        cause = decision.verdict.cause
        if cause == names.REASON_TIMED_OUT:
            return True
        return cause == names.REASON_STARTED and self._pod_watch_silence() > MAX_POD_WATCH_SILENCE

    def _with_cached(self, key: GangKey, asked: GangSnapshot) -> GangSnapshot:
        """JobSet, Jobs and pods as they are known after the API was asked, which may have taken long.

        The ConfigMap stays as it was: the write of another one is refused. Raises LookAgain without the JobSet.
        """
        now = self._cache.peek(key)
        if now is None or now.jobset.uid != asked.jobset.uid:
            raise Requeue(f"the JobSet {key} went while the API was asked about it")
        jobset = msgspec.structs.replace(now.jobset, condition=asked.jobset.condition)
        return msgspec.structs.replace(asked, jobset=jobset, jobs=now.jobs, pods=now.pods, announced=now.announced)

    async def _act(self, key: GangKey, seen: GangSnapshot, decision: Decision) -> float | None:
        self._cache.set_missing_count(key, decision.missing_count if isinstance(decision, Wait) else 0)
        match decision:
            case Ignore():
                self._quiesce(key)
                return None
            case Blocked():
                self._metrics.on_blocked(key, decision)
                self._status.set_desired(seen.jobset, decision.condition)
                return decision.requeue_after
            case Wait():
                return await self._wait(key, seen, decision)
            case Decide():
                return await self._decide(key, seen, decision)
            case Enforce():
                return await self._enforce(key, seen, decision, fresh=False)

    async def _wait(self, key: GangKey, seen: GangSnapshot, decision: Wait) -> float | None:
        kept = seen.config_map if seen.config_map and seen.config_map.jobset_uid == seen.jobset.uid else None
        clock = decision.clock or (kept.waiting_since if kept else None)
        if clock is not None and not is_plausible_clock(clock, seen.jobset, self._now()):
            clock = None
        # A verdict on an older generation stays: it binds nobody younger, and a pod of its own may still read it.
        await self._verdict_store.ensure_config_map(seen, decision.verdict, clock)
        if seen.jobset.suspended:
            self._metrics.clear_gang(key)
        else:
            self._metrics.on_waiting(key, seen, decision)
        self._status.set_desired(seen.jobset, decision.condition)
        listen = await self._quota_denials.poll_denials(key, decision.missing)
        return min((it for it in (decision.requeue_after, listen) if it is not None), default=None)

    async def _decide(self, key: GangKey, seen: GangSnapshot, decision: Decide) -> float | None:
        await self._verdict_store.ensure_config_map(seen, decision.verdict, decision.clock)
        now = self._now()
        await self._waiters.answer_requests(key, decision.verdict)
        self._metrics.on_decided(key, seen, decision, now)
        verdict = decision.verdict
        _log.info("decided", verdict=verdict.kind.value, cause=verdict.cause, why=verdict.message)
        await asyncio.sleep(0)  # each of these goes over all pods: between them others get their turn
        stand = Enforce(verdict=decision.verdict, clock=decision.clock, condition=decision.condition)
        return await self._enforce(key, seen, stand, fresh=True)

    async def _enforce(self, key: GangKey, seen: GangSnapshot, decision: Enforce, *, fresh: bool) -> float | None:
        """The verdict is taken: keep it, spread it, and only then speak of it (A6.3)."""
        if not fresh:
            await self._verdict_store.ensure_config_map(seen, decision.verdict, decision.clock)
            await self._waiters.answer_requests(key, decision.verdict)
        self._quota_denials.forget_gang(key)
        straggling = self._patcher.set_waiting_pods(
            key, _waiting_pods(seen, decision.verdict), decision.verdict, fresh=fresh
        )
        generation = decision.verdict.generation
        self._status.set_desired(seen.jobset, decision.condition, f"{generation.attempt}.{generation.epoch}")
        await asyncio.sleep(0)
        self._metrics.on_enforced(key, seen, decision.verdict)
        return straggling

    async def _recheck_config_map_conflict(self, key: GangKey, seen: GangSnapshot) -> GangSnapshot:
        """Nothing tells us when somebody else's ConfigMap goes: look whether it is still in the way."""
        try:
            gate = await self._verdict_store.get_config_map(key)
        except ConfigMapConflict:
            return seen
        return self._with_cached(key, msgspec.structs.replace(seen, config_map=gate, config_map_conflict=False))

    def _quiesce(self, key: GangKey) -> None:
        self._patcher.forget_gang(key)
        self._quota_denials.forget_gang(key)
        self._status.quiesce(key)
        self._metrics.forget_gang(key)

    def _forget_gang(self, key: GangKey) -> None:
        self._quiesce(key)
        self._status.forget_gang(key)


def _is_config_map_canonical(seen: GangSnapshot) -> bool:
    """Whether its ConfigMap is there, and is as one of us has written it."""
    return seen.config_map is not None and seen.config_map.canonical and seen.config_map.jobset_uid == seen.jobset.uid


def _waiting_pods(seen: GangSnapshot, verdict: Verdict) -> Iterator[PodSeen]:
    """The pods that wait in their barrier and are bound by this verdict."""
    uid, attempt = seen.jobset.uid, seen.jobset.attempt
    return (
        pod
        for pod in count.gang_pods(seen)
        if pod.alive
        and pod.stage is BarrierStage.RUNNING
        and verdict.generation.covers(Generation(uid, attempt, pod.epoch))
    )
