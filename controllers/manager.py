"""Runs one replica of the controller under a lease.

Informers run on every replica, so that a standby takes over with a filled cache; only the leader writes. Every write
checks the lease first, so that a leader whose renewal hangs stops writing before another replica can lead. If any part
fails for good, the process ends: a leader never runs without all of its parts.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from controllers.barrier.setup import BarrierControllers, BarrierOptions
from controllers.dependencies import ControllerDependencies
from controllers.podgroups import setup
from controllers.statuspage.middleware import PageOptions
from controllers.statuspage.server import API_CONNECTIONS, StatusPage, make_status_page
from controllers.statuspage.source import Freshness, disconnected_watches
from jobset_gate import names
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.runtime.controller import ControllerMetrics
from jobset_gate.runtime.healthz import HealthServer, LivenessCheck
from jobset_gate.runtime.informer import AnyInformer
from jobset_gate.runtime.leader_election import LeaderElector, LeaseTiming
from jobset_gate.runtime.metrics import RuntimeMetrics
from jobset_gate.settings import Groups

OTHER_CONNECTIONS = 32
"""To the API server, for watches and the lease, however many writes hang."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerOptions(BarrierOptions):
    """Durations in seconds."""

    namespace: str = "jobset-gate-system"
    """Of the Lease."""
    identity: str = "controller"
    """This replica's name in the Lease."""
    leader_elect: bool = True
    groups: Groups = field(default_factory=lambda: Groups(enabled=False))
    """Pod groups; disabled, none of their objects is watched."""
    pod_group_crds: bool = True
    """Create missing CRDs of PodGroups, and update those that jobset-gate created."""
    host: str = "127.0.0.1"
    port: int | None = None
    """Of /healthz, /readyz and /metrics; 0 takes a free one, None serves none."""
    page_port: int = 0
    """Of the status page, on every replica; 0 serves none."""
    page_address: str = "127.0.0.1"
    page_tls_cert: Path | None = None
    page_tls_key: Path | None = None
    """Without certificate and key the page listens on loopback only."""
    page_prices: Mapping[str, float] = field(default_factory=dict)
    """Of one accelerator for an hour, by resource name."""
    tracing: bool = False
    """Whether the command line passes `traces`."""
    tracing_endpoint: str | None = None
    """Base URL of the collector; None: OpenTelemetry's environment variables say it."""
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0
    clock: Callable[[], float] = time.time
    """Seconds since the epoch, for the gangs' clocks and for conditions."""
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    @property
    def page(self) -> PageOptions:
        certificate, key = self.page_tls_cert, self.page_tls_key
        return PageOptions(self.page_port, self.page_address, certificate, key, self.page_prices)


class Manager:
    """One replica of the controller: `await Manager(access, options).run()`."""

    def __init__(self, access: Access, options: ManagerOptions | None = None) -> None:
        self.options = options or ManagerOptions()
        self._access = access
        self._metrics = RuntimeMetrics(self.options.registry, access.server, names.LEASE)
        self._barrier: BarrierControllers | None = None
        self._parts: list[BarrierControllers | setup.PodGroupControllers] = []
        self.page: StatusPage | None = None
        self.url = ""
        """Of health and metrics, once they are served."""
        self.leading = asyncio.Event()
        self._liveness = LivenessCheck(self.leading)
        self.serving = asyncio.Event()
        """Set once the caches are filled."""
        self.streaming = asyncio.Event()
        """Set while the gate stream is served at `stream_url`."""

    @property
    def stream_url(self) -> str:
        """Of the gate stream; "" while it is not served."""
        stream = None if self._barrier is None else self._barrier.stream
        return "" if stream is None else stream.url

    async def run(self) -> None:
        """Until cancelled, or until the lease is lost (LeadershipLost) or a part has failed for good."""
        options = self.options
        connections = options.barrier_connections + OTHER_CONNECTIONS
        if options.groups.enabled:
            connections += setup.max_connections(options.groups)
        if options.page_port:
            connections += API_CONNECTIONS
        async with Client(self._access, observe=self._metrics.observe_request, connections=connections) as client:
            elector = self._elector(client)
            writer = client.with_guard(elector.guard) if elector else client
            around = ControllerDependencies(
                client=client,
                writer=writer,
                namespace=options.watch_namespace,
                clock=options.clock,
                registry=options.registry,
                runtime=self._metrics,
                metrics=ControllerMetrics(options.registry),
            )
            barrier = self._barrier = BarrierControllers(
                options, around, on_change=self._on_gang_change, streaming=self.streaming
            )
            groups = self._groups(around, barrier)
            self._parts = [barrier] if groups is None else [barrier, groups]
            for part in self._parts:
                self._liveness.add_checks(*part.health_checks)
            if options.page_port:
                fresh = partial(self._freshness, elector)
                self.page = make_status_page(options.page, around, barrier.cache, groups, fresh)
            health = await self._serve()
            try:
                async with asyncio.TaskGroup() as tasks:
                    for informer in self._informers:
                        self._start(tasks, informer.run(), f"informer of {informer.resource.plural}")
                    self._start(tasks, self._wait_synced(), "cache sync")
                    if self.page is not None:
                        self._start(tasks, self.page.run(), "status page")
                    lead = partial(self._lead, barrier)
                    self._start(tasks, elector.run(lead) if elector else lead(), "leading")
            finally:
                if health is not None:
                    await health.stop()

    @property
    def _informers(self) -> list[AnyInformer]:
        return [informer for part in self._parts for informer in part.informers]

    def _not_synced(self) -> str:
        return next(filter(None, (part.not_synced() for part in self._parts)), "")

    def _freshness(self, elector: LeaderElector | None) -> Freshness:
        unlisted, (lost, seconds) = self._not_synced(), disconnected_watches(self._informers)
        holder = elector.holder if elector is not None and elector.is_held_by_other else ""
        return Freshness(unlisted=unlisted, lost=lost, lost_for=seconds, leads=self.leading.is_set(), holder=holder)

    async def _wait_synced(self) -> None:
        for part in self._parts:
            await part.wait_for_sync()
        self.serving.set()

    async def _lead(self, barrier: BarrierControllers) -> None:
        """Runs what only the leader runs, once the caches are filled: a missing object must be missing in the API."""
        await self.serving.wait()
        _log.info("leading", identity=self.options.identity)
        barrier.start()
        self.leading.set()
        if not self.options.leader_elect:
            self._metrics.set_leading(True)
        try:
            async with asyncio.TaskGroup() as tasks:
                for run in (run for part in self._parts for run in part.runnables):
                    self._start(tasks, run(), run.__qualname__)
        finally:
            self.leading.clear()

    def _start(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, None], name: str) -> None:
        self._liveness.watch_task(tasks.create_task(work, name=name))

    def _groups(self, around: ControllerDependencies, barrier: BarrierControllers) -> setup.PodGroupControllers | None:
        """Pod groups, if enabled."""
        if not self.options.groups.enabled:
            return None
        return setup.PodGroupControllers(
            self.options.groups,
            around,
            keep_crds=self.options.pod_group_crds,
            jobset=lambda namespace, name: barrier.cache.get_workload(GangKey(namespace, name)),
        )

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
            on_status=self._metrics.set_leading,
            on_problem=self._metrics.log_lease_problem,
        )

    async def _serve(self) -> HealthServer | None:
        options = self.options
        if options.port is None:
            return None
        health = HealthServer(options.registry, healthy=self._liveness.check, ready=self._not_synced)
        await health.start(options.host, options.port)
        self.url = health.url
        return health
