"""Constructs the controllers of pod groups: caches, writers, scheduler, reconciler, status."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from controllers.dependencies import ControllerDependencies
from controllers.podgroups import informers
from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.crds import PodGroupCrdReconciler, needed_crds
from controllers.podgroups.deadline import SchedulingDeadline
from controllers.podgroups.evictor import Evictor, ResumeSweeper
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.native import NativePodGroups
from controllers.podgroups.owners import OwnerCapacities
from controllers.podgroups.pending import PendingQueue
from controllers.podgroups.reconciler import PodGroupReconciler
from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.scheduler import CONCURRENT_WRITES, PodGroupScheduler
from controllers.podgroups.status import (
    STATUS_WORKERS,
    WRITE_BURST,
    WRITES_PER_SECOND,
    PodGroupEventWriter,
    PodGroupStatusReconciler,
    PodGroupStatusWriter,
)
from controllers.podgroups.ungater import Ungater
from jobset_gate.barrier.model import WorkloadSeen
from jobset_gate.kube.resources import CRDS
from jobset_gate.podgroups import preconditions
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionMode
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.status import GroupStatus, group_status
from jobset_gate.runtime.controller import Controller
from jobset_gate.runtime.flowcontrol import RateLimiter
from jobset_gate.runtime.informer import AnyInformer, Informer, not_synced, object_informer, wait_for_sync
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate.settings import Groups as GroupSettings
from jobset_gate.settings import Native

Runnable = Callable[[], Coroutine[Any, Any, None]]

WORKERS: Final = 16

URGENT_SECONDS: Final = 0.1
DETAIL_SECONDS: Final = 0.8
"""In which changes of a group are gathered before it is reconciled."""


def max_connections(settings: GroupSettings) -> int:
    """To the API server at once."""
    return settings.gate_concurrency + WORKERS + CONCURRENT_WRITES + STATUS_WORKERS


class PodGroupControllers:
    """Informers run on every replica, runnables on the leader only."""

    def __init__(
        self,
        settings: GroupSettings,
        around: ControllerDependencies,
        *,
        keep_crds: bool = True,
        jobset: Callable[[str, str], WorkloadSeen | None] = lambda _, __: None,
    ) -> None:
        """`keep_crds`: create and update the CRDs of PodGroups. `jobset`: a gated JobSet by namespace and name."""
        self._settings, self._around, self._jobset = settings, around, jobset
        client, writer, clock = around.client, around.writer, around.clock
        on_problem = around.runtime.observe_watch_problem
        self._metrics = PodGroupMetrics(around.registry)
        self.cache = PodGroupCache(settings)
        sources = informers.watch_sources(self.cache, settings, around.namespace)
        self.group_informers: list[AnyInformer] = [Informer(client, it, on_problem=on_problem) for it in sources]
        stores = informers.record_stores(self.group_informers)
        self._store = RecordStore(writer, stores, self.cache.set_record_object, around.namespace)
        self._queue: WorkQueue[PodGroupKey] = around.runtime.new_queue("group", elected=False)
        enqueue = self._queue.add
        self._native = NativePodGroups(writer) if settings.native is Native.ON else None
        self._check = settings.capacity_check if self._native is None else CapacityCheck.OFF
        """Groups that kube-scheduler places as a whole need no reserved room."""
        unchecked = AdmissionMode.OFF if self._native is None else AdmissionMode.NATIVE
        self._mode = unchecked if self._check is CapacityCheck.OFF else AdmissionMode.FIT
        self._capacities = OwnerCapacities(client, clock)
        self._evictor = Evictor(writer, wall=clock)
        self._ungater = Ungater(
            writer,
            clock,
            concurrency=settings.gate_concurrency,
            on_outcome=lambda outcome: self._metrics.gates.labels(outcome).inc(),
        )
        self._crds = PodGroupCrdReconciler(writer)
        self._crd_queue: WorkQueue[str] = around.runtime.new_queue("podgroup-crd")
        self._crd_names = needed_crds(settings.ways) if keep_crds else ()
        self.crd_informers = [
            object_informer(client, CRDS, it, lambda change: self._crd_queue.add(change.key[1]), on_problem=on_problem)
            for it in self._crd_names
        ]
        self.pending = self._make_pending()
        self._scheduler = self._make_scheduler()
        deadline = SchedulingDeadline(
            self._store, self._ungater, self.pending, enqueue=enqueue, clock=clock, metrics=self._metrics
        )
        self._reconciler = PodGroupReconciler(
            self.cache,
            self._store,
            self._ungater,
            deadline,
            self._evictor,
            capacities=self._capacities,
            pending=self.pending,
            native=self._native,
            enqueue=enqueue,
            clock=clock,
        )
        self._status_queue: WorkQueue[PodGroupKey] = around.runtime.new_queue("group-status")
        status = self._make_status()
        self._groups = Controller("group", self._queue, self._reconcile, around.metrics, workers=WORKERS)
        statuses = Controller(
            "group-status", self._status_queue, status.reconcile, around.metrics, workers=STATUS_WORKERS
        )
        self._crd_controller = Controller(
            "podgroup-crd", self._crd_queue, self._crds.reconcile, around.metrics, workers=1
        )
        self.health_checks = [it.health_error for it in (self._groups, statuses, self._crd_controller)]
        sweeper = ResumeSweeper(self.cache, self._evictor, around.namespace)
        self.runnables: list[Runnable] = [self._run_scheduler, self._ungater.run, self._run_groups, statuses.run]
        self.runnables += [self._run_crds, sweeper.run, *([] if self._native is None else [self._native.run])]
        self.cache.subscribe(self._on_change)
        self._metrics.held_pods.set_function(self.cache.count_gated_pods)
        self._metrics.longest_wait.set_function(lambda: self.pending.longest_wait(clock()))

    @property
    def informers(self) -> list[AnyInformer]:
        """What every replica runs."""
        return [*self.group_informers, *self.crd_informers]

    def not_synced(self) -> str:
        """What is not listed yet and why; "" if nothing is missing."""
        return not_synced(self.group_informers, informers.POD_GROUP_RESOURCES)

    async def wait_for_sync(self) -> None:
        """Returns when the caches are full; a CRD that is not installed is not waited for."""
        await wait_for_sync(self.group_informers, informers.POD_GROUP_RESOURCES)

    # --- Runnables, and what connects the parts ---------------------------------------------------------------------

    async def _run_scheduler(self) -> None:
        await self._store.load_records()
        await self._scheduler.run()

    async def _run_groups(self) -> None:
        self._queue.start(self.cache.keys())
        await self._groups.run()

    async def _run_crds(self) -> None:
        for name in self._crd_names:
            self._crd_queue.add(name)  # an informer does not report that a CRD is missing
        await self._crd_controller.run()

    async def _reconcile(self, key: PodGroupKey) -> float | None:
        requeue_after = await self._reconciler.reconcile(key)
        self._status_queue.add(key)  # its worker reads the group when its turn has come
        return requeue_after

    def _on_change(self, key: PodGroupKey | None, urgent: bool) -> None:
        """Hands a change of the cache on to the reconciler and the scheduler."""
        if key is not None:
            self._queue.add_after(key, URGENT_SECONDS if urgent else DETAIL_SECONDS)
        self.pending.mark_dirty(key, lazy=not urgent)

    def _other_precondition(self, seen: GroupSnapshot) -> GroupReason | None:
        held = None if self._native is None else self._native.why_held(seen)
        return held or preconditions.barrier_hold(seen, self._jobset)

    def _report(self, seen: GroupSnapshot) -> GroupStatus:
        key, warnings = seen.group.key, preconditions.barrier_timeout_warnings(seen, self._jobset)
        blocked = self._reconciler.blocked.get(key, "")
        return group_status(seen, self._around.clock(), self.pending.why_pending(key), blocked, warnings)

    # --- Parts ------------------------------------------------------------------------------------------------------

    def _make_pending(self) -> PendingQueue:
        evaluator = GroupEvaluator(
            self.cache.snapshot,
            self.cache.group,
            across_namespaces=self._settings.across_namespaces,
            owner_capacities=self._capacities.known,
            quota_shortage=lambda seen: preconditions.quota_shortage(seen, self.cache.quotas(seen.group.key.namespace)),
            other_precondition=self._other_precondition,
            crd_problems=self._crds.problems,
        )
        return PendingQueue(self.cache, evaluator, self._queue.add_after, reserves=self._check is not CapacityCheck.OFF)

    def _make_scheduler(self) -> PodGroupScheduler:
        return PodGroupScheduler(
            self.cache,
            self.pending,
            self._store,
            check=self._check,
            mode=self._mode,
            starvation_seconds=self._settings.starvation_seconds,
            clock=self._around.clock,
            enqueue=self._queue.add,
            metrics=self._metrics,
        )

    def _make_status(self) -> PodGroupStatusReconciler:
        around, limiter = self._around, RateLimiter(WRITES_PER_SECOND, WRITE_BURST)
        client = around.writer.without_retries()
        return PodGroupStatusReconciler(
            self.cache.snapshot,
            self._report,
            PodGroupStatusWriter(client, limiter, self._store.observe, around.clock),
            PodGroupEventWriter(client, limiter, around.clock),
            metrics=self._metrics,
            clock=around.clock,
        )
