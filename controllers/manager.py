"""Puts the controller together: informers -> index -> queue -> workers, under one lease.

Informers run on every replica, so that a standby takes over with a warm cache; only the leader's workers write. Every
write goes through a client that asks the elector first, so that a leader whose renewal hangs stops writing before
another can take over (faults.md 5). When any part fails for good, all of it stops and the process is to exit: never a
leader that does nothing.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from controllers.barrier import informers as watches
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
from controllers.podgroups import setup
from controllers.statuspage import setup as statuspage_setup
from controllers.statuspage.options import PageOptions
from controllers.statuspage.server import StatusPage
from jobset_gate import names
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS, JOBSETS
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.healthz import HealthServer, LivenessCheck
from jobset_gate.runtime.informer import AnyInformer
from jobset_gate.runtime.leader_election import LeaderElector, LeaseTiming
from jobset_gate.runtime.metrics import RuntimeMetrics
from jobset_gate.runtime.store import ObjectVersion
from jobset_gate.runtime.workqueue import LeaderGatedQueue, WorkQueue
from jobset_gate.settings import Groups

Runnable = Callable[[], Coroutine[Any, Any, None]]

OTHER_CONNECTIONS = 32
"""To the API server, for watches and the lease: however many writes hang, those go through."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """How to run the controller. Durations in seconds."""

    namespace: str = "jobset-gate-system"
    """Where the Lease lies."""
    identity: str = "controller"
    """This replica's name in the Lease."""
    leader_elect: bool = True
    watch_namespace: str | None = None
    """Only this namespace's gangs; None: all."""
    workers: int = 32
    """Gangs dealt with at once: each may wait for an API server that is slow for its namespace alone."""
    patch_concurrency: int = MAX_PATCHES
    extend_crd: bool = True
    groups: Groups = field(default_factory=lambda: Groups(enabled=False))
    """Pod groups; nothing of theirs is watched unless they are enabled."""
    pod_group_crds: bool = True
    """Whether the CRDs of PodGroups are made where they are missing, and kept up to date where they are ours."""
    progress_every: float = PROGRESS_INTERVAL
    host: str = "127.0.0.1"
    port: int | None = None
    """Of /healthz, /readyz and /metrics; 0 takes a free one, None serves none."""
    stream_host: str = "127.0.0.1"
    stream_port: int | None = None
    """Of the gate stream, while this replica leads; 0 takes a free one, None serves none."""
    page_port: int = 0
    """Of the status page, on every replica; 0: there is none."""
    page_address: str = "127.0.0.1"
    page_tls_cert: Path | None = None
    page_tls_key: Path | None = None
    """Its certificate and key; without them it listens on loopback only."""
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0
    clock: Callable[[], float] = time.time
    """Seconds since the epoch, for the gangs' clocks and for conditions."""
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)


