"""Constructs the start barrier's controllers: informers -> cache -> work queue -> reconcilers."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from controllers.barrier import informers
from controllers.barrier.cache import GangCache
from controllers.barrier.crd_patcher import CrdMetrics, CrdReconciler
from controllers.barrier.live_reader import LiveReader
from controllers.barrier.lws_condition import WORKERS as LWS_WORKERS
from controllers.barrier.lws_condition import LwsConditionWriter
from controllers.barrier.metrics import GangMetrics
from controllers.barrier.reconciler import GangReconciler
from controllers.barrier.status import PROGRESS_INTERVAL, STATUS_WORKERS, GangStatusWriter
from controllers.barrier.stream.delivery import DeliveryLog
from controllers.barrier.stream.registry import WaiterRegistry
from controllers.barrier.stream.server import StreamServer
from controllers.barrier.tracing import WORKERS as TRACE_WORKERS
from controllers.barrier.tracing import GangTracer, TraceExporter
from controllers.barrier.verdict_patcher import MAX_PATCHES, VerdictPatcher
from controllers.barrier.verdict_store import VerdictStore
from controllers.barrier.workloads import WORKLOADS
from controllers.dependencies import ControllerDependencies
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, JOBSETS, PODS
from jobset_gate.runtime.controller import Controller
from jobset_gate.runtime.informer import not_synced, wait_for_sync
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate.settings import DEFAULT_SOURCES
from jobset_gate.sources.table import LWS

Runnable = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class BarrierOptions:
    """Durations in seconds."""

    sources: tuple[str, ...] = DEFAULT_SOURCES
    """Kinds of workloads whose gangs are managed."""
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
    traces: TraceExporter | None = None
    """Gets a trace of each gang that this process decides on; None: no trace is made."""

    @property
    def barrier_connections(self) -> int:
        """Connections to the API server for writes."""
        shared = LWS_WORKERS if LWS.name in self.sources else 0
        return self.workers + STATUS_WORKERS + shared + self.patch_concurrency


class BarrierControllers:
    """`informers` run on every replica, `runnables` on the leader only.

    `on_change` is called after every change of a gang; `streaming` is set while the gate stream is served.
    """

    def __init__(
        self,
        options: BarrierOptions,
        around: ControllerDependencies,
        *,
        on_change: Callable[[GangKey], None],
        streaming: asyncio.Event,
    ) -> None:
        client, writer, clock = around.client, around.writer, around.clock
        runtime, metrics = around.runtime, around.metrics
        self._queue: WorkQueue[GangKey] = runtime.new_queue("gang", elected=False)
        self._lws_queue: WorkQueue[GangKey] | None = None
        status_queue: WorkQueue[GangKey] = runtime.new_queue("status")
        crd_queue: WorkQueue[str] = runtime.new_queue("crd")
        deliveries = DeliveryLog()
        self.cache = GangCache(self._queue.add, self._queue.add_after, deliveries, on_change)
        self.informers = informers.make_informers(
            client,
            self.cache,
            (lambda change: crd_queue.add(change.key[1])) if options.extend_crd else None,
            sources=options.sources,
            namespace=around.namespace,
            clock=clock,
            on_problem=runtime.observe_watch_problem,
        )
        gang_metrics = GangMetrics(around.registry, clock, options.sources)
        waiters = WaiterRegistry(self.cache, clock, deliveries)
        gang_metrics.set_open_requests(waiters.count_open)
        patcher = VerdictPatcher(
            writer, concurrency=options.patch_concurrency, on_patched=gang_metrics.on_patched, delivered=deliveries
        )
        once = writer.without_retries()
        by_resource = {it.resource: it for it in self.informers}
        stores = {source: by_resource[resource].store for source, resource in WORKLOADS.items() if resource != PODS}
        verdict_store = VerdictStore(once, self.cache, by_resource[CONFIGMAPS].store)
        shared = None
        if LWS.name in options.sources:
            self._lws_queue = runtime.new_queue(LWS.name, elected=False)
            shared = LwsConditionWriter(
                once,
                self.cache,
                self._lws_queue,
                clock,
                interval=options.progress_every,
                on_failure=metrics.errors.labels(LWS.name).inc,
            )
            self.cache.on_parent = shared.on_change
        status = GangStatusWriter(
            once,
            clock,
            status_queue,
            version=lambda key: stores[key.source].version_of((key.namespace, key.name)),
            annotate=verdict_store.annotate_condition,
            shared=shared,
            interval=options.progress_every,
            on_failure=metrics.errors.labels("status").inc,
        )
        gangs = GangReconciler(
            cache=self.cache,
            verdict_store=verdict_store,
            waiters=waiters,
            patcher=patcher,
            status=status,
            live_reader=LiveReader(client, lambda source: informers.pods_of(self.informers, source).staleness),
            metrics=gang_metrics,
            now=clock,
        )
        crd = CrdReconciler(writer, CrdMetrics(around.registry).observe_pass)
        fields = GangKey.log_fields
        controllers: list[Controller[Any]] = [
            Controller("gang", self._queue, gangs.reconcile, metrics, workers=options.workers, log_fields=fields),
            Controller("status", status_queue, status.reconcile, metrics, workers=STATUS_WORKERS, log_fields=fields),
            Controller("crd", crd_queue, crd.reconcile, metrics, workers=1),
        ]
        if shared is not None and self._lws_queue is not None:
            controllers.append(
                Controller(LWS.name, self._lws_queue, shared.reconcile, metrics, workers=LWS_WORKERS, log_fields=fields)
            )
        if options.traces is not None:
            traces: WorkQueue[GangKey] = runtime.new_queue("trace")
            tracer = GangTracer(self.cache, client, traces, options.traces, clock)
            gangs.on_decided = tracer.on_decided
            controllers.append(
                Controller("trace", traces, tracer.reconcile, metrics, workers=TRACE_WORKERS, log_fields=fields)
            )
        self.health_checks = [it.health_error for it in controllers]
        self.runnables: list[Runnable] = [patcher.run, *(it.run for it in controllers)]
        self.stream: StreamServer | None = None
        if options.stream_port is not None:
            self.stream = StreamServer(
                waiters,
                host=options.stream_host,
                port=options.stream_port,
                on_outcome=gang_metrics.on_stream_request,
                listening=streaming,
            )
            self.runnables.append(self.stream.run)

    def start(self) -> None:
        """This replica leads: enqueues all gangs."""
        self._queue.start(self.cache.keys())
        if self._lws_queue is not None:
            self._lws_queue.start(GangKey(*it, LWS.name) for it in self.cache.leader_worker_sets)

    async def wait_for_sync(self) -> None:
        """Returns when the caches are filled; JobSet and its CRD may be installed later.

        LeaderWorkerSets are waited for unless there are none: a group takes from it what becomes of it at a timeout.
        """
        needed = (it for it in self.informers if it.resource not in (JOBSETS, CRDS))
        await wait_for_sync(needed, informers.MAY_BE_ABSENT)

    def not_synced(self) -> str:
        """Why the caches are not filled, "" if they are."""
        return not_synced(self.informers, informers.MAY_BE_ABSENT)
