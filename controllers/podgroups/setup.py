"""Constructs the controllers of pod groups: caches, writers, scheduler, reconciler, status."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry

from controllers.podgroups import crds, informers
from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.crds import PodGroupCrdReconciler
from controllers.podgroups.deadline import SchedulingDeadline
from controllers.podgroups.eviction import EvictionReconciler
from controllers.podgroups.evictor import Evictor, ResumeSweeper
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.native import NativePodGroups
from controllers.podgroups.owners import OwnerCapacities, OwnerCapacityReader
from controllers.podgroups.pending import PendingQueue
from controllers.podgroups.predicates import Effect
from controllers.podgroups.reconciler import PodGroupReconciler
from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.scheduler import CONCURRENT_WRITES, InflightAdmissions, PodGroupScheduler, admission_mode
from controllers.podgroups.status import (
    STATUS_WORKERS,
    WRITE_BURST,
    WRITES_PER_SECOND,
    PodGroupEventWriter,
    PodGroupStatusReconciler,
)
from controllers.podgroups.status_writer import PodGroupStatusWriter
from controllers.podgroups.ungater import Ungater
from jobset_gate.barrier.model import JobSetSeen
from jobset_gate.kube.client import Client
from jobset_gate.podgroups import preconditions, quota
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.crds import needed_crds
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import GroupStatus, group_status
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.informer import AnyInformer
from jobset_gate.runtime.metrics import RuntimeMetrics
from jobset_gate.runtime.rate_limiter import RateLimiter
from jobset_gate.runtime.workqueue import LeaderGatedQueue, WorkQueue
from jobset_gate.settings import Groups as GroupSettings
from jobset_gate.settings import Native

Runnable = Callable[[], Coroutine[Any, Any, None]]

WORKERS: Final = 16

REQUEUE_DELAY: Final = {
    Effect.MINIMUM_BOUND: 0.0,
    Effect.CHANGED: 0.1,
    Effect.DETAIL: 0.8,
    Effect.GATHERING: 0.8,
    Effect.PROGRESS: 0.8,
    Effect.RECORDED: 0.8,
}
"""Seconds in which changes of a group are gathered before it is reconciled."""

LAZY: Final = (Effect.GATHERING, Effect.PROGRESS)
"""No admission can follow from these alone."""


@dataclass(frozen=True, slots=True)
class PodGroupDependencies:
    """What the manager provides."""

    client: Client
    writer: Client
    """Checks before each write that this process leads."""
    namespace: str | None
    clock: Callable[[], float]
    """Unix time."""
    registry: CollectorRegistry
    runtime: RuntimeMetrics
    metrics: ControllerMetrics
    jobset: Callable[[str, str], JobSetSeen | None] = lambda _, __: None
    """A gated JobSet by namespace and name."""


@dataclass(frozen=True, slots=True)
class _Base:
    """What all parts share, and what acts on the API server but for status."""

    settings: GroupSettings
    around: PodGroupDependencies
    metrics: PodGroupMetrics
    cache: PodGroupCache
    informers: Sequence[AnyInformer]
    queue: LeaderGatedQueue[PodGroupKey]
    store: RecordStore
    ungater: Ungater
    evictor: Evictor
    capacities: OwnerCapacities
    native: NativePodGroups | None

    @property
    def check(self) -> CapacityCheck:
        """Groups that kube-scheduler places as a whole need no reserved room."""
        return CapacityCheck.OFF if self.native is not None else self.settings.capacity_check


@dataclass(frozen=True, slots=True)
class PodGroupControllers:
    """Informers run on every replica, runnables on the leader only."""

    cache: PodGroupCache
    pending: PendingQueue
    group_informers: Sequence[AnyInformer]
    crd_informers: Sequence[AnyInformer]
    runnables: Sequence[Runnable]
    health_checks: Sequence[Callable[[], str]]

    @property
    def informers(self) -> Sequence[AnyInformer]:
        """What every replica runs."""
        return *self.group_informers, *self.crd_informers

    def not_synced(self) -> str:
        """What is not listed yet and why; "" if nothing is missing."""
        return informers.not_synced(self.group_informers)

    async def wait_for_sync(self) -> None:
        """Returns when the caches are full; a CRD that is not installed is not waited for."""
        await informers.wait_for_sync(self.group_informers)


def max_connections(settings: GroupSettings) -> int:
    """To the API server at once."""
    return settings.gate_concurrency + WORKERS + CONCURRENT_WRITES + STATUS_WORKERS


def setup_pod_groups(
    settings: GroupSettings, dependencies: PodGroupDependencies, *, keep_crds: bool = True
) -> PodGroupControllers:
    """All parts, in the order in which they depend on each other. `keep_crds`: create and update those of PodGroups."""
    queue: WorkQueue[PodGroupKey] = dependencies.runtime.new_queue("group")
    status_queue: WorkQueue[PodGroupKey] = dependencies.runtime.new_queue("group-status")
    crd_queue: WorkQueue[str] = dependencies.runtime.new_queue("podgroup-crd")
    crd_reconciler = PodGroupCrdReconciler(dependencies.writer)
    base = make_base(settings, dependencies, LeaderGatedQueue(queue))
    pending = make_pending(base, crd_reconciler.problems)
    scheduler = make_scheduler(base, pending)
    reconciler, eviction = make_reconciler(base, pending)
    status = make_status(base, pending, eviction)
    base.cache.subscribe(partial(_on_change, base.queue, pending))
    base.metrics.read_held_pods_from(base.cache.count_gated_pods)
    base.metrics.read_waits_from(pending.waiting_since)

    async def reconcile(key: PodGroupKey) -> float | None:
        requeue_after = await reconciler.reconcile(key)
        status_queue.add(key)  # its worker reads the group when its turn has come
        return requeue_after

    groups = Controller("group", queue, reconcile, dependencies.metrics, workers=WORKERS)
    statuses = Controller("group-status", status_queue, status.reconcile, dependencies.metrics, workers=STATUS_WORKERS)
    crd_controller = Controller("podgroup-crd", crd_queue, crd_reconciler.reconcile, dependencies.metrics, workers=1)
    crd_names = needed_crds(settings.ways) if keep_crds else ()

    async def run_scheduler() -> None:
        await base.store.load_records()
        await scheduler.run()

    async def run_groups() -> None:
        base.queue.start(base.cache.keys)
        await groups.run()

    async def run_crds() -> None:
        for name in crd_names:
            crd_queue.add(name)  # an informer does not report that a CRD is missing
        await crd_controller.run()

    client, on_problem = dependencies.client, dependencies.runtime.observe_watch_problem
    sweeper = ResumeSweeper(base.cache, base.evictor, dependencies.namespace)
    native = () if base.native is None else (base.native.run,)
    return PodGroupControllers(
        cache=base.cache,
        pending=pending,
        group_informers=base.informers,
        crd_informers=crds.informers(client, crd_names, crd_queue.add, on_problem),
        runnables=(run_scheduler, base.ungater.run, run_groups, statuses.run, run_crds, sweeper.run, *native),
        health_checks=(groups.health_error, statuses.health_error, crd_controller.health_error),
    )


def make_base(settings: GroupSettings, around: PodGroupDependencies, queue: LeaderGatedQueue[PodGroupKey]) -> _Base:
    """The cache, and what acts on the API server."""
    cache, metrics = PodGroupCache(settings), PodGroupMetrics(around.registry, around.clock)
    found = informers.informers(
        around.client, cache, settings, namespace=around.namespace, on_problem=around.runtime.observe_watch_problem
    )
    mutations, outcomes = informers.record_mutations(found), metrics.count_ungating
    return _Base(
        settings=settings,
        around=around,
        metrics=metrics,
        cache=cache,
        informers=found,
        queue=queue,
        store=RecordStore(around.writer, mutations, cache.set_record_object, around.namespace),
        ungater=Ungater(around.writer, around.clock, concurrency=settings.gate_concurrency, on_outcome=outcomes),
        evictor=Evictor(around.writer, wall=around.clock),
        capacities=OwnerCapacities(OwnerCapacityReader(around.client), around.clock),
        native=NativePodGroups(around.writer) if settings.native is Native.ON else None,
    )


def make_pending(base: _Base, crd_problems: Mapping[str, str]) -> PendingQueue:
    """The queue of pending groups, with all that an evaluation reads."""
    cache, native = base.cache, base.native

    def short_of_quota(seen: GroupSnapshot) -> str:
        return quota.quota_shortage(seen, cache.quotas(seen.group.key.namespace))

    def barred(seen: GroupSnapshot) -> GroupReason | None:
        held = None if native is None else native.why_held(seen)
        return held or preconditions.barrier_hold(seen, base.around.jobset)

    evaluator = GroupEvaluator(
        cache.snapshot,
        cache.groups(),
        across_namespaces=base.settings.across_namespaces,
        owner_capacities=base.capacities.known,
        quota_shortage=short_of_quota,
        other_precondition=barred,
        crd_problems=crd_problems,
    )
    return PendingQueue(cache, evaluator, base.queue.add, reserves=base.check is not CapacityCheck.OFF)


def make_scheduler(base: _Base, pending: PendingQueue) -> PodGroupScheduler:
    """The admission cycle, and the writes of its admissions."""
    admissions = InflightAdmissions(
        base.cache,
        pending,
        base.store,
        mode=admission_mode(base.check, native=base.native is not None),
        clock=base.around.clock,
        enqueue=base.queue.add,
        metrics=base.metrics,
    )
    return PodGroupScheduler(
        base.cache,
        pending,
        admissions,
        check=base.check,
        starvation_seconds=base.settings.starvation_seconds,
        clock=base.around.clock,
        metrics=base.metrics,
    )


def make_reconciler(base: _Base, pending: PendingQueue) -> tuple[PodGroupReconciler, EvictionReconciler]:
    """The reconciler of groups; its part for evictions knows why one is blocked."""
    store, ungater, native, clock, enqueue = base.store, base.ungater, base.native, base.around.clock, base.queue.add
    deadline = SchedulingDeadline(store, ungater, pending, enqueue=enqueue, clock=clock, metrics=base.metrics)
    eviction = EvictionReconciler(
        store, ungater, base.evictor, base.capacities, pending, native=native, enqueue=enqueue, clock=clock
    )
    reconciler = PodGroupReconciler(
        base.cache, store, ungater, deadline, eviction, native=native, enqueue=enqueue, clock=clock
    )
    return reconciler, eviction


def make_status(base: _Base, pending: PendingQueue, eviction: EvictionReconciler) -> PodGroupStatusReconciler:
    """The reconciler of statuses and Events, for a queue of its own."""
    around = base.around

    def report(seen: GroupSnapshot) -> GroupStatus:
        key, warnings = seen.group.key, preconditions.barrier_timeout_warnings(seen, around.jobset)
        blocked = eviction.blocked.get(key, "")
        return group_status(seen, around.clock(), pending.why_pending(key), blocked, warnings)

    client, limiter = around.writer.without_retries(), RateLimiter(WRITES_PER_SECOND, WRITE_BURST)
    return PodGroupStatusReconciler(
        base.cache.snapshot,
        report,
        PodGroupStatusWriter(client, limiter, around.clock),
        PodGroupEventWriter(client, limiter, around.clock),
        metrics=base.metrics,
        on_error=around.metrics.errors.labels("group-status").inc,
        clock=around.clock,
    )


def _on_change(
    queue: LeaderGatedQueue[PodGroupKey], pending: PendingQueue, key: PodGroupKey | None, effect: Effect
) -> None:
    """Hands a change of the cache on to the reconciler and the scheduler."""
    if key is not None:
        queue.add_after(key, REQUEUE_DELAY[effect])
    if effect is not Effect.DETAIL:
        pending.mark_dirty(key, lazy=effect in LAZY)
