"""Reconciles one gang: snapshot, confirm, decide, act, requeue."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
import structlog

from controllers.barrier.cache import GangCache
from controllers.barrier.creation_problems import CreationProblems
from controllers.barrier.live_reader import LiveReader
from controllers.barrier.metrics import GangMetrics
from controllers.barrier.status import GangStatusWriter
from controllers.barrier.stream.registry import WaiterRegistry
from controllers.barrier.verdict_patcher import VerdictPatcher
from controllers.barrier.verdict_store import ConfigMapConflict, VerdictStore
from jobset_gate import names
from jobset_gate.barrier import count, messages
from jobset_gate.barrier.confirm import MAX_POD_STALENESS, Read, next_read
from jobset_gate.barrier.decide import Facts, decide_on, is_plausible_clock
from jobset_gate.barrier.decision import Blocked, Decide, Decision, Enforce, Ignore, Wait
from jobset_gate.barrier.model import BarrierStage, GangKey, GangSnapshot, Generation, PodSeen, Verdict
from jobset_gate.kube.errors import Forbidden, is_namespace_terminating
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate.sources import startgroup

_log = structlog.get_logger(__name__)


class GangReconciler:
    """Safe to interrupt between any two writes."""

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
    ) -> None:
        self._cache, self._verdict_store = cache, verdict_store
        self._waiters, self._patcher = waiters, patcher
        self._status, self._live_reader, self._metrics = status, live_reader, metrics
        self._creation = CreationProblems(live_reader)
        self._now = now
        self.on_decided: Callable[[GangKey, GangSnapshot, Decide], None] = lambda *_: None
        """Called after this process wrote a verdict."""

    async def reconcile(self, key: GangKey) -> float | None:
        """One pass over one gang. Returns seconds to the next pass, None if only an event causes one."""
        seen = self._cache.snapshot(key)
        self._waiters.drop_stale_requests(key)
        if seen is None:
            self._forget_gang(key)
            return None
        facts, reads = await self._confirm(key, self._creation.with_known(seen))
        decision = decide_on(facts)
        try:
            requeue_after = await self._act(key, facts.seen, decision)
        except ConfigMapConflict:
            return 0.0  # at once, to report it
        except Forbidden as error:
            if is_namespace_terminating(error):
                return None  # the gang is deleted with its namespace (A10)
            raise
        if Read.PODS in reads and isinstance(decision, Wait):
            # The cache differs from the API, so no event may follow that enqueues the gang.
            return min(MAX_POD_STALENESS, MAX_POD_STALENESS if requeue_after is None else requeue_after)
        return requeue_after

    async def _confirm(self, key: GangKey, seen: GangSnapshot) -> tuple[Facts, set[Read]]:
        """The facts after the live reads that the decision on them needs, and which reads those were."""
        facts = Facts(seen, self._now())
        reads: set[Read] = set()
        while (read := next_read(facts, self._live_reader.pod_staleness(seen.workload.source), reads)) is not None:
            reads.add(read)
            facts = Facts(await self._read_live(key, facts, read), self._now())
        return facts, reads

    async def _read_live(self, key: GangKey, facts: Facts, read: Read) -> GangSnapshot:
        seen = facts.seen
        match read:
            case Read.CONFIG_MAP:
                with suppress(ConfigMapConflict):  # the cache holds the conflict
                    await self._verdict_store.get_config_map(key)
                return self._creation.with_known(self._cached(key, seen))
            case Read.WORKLOAD:
                verified = await self._live_reader.verify_config_map(seen)
                if verified.remembered is not seen.remembered:
                    self._cache.remember_verdict(key, verified.remembered)
                return self._with_cached(key, verified)
            case Read.PODS:
                # The message of a timeout names the missing pods, so their Events are worth a read.
                live = await self._live_reader.refresh(seen, reasons=not facts.count.complete)
                return msgspec.structs.replace(self._with_cached(key, live), jobs=live.jobs, pods=live.pods)

    def _with_cached(self, key: GangKey, live: GangSnapshot) -> GangSnapshot:
        """A snapshot after a slow read, with what the cache has learnt of workload, Jobs and pods in the meantime.

        The ConfigMap is not updated: writing another version is a conflict. Raises Requeue if the workload is gone.
        """
        now = self._cached(key, live)
        if live.workload.source.gates_pods:
            # The workload was made from the pods that were read; those of the cache may be of another generation.
            live = msgspec.structs.replace(live, remembered=now.remembered, membership=now.membership)
            live = msgspec.structs.replace(live, announced=now.announced)
            return startgroup.regathered(live) if live.workload.source.keeps_attempt else live
        workload = msgspec.structs.replace(now.workload, condition=live.workload.condition)
        return msgspec.structs.replace(live, workload=workload, jobs=now.jobs, pods=now.pods, announced=now.announced)

    def _cached(self, key: GangKey, seen: GangSnapshot) -> GangSnapshot:
        """What the cache has by now. Raises Requeue if the workload is gone."""
        now = self._cache.peek(key)
        if now is None or now.workload.uid != seen.workload.uid:
            raise Requeue(f"the {seen.workload.source.kind} {key} was deleted during a live read")
        return now

    async def _act(self, key: GangKey, seen: GangSnapshot, decision: Decision) -> float | None:
        self._cache.set_missing_count(key, decision.missing_count if isinstance(decision, Wait) else 0)
        match decision:
            case Ignore():
                self._quiesce(key)
                return None
            case Blocked():
                self._metrics.on_blocked(key, decision)
                if decision.is_decided:
                    self._status.warn(seen.workload, decision.condition.reason, decision.condition.message)
                else:
                    self._status.set_desired(seen.workload, decision.condition)
                return decision.requeue_after
            case Wait():
                return await self._wait(key, seen, decision)
            case Decide():
                return await self._decide(key, seen, decision)
            case Enforce():
                return await self._enforce(key, seen, decision, fresh=False)

    async def _wait(self, key: GangKey, seen: GangSnapshot, decision: Wait) -> float | None:
        clock = decision.clock or (seen.own_config_map.waiting_since if seen.own_config_map else None)
        if clock is not None and not is_plausible_clock(clock, seen.workload, self._now()):
            clock = None
        # A verdict on an older generation stays: it binds no newer pod, and a pod of its own may still read it.
        await self._verdict_store.ensure_config_map(seen, decision.verdict, clock, decision.condition)
        if seen.workload.suspended:
            self._metrics.clear_gang(key)
        else:
            self._metrics.on_waiting(key, seen, decision)
        self._status.set_desired(seen.workload, decision.condition)
        self._warn(key, seen)
        delays = decision.requeue_after, await self._creation.poll(seen, decision.missing)
        return min((it for it in delays if it is not None), default=None)

    def _warn(self, key: GangKey, seen: GangSnapshot) -> None:
        """Events about pods that cannot start together, or not as their author meant (K2, K8)."""
        if differing := messages.differing(seen.workload):
            self._status.warn(seen.workload, names.REASON_PODS_DIFFER, differing)
        for other in self._cache.waiting_namesakes(key):
            self._status.warn(seen.workload, names.REASON_TWO_OWNERS, messages.two_owners(other))
            self._status.warn(other, names.REASON_TWO_OWNERS, messages.two_owners(seen.workload))

    async def _decide(self, key: GangKey, seen: GangSnapshot, decision: Decide) -> float | None:
        await self._verdict_store.ensure_config_map(seen, decision.verdict, decision.clock, decision.condition)
        now = self._now()
        await self._waiters.answer_requests(key, decision.verdict, seen.pods)
        self._metrics.on_decided(key, seen, decision, now)
        self.on_decided(key, seen, decision)
        verdict = decision.verdict
        _log.info("decided", verdict=verdict.kind.value, cause=verdict.cause, why=verdict.message)
        await asyncio.sleep(0)  # each step is linear in the pods: let other tasks run in between
        enforce = Enforce(verdict=decision.verdict, clock=decision.clock, condition=decision.condition)
        return await self._enforce(key, seen, enforce, fresh=True)

    async def _enforce(self, key: GangKey, seen: GangSnapshot, decision: Enforce, *, fresh: bool) -> float | None:
        """Keeps the durable verdict, delivers it, and only then reports it (A6.3)."""
        if not fresh:
            await self._verdict_store.ensure_config_map(seen, decision.verdict, decision.clock, decision.condition)
            await self._waiters.answer_requests(key, decision.verdict, seen.pods)
        self._creation.forget_gang(key)
        requeue_after = self._patcher.set_waiting_pods(
            key, _waiting_pods(seen, decision.verdict), decision.verdict, fresh=fresh
        )
        generation = decision.verdict.generation
        self._status.set_desired(seen.workload, decision.condition, f"{generation.attempt}.{generation.epoch}")
        await asyncio.sleep(0)
        self._metrics.on_enforced(key, seen, decision.verdict)
        return requeue_after

    def _quiesce(self, key: GangKey) -> None:
        self._patcher.forget_gang(key)
        self._creation.forget_gang(key)
        self._status.quiesce(key)
        self._metrics.forget_gang(key)

    def _forget_gang(self, key: GangKey) -> None:
        self._quiesce(key)
        self._status.forget_gang(key)


def _waiting_pods(seen: GangSnapshot, verdict: Verdict) -> Iterator[PodSeen]:
    """The pods that wait in their barrier and are bound by this verdict."""
    uid, attempt, covers = seen.workload.uid, seen.workload.attempt, verdict.generation.covers
    waiting = (pod for pod in count.gang_pods(seen) if pod.alive and pod.stage is BarrierStage.RUNNING)
    return (pod for pod in waiting if covers(Generation(uid, attempt, pod.epoch)))
