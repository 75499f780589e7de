"""All that keeps pod groups, as one part of the controller: its informers, its workers, its metrics."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry

from controllers.podgroups import crds
from controllers.podgroups import informers as watches
from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.capacity_reader import OwnerCapacityReader
from controllers.podgroups.coalesce import Leisure
from controllers.podgroups.crds import PodGroupCrdReconciler
from controllers.podgroups.evictor import Evictor
from controllers.podgroups.inflight import ADMISSION_WRITES
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.native import NativePodGroups
from controllers.podgroups.owner_capacity import OwnerCapacities
from controllers.podgroups.reconciler import PodGroupReconciler
from controllers.podgroups.record_store import RecordStore
from controllers.podgroups.resume_sweeper import ResumeSweeper
from controllers.podgroups.scheduler import PodGroupScheduler
from controllers.podgroups.status import STATUS_WORKERS, PodGroupStatusWorker
from controllers.podgroups.status_reporter import StatusReporter
from controllers.podgroups.ungater import Ungater
from jobset_gate.barrier.model import JobSetSeen
from jobset_gate.kube.client import Client
from jobset_gate.podgroups import barrier_preconditions, quota
from jobset_gate.podgroups.candidate import Hold
from jobset_gate.podgroups.crds import needed_crds
from jobset_gate.podgroups.evaluate import GroupEvaluator
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.owner_capacity import OwnerCapacity
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.decoder import OnWatchProblem
from jobset_gate.runtime.informer import AnyInformer
from jobset_gate.runtime.metrics import RuntimeMetrics
from jobset_gate.runtime.workqueue import LeaderGatedQueue, WorkQueue
from jobset_gate.settings import Groups as GroupSettings
from jobset_gate.settings import Native

Runnable = Callable[[], Coroutine[Any, Any, None]]

WORKERS: Final = 16
"""Groups dealt with at once."""

EVENT_DELAY_SECONDS: Final = 0.1
"""Seconds within which a group is looked at of which a watch has told something: with all else that is told of it."""

_log = structlog.get_logger(__name__)


def max_connections(settings: GroupSettings) -> int:
    """To the API server, for all that may be under way at once."""
    return settings.gate_concurrency + WORKERS + ADMISSION_WRITES + STATUS_WORKERS


@dataclass(frozen=True, slots=True)
class PodGroupDependencies:
    """What the part needs of the controller around it."""

    client: Client
    writer: Client
    """Asks before each write whether this process still leads."""
    namespace: str | None
    clock: Callable[[], float]
    registry: CollectorRegistry
    plumbing: RuntimeMetrics
    metrics: ControllerMetrics
    on_problem: OnWatchProblem
    keep_crds: bool = True
    """Whether the CRDs of PodGroups are made and updated."""
    jobset: Callable[[str, str], JobSetSeen | None] = lambda _, __: None
    """A gated JobSet by namespace and name."""


class PodGroupControllers:
    """Pod groups. `informers` run on every replica, `works` on the leader only."""

    def __init__(self, settings: GroupSettings, around: PodGroupDependencies) -> None:
        self._settings, self._around = settings, around
        self._queue: WorkQueue[PodGroupKey] = around.plumbing.new_queue("group")
        self._words: WorkQueue[PodGroupKey] = around.plumbing.new_queue("group-status")
        self._creators: dict[PodGroupKey, tuple[OwnerCapacity, ...]] = {}
        self.measures = PodGroupMetrics(around.registry, around.clock)
        self._duty = LeaderGatedQueue(self._queue)
        self._goes_on, self._gathers = Leisure(self._duty.add), Leisure(self._look_again)
        self.index = PodGroupCache(
            self._heard,
            self._changed,
            settings,
            gathers=self._gathers.later,
            goes_on=self._goes_on.later,
            met=self._duty.add,
            placed=lambda key: self._opener.mark_progress(key),  # noqa: PLW0108 - there is none yet
        )
        self._kinds: list[AnyInformer] = watches.informers(
            around.client, self.index, settings, namespace=around.namespace, on_problem=around.on_problem
        )
        self.crd_keeper = PodGroupCrdReconciler(around.writer)
        self._rollbacks = Evictor(around.writer, wall=around.clock)
        self._resumption = ResumeSweeper(self.index, self._rollbacks, around.namespace)
        self._records = RecordStore(around.writer, self.index, around.namespace)
        self._native = NativePodGroups(around.writer, self._look_at_all) if settings.native is Native.ON else None
        self._opener = self._make_opener()
        self._gates = Ungater(
            around.writer, around.clock, concurrency=settings.gate_concurrency, sent=self.measures.count_ungating
        )
        self._heralds = PodGroupStatusWorker(
            around.writer.without_retries(),
            self._words,
            clock=around.clock,
            failed=around.metrics.errors.labels("group-status").inc,
            patience=monotonic,
        )
        self._talk = StatusReporter(
            self._opener.why_pending, self._heralds, self.measures, clock=around.clock, jobset=around.jobset
        )
        self._reconciler = self._make_reconciler()
        self._loop = Controller("group", self._queue, self._reconcile, around.metrics, workers=WORKERS)
        self._word_loop = Controller(
            "group-status", self._words, self._heralds.reconcile, around.metrics, workers=STATUS_WORKERS
        )
        self._crds: WorkQueue[str] = around.plumbing.new_queue("podgroup-crd")
        self._crd_loop = Controller("podgroup-crd", self._crds, self.crd_keeper.reconcile, around.metrics, workers=1)
        self._crd_informers = crds.informers(around.client, self._crd_names(), self._crds.add, around.on_problem)
        self.measures.read_held_pods_from(self._held)
        self.measures.read_waits_from(self._opener.waiting_since)

    @property
    def informers(self) -> Sequence[AnyInformer]:
        """What every replica runs."""
        return *self._kinds, *self._crd_informers

    @property
    def runnables(self) -> Sequence[Runnable]:
        """What the leader runs."""
        native = () if self._native is None else (self._native.run,)
        return (
            self._opener.run,
            self._gates.run,
            self._keep,
            self._word_loop.run,
            self._look_after_crds,
            self._resumption.run,
            *native,
        )

    @property
    def health_checks(self) -> Sequence[Callable[[], str]]:
        """Who is asked whether the workers work."""
        return self._loop.health_error, self._word_loop.health_error, self._crd_loop.health_error

    def why_pending(self, key: PodGroupKey) -> Hold | GroupReason | None:
        """What holds a group up, by the opener; None: nothing that is known, or this process does not lead."""
        return self._opener.why_pending(key)

    def not_synced(self) -> str:
        """What has not been listed yet and why; "" if nothing is missing."""
        return watches.not_synced(self._kinds)

    async def wait_for_sync(self) -> None:
        """Returns once the caches are full; a kind that is not installed is not waited for."""
        await watches.wait_for_sync(self._kinds)

    async def _look_after_crds(self) -> None:
        for name in self._crd_names():
            self._crds.add(name)  # no watch tells of one that is not there
        await self._crd_loop.run()

    async def _keep(self) -> None:
        self._duty.start(self.index.keys)
        await self._loop.run()

    # --- Details -----------------------------------------------------------------------------------------------------

    def _make_opener(self) -> PodGroupScheduler:
        settings = self._settings
        outlook = GroupEvaluator(
            self.index.snapshot,
            self.index.groups(),
            across_namespaces=settings.across_namespaces,
            creators=self._creators,
            short_of_quota=self._short_of_quota,
            barred=self._barred,
            trouble=self.crd_keeper.problems,
        )
        return PodGroupScheduler(
            index=self.index,
            outlook=outlook,
            records=self._records,
            settings=settings,
            now=self._around.clock,
            told=self._duty.add,
            measured=self.measures.observe_cycle,
            opened=self.measures.observe_admission,
        )

    def _make_reconciler(self) -> PodGroupReconciler:
        return PodGroupReconciler(
            index=self.index,
            records=self._records,
            gates=self._gates,
            rollbacks=self._rollbacks,
            native=self._native,
            makers=OwnerCapacities(
                OwnerCapacityReader(self._around.client), self._creators, self._opener.mark_dirty, self._around.clock
            ),
            now=self._around.clock,
            wake=self._duty.add,
            look=self._opener.mark_dirty,
            quiet=self._talk.quiet_seconds,
            spoken=self._talk.report_group,
            forgotten=self._talk.forget_group,
            satisfied=self.measures.observe_satisfied,
            rolled_back=self.measures.count_eviction,
            makes_way=self._opener.must_yield,
        )

    def _crd_names(self) -> tuple[str, ...]:
        return needed_crds(self._settings.ways) if self._around.keep_crds else ()

    def _heard(self, key: PodGroupKey) -> None:
        self._duty.add_after(key, EVENT_DELAY_SECONDS)

    def _look_again(self, key: PodGroupKey) -> None:
        self._opener.mark_dirty(key)
        self._goes_on.later(key)  # unless the opener has found other words for it before

    async def _reconcile(self, key: PodGroupKey) -> float | None:
        self._goes_on.not_needed(key)
        return await self._reconciler.reconcile(key)

    def _changed(self, key: PodGroupKey | None) -> None:
        if key is not None:
            self._gathers.not_needed(key)
        self._opener.mark_dirty(key)

    def _short_of_quota(self, seen: GroupSnapshot) -> str:
        return quota.quota_shortage(seen, self.index.quotas(seen.group.key.namespace))

    def _barred(self, seen: GroupSnapshot) -> GroupReason | None:
        held = None if self._native is None else self._native.why_held(seen)
        return held or barrier_preconditions.barrier_hold(seen, self._around.jobset)

    def _look_at_all(self) -> None:
        known = self.index.keys()
        for key in known:
            self._opener.mark_dirty(key)

    def _held(self) -> int:
        seen = map(self.index.snapshot, self.index.keys())
        return sum(it.gated for group in seen if group is not None for it in group.members)