class Manager:
    """One replica of the controller: `await Manager(access, options).run()`."""

    def __init__(self, access: Access, options: ManagerOptions | None = None) -> None:
        self.options = options or ManagerOptions()
        self._access = access
        self._plumbing = RuntimeMetrics(self.options.registry, access.server, names.LEASE)
        self._stream: StreamServer | None = None
        self.page: StatusPage | None = None
        """The status page, once it is made."""
        self.url = ""
        """Where health and metrics are served, once they are."""
        self.leading = asyncio.Event()
        """Set while this replica leads and works."""
        self._liveness = LivenessCheck(self.leading)
        self.serving = asyncio.Event()
        """Set once the caches are full."""
        self.streaming = asyncio.Event()
        """Set while the gate stream is served at `stream_url`."""

    @property
    def stream_url(self) -> str:
        """Where the gate stream is served; "" while it is not."""
        return self._stream.url if self._stream is not None else ""

    async def run(self) -> None:
        """Until cancelled, or until the lease is lost (LeadershipLost) or a part has failed for good."""
        connections = self.options.workers + STATUS_WORKERS + self.options.patch_concurrency + OTHER_CONNECTIONS
        if self.options.groups.enabled:
            connections += setup.max_connections(self.options.groups)
        if self.options.page_port:
            connections += statuspage_setup.CONNECTIONS
        async with Client(self._access, observe=self._plumbing.observe_request, connections=connections) as client:
            elector = self._elector(client)
            writer = client.with_guard(elector.guard) if elector else client
            gangs: WorkQueue[GangKey] = self._plumbing.new_queue("gang")
            crds: WorkQueue[str] = self._plumbing.new_queue("crd")
            told = DeliveryLog()
            duty = LeaderGatedQueue(gangs)
            index = GangCache(duty.add, duty.add_after, told, self._on_gang_change)
            informers = self._informers(client, index, crds)
            gates = VerdictStore(writer.without_retries(), index, watches.config_map_witness(informers))
            metrics = ControllerMetrics(self.options.registry)
            statuses = self._condition_writer(writer, watches.jobset_version(informers))
            silent = watches.pod_watch_silence(informers)
            works = self._barrier_runnables(
                client,
                writer,
                index,
                gangs,
                crds,
                gates=gates,
                statuses=statuses,
                silent=silent,
                told=told,
                metrics=metrics,
            )
            groups = self._groups(client, writer, index, metrics)
            self.page = self._make_page(client, index, informers, groups, elector)
            health = await self._serve(informers, groups)
            try:
                async with asyncio.TaskGroup() as tasks:
                    for informer in (*informers, *(groups.informers if groups else ())):
                        self._start(tasks, informer.run(), f"informer of {informer.resource.plural}")
                    self._start(tasks, self._wait_synced(informers, groups), "filling")
                    if self.page is not None:
                        self._start(tasks, self.page.run(), "status page")
                    begin = partial(duty.start, index.keys)
                    lead = partial(self._lead, [*works, *(groups.runnables if groups else ())], begin)
                    self._start(tasks, elector.run(lead) if elector else lead(), "leading")
            finally:
                if health is not None:
                    await health.stop()

    async def _wait_synced(self, informers: Sequence[AnyInformer], groups: setup.PodGroupControllers | None) -> None:
        for informer in informers:
            if informer.resource not in (JOBSETS, CRDS):  # those come when JobSet is installed
                await informer.wait_synced()
        if groups is not None:
            await groups.wait_for_sync()
        self.serving.set()

    async def _lead(self, works: Sequence[Runnable], begin: Callable[[], None]) -> None:
        """What only the leader does; not before its caches are full, so that nobody is missing merely in them."""
        await self.serving.wait()
        _log.info("leading", identity=self.options.identity)
        begin()
        self.leading.set()
        if not self.options.leader_elect:
            self._plumbing.set_leading(True)
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in works:
                    self._start(tasks, work(), work.__qualname__)
        finally:
            self.leading.clear()

    def _start(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, None], name: str) -> None:
        self._liveness.watch_task(tasks.create_task(work, name=name))

    def _barrier_runnables(
        self,
        client: Client,
        writer: Client,
        index: GangCache,
        gangs: WorkQueue[GangKey],
        crds: WorkQueue[str],
        *,
        gates: VerdictStore,
        statuses: ConditionWriter,
        silent: Callable[[], float],
        told: DeliveryLog,
        metrics: ControllerMetrics,
    ) -> Sequence[Runnable]:
        """The patches, the gate stream and the three loops, with all that they need."""
        options = self.options
        measures = GangMetrics(options.registry, options.clock)
        book = WaiterRegistry(index, options.clock, told)
        measures.set_open_requests(lambda: book.open_count)
        patches = VerdictPatcher(
            writer, concurrency=options.patch_concurrency, on_patched=measures.on_patched, delivered=told
        )
        words: WorkQueue[GangKey] = self._plumbing.new_queue("status")
        heralds = GangStatusWriter(
            statuses, words, retry_after=options.progress_every, on_failure=metrics.errors.labels("status").inc
        )
        reconciler = GangReconciler(
            cache=index,
            verdict_store=gates,
            waiters=book,
            patcher=patches,
            status=heralds,
            live_reader=LiveReader(client, silent),
            metrics=measures,
            now=options.clock,
        )
        gang_loop = Controller(
            "gang", gangs, reconciler.reconcile, metrics, workers=options.workers, log_fields=GangKey.log_fields
        )
        word_loop = Controller(
            "status", words, heralds.reconcile, metrics, workers=STATUS_WORKERS, log_fields=GangKey.log_fields
        )
        crd_loop = Controller(
            "crd", crds, CrdReconciler(writer, CrdMetrics(options.registry).observe_pass).reconcile, metrics, workers=1
        )
        self._liveness.add_checks(gang_loop.health_error, word_loop.health_error, crd_loop.health_error)
        works: list[Runnable] = [patches.run, gang_loop.run, word_loop.run, crd_loop.run]
        if options.stream_port is not None:
            self._stream = StreamServer(
                book,
                host=options.stream_host,
                port=options.stream_port,
                on_outcome=measures.on_stream_request,
                listening=self.streaming,
            )
            works.append(self._stream.run)
        return works

    def _condition_writer(self, writer: Client, version: Callable[[GangKey], ObjectVersion | None]) -> ConditionWriter:
        return ConditionWriter(
            writer.without_retries(), self.options.clock, self.options.progress_every, version=version
        )

    def _informers(self, client: Client, index: GangCache, crds: WorkQueue[str]) -> list[AnyInformer]:
        options = self.options
        crd_changed = partial(crds.add, names.JOBSET_CRD) if options.extend_crd else None
        return watches.make_informers(
            client,
            index,
            crd_changed,
            namespace=options.watch_namespace,
            on_problem=self._plumbing.observe_watch_problem,
        )

    def _groups(
        self, client: Client, writer: Client, index: GangCache, metrics: ControllerMetrics
    ) -> setup.PodGroupControllers | None:
        """Pod groups, if they are kept at all."""
        options = self.options
        if not options.groups.enabled:
            return None
        around = setup.PodGroupDependencies(
            client=client,
            writer=writer,
            namespace=options.watch_namespace,
            clock=options.clock,
            registry=options.registry,
            runtime=self._plumbing,
            metrics=metrics,
            on_problem=self._plumbing.observe_watch_problem,
            keep_crds=options.pod_group_crds,
            jobset=lambda namespace, name: index.get_jobset(GangKey(namespace, name)),
        )
        groups = setup.setup_pod_groups(options.groups, around)
        self._liveness.add_checks(*groups.health_checks)
        return groups

    def _make_page(
        self,
        client: Client,
        index: GangCache,
        informers: Sequence[AnyInformer],
        groups: setup.PodGroupControllers | None,
        elector: LeaderElector | None,
    ) -> StatusPage | None:
        options = self.options
        if not options.page_port:
            return None
        around = statuspage_setup.StatusPageDependencies(
            client=client,
            index=index,
            informers=informers,
            groups=groups,
            elector=elector,
            leads=self.leading.is_set,
            clock=options.clock,
            registry=options.registry,
        )
        listen = PageOptions(options.page_port, options.page_address, options.page_tls_cert, options.page_tls_key)
        return statuspage_setup.make_status_page(listen, around)

    def _on_gang_change(self, key: GangKey) -> None:
        if self.page is not None:
            self.page.mark_dirty(key)

    def _elector(self, client: Client) -> LeaderElector | None:
        options = self.options
        if not options.leader_elect:
            return None
        return LeaderElector(
            client,
            (options.namespace, names.LEASE),
            options.identity,
            LeaseTiming(options.lease_duration, options.renew_deadline, options.retry),
            clock=options.clock,
            on_status=self._plumbing.set_leading,
            on_problem=self._plumbing.log_lease_problem,
        )

    async def _serve(
        self, informers: list[AnyInformer], groups: setup.PodGroupControllers | None
    ) -> HealthServer | None:
        options = self.options
        if options.port is None:
            return None

        def ready() -> str:
            return watches.not_synced(informers) or ("" if groups is None else groups.not_synced())

        health = HealthServer(
            options.registry, healthy=self._liveness.check, ready=ready, host=options.host, port=options.port
        )
        await health.start()
        self.url = health.url
        return health
