"""Constructs the start barrier's controllers: informers -> cache -> work queue -> reconcilers."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from controllers.barrier import informers
from controllers.barrier.cache import GangCache
from controllers.barrier.crd_reconciler import CrdMetrics, CrdReconciler
from controllers.barrier.live_reader import LiveReader
from controllers.barrier.metrics import GangMetrics
from controllers.barrier.reconciler import GangReconciler
from controllers.barrier.status import PROGRESS_INTERVAL, STATUS_WORKERS, ConditionWriter, GangStatusWriter
from controllers.barrier.stream.delivery import DeliveryLog
from controllers.barrier.stream.registry import WaiterRegistry
from controllers.barrier.stream.server import StreamServer
from controllers.barrier.verdict_patcher import MAX_PATCHES, VerdictPatcher
from controllers.barrier.verdict_store import VerdictStore
from jobset_gate import names
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS, JOBSETS
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.metrics import RuntimeMetrics
from jobset_gate.runtime.workqueue import LeaderGatedQueue, WorkQueue

Runnable = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class BarrierOptions:
    """Durations in seconds."""

    watch_namespace: str | None = None
    """The only namespace that is watched; None: all."""
    workers: int = 32
    """Gangs reconciled at once: a pass may wait for an API server that is slow for its namespace alone."""
    patch_concurrency: int = MAX_PATCHES
    extend_crd: bool = True
    progress_every: float = PROGRESS_INTERVAL
    stream_host: str = "127.0.0.1"
    stream_port: int | None = None
    """Of the gate stream, while this replica leads; 0 takes a free one, None serves none."""

    @property
    def barrier_connections(self) -> int:
        """Connections to the API server for writes."""
        return self.workers + STATUS_WORKERS + self.patch_concurrency


@dataclass(frozen=True, slots=True)
class BarrierDependencies:
    """What the manager provides."""

    client: Client
    writer: Client
    """Checks the lease before each write."""
    clock: Callable[[], float]
    registry: CollectorRegistry
    runtime_metrics: RuntimeMetrics
    controller_metrics: ControllerMetrics
    on_change: Callable[[GangKey], None]
    """Called after every change of a gang."""
    streaming: asyncio.Event
    """Set while the gate stream is served."""


class BarrierControllers:
    """`informers` run on every replica, `runnables` on the leader only."""

    def __init__(self, options: BarrierOptions, needs: BarrierDependencies) -> None:
        self._options, self._needs = options, needs
        self._queue: WorkQueue[GangKey] = needs.runtime_metrics.new_queue("gang")
        self._crd_queue: WorkQueue[str] = needs.runtime_metrics.new_queue("crd")
        self._leader_gate = LeaderGatedQueue(self._queue)
        self._deliveries = DeliveryLog()
        self.cache = GangCache(self._leader_gate.add, self._leader_gate.add_after, self._deliveries, needs.on_change)
        self.informers = informers.make_informers(
            needs.client,
            self.cache,
            partial(self._crd_queue.add, names.JOBSET_CRD) if options.extend_crd else None,
            namespace=options.watch_namespace,
            on_problem=needs.runtime_metrics.observe_watch_problem,
        )
        self._metrics = GangMetrics(needs.registry, needs.clock)
        self._waiters = WaiterRegistry(self.cache, needs.clock, self._deliveries)
        self._metrics.set_open_requests(lambda: self._waiters.open_count)
        self._patcher = VerdictPatcher(
            needs.writer,
            concurrency=options.patch_concurrency,
            on_patched=self._metrics.on_patched,
            delivered=self._deliveries,
        )
        self.stream = self._stream()
        controllers = self._controllers()
        self.health_checks = [it.health_error for it in controllers]
        self.runnables: list[Runnable] = [self._patcher.run, *(it.run for it in controllers)]
        if self.stream is not None:
            self.runnables.append(self.stream.run)

    def start(self) -> None:
        """This replica leads: enqueues all gangs."""
        self._leader_gate.start(self.cache.keys)

    async def wait_for_sync(self) -> None:
        """Returns when the caches are filled; JobSet and its CRD may be installed later."""
        for informer in self.informers:
            if informer.resource not in (JOBSETS, CRDS):
                await informer.wait_synced()

    def not_synced(self) -> str:
        """Why the caches are not filled, "" if they are."""
        return informers.not_synced(self.informers)

    def _controllers(self) -> list[Controller[Any]]:
        options, needs = self._options, self._needs
        metrics, queue = needs.controller_metrics, needs.runtime_metrics.new_queue
        status_queue: WorkQueue[GangKey] = queue("status")
        conditions = ConditionWriter(
            needs.writer.without_retries(),
            needs.clock,
            options.progress_every,
            version=informers.jobset_version(self.informers),
        )
        status = GangStatusWriter(
            conditions,
            status_queue,
            retry_after=options.progress_every,
            on_failure=metrics.errors.labels("status").inc,
        )
        gangs = GangReconciler(
            cache=self.cache,
            verdict_store=VerdictStore(
                needs.writer.without_retries(), self.cache, informers.config_map_mutations(self.informers)
            ),
            waiters=self._waiters,
            patcher=self._patcher,
            status=status,
            live_reader=LiveReader(needs.client, informers.pod_watch_silence(self.informers)),
            metrics=self._metrics,
            now=needs.clock,
        )
        crd = CrdReconciler(needs.writer, CrdMetrics(needs.registry).observe_pass)
        fields = GangKey.log_fields
        return [
            Controller("gang", self._queue, gangs.reconcile, metrics, workers=options.workers, log_fields=fields),
            Controller("status", status_queue, status.reconcile, metrics, workers=STATUS_WORKERS, log_fields=fields),
            Controller("crd", self._crd_queue, crd.reconcile, metrics, workers=1),
        ]

    def _stream(self) -> StreamServer | None:
        if self._options.stream_port is None:
            return None
        return StreamServer(
            self._waiters,
            host=self._options.stream_host,
            port=self._options.stream_port,
            on_outcome=self._metrics.on_stream_request,
            listening=self._needs.streaming,
        )
