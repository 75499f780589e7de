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

from controllers import watches
from controllers.announcements import Announcements
from controllers.closer import Closer
from controllers.crd import CrdReconciler
from controllers.duty import Duty
from controllers.gang import GangReconciler
from controllers.gates import Gates
from controllers.groups import part
from controllers.health import Health
from controllers.heralds import HERALDS, Heralds
from controllers.index import Index
from controllers.keys import Key
from controllers.liveness import Liveness
from controllers.loop import Loop, LoopMetrics
from controllers.measures import Measures
from controllers.page import wiring
from controllers.page.options import PageOptions
from controllers.page.server import Page
from controllers.patches import CONCURRENCY, Patches
from controllers.plumbing import Plumbing
from controllers.queue import WorkQueue
from controllers.statuses import PROGRESS_EVERY, Statuses
from controllers.stream import Stream
from controllers.told import Told
from jobset_gate import names
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.lease import LeaderElector
from jobset_gate.kube.resources import CRDS, JOBSETS
from jobset_gate.kube.store import Version
from jobset_gate.settings import Groups

Work = Callable[[], Coroutine[Any, Any, None]]

OTHER_CONNECTIONS = 32
"""To the API server, for watches and the lease: however many writes hang, those go through."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
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
    patch_concurrency: int = CONCURRENCY
    extend_crd: bool = True
    groups: Groups = field(default_factory=lambda: Groups(enabled=False))
    """Pod groups; nothing of theirs is watched unless they are enabled."""
    pod_group_crds: bool = True
    """Whether the CRDs of PodGroups are made where they are missing, and kept up to date where they are ours."""
    progress_every: float = PROGRESS_EVERY
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

    def __init__(self, access: Access, options: Options | None = None) -> None:
        self.options = options or Options()
        self._access = access
        self._plumbing = Plumbing(self.options.registry, access.server)
        self._stream: Stream | None = None
        self.page: Page | None = None
        """The status page, once it is made."""
        self.url = ""
        """Where health and metrics are served, once they are."""
        self.leading = asyncio.Event()
        """Set while this replica leads and works."""
        self._liveness = Liveness(self.leading)
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
        connections = self.options.workers + HERALDS + self.options.patch_concurrency + OTHER_CONNECTIONS
        if self.options.groups.enabled:
            connections += part.connections(self.options.groups)
        if self.options.page_port:
            connections += wiring.CONNECTIONS
        async with Client(self._access, observe=self._plumbing.request, connections=connections) as client:
            elector = self._elector(client)
            writer = client.guarded(elector.guard) if elector else client
            gangs: WorkQueue[Key] = self._plumbing.queue("gang")
            crds: WorkQueue[str] = self._plumbing.queue("crd")
            told = Told()
            duty = Duty(gangs)
            index = Index(duty.add, duty.add_after, told, self._touched)
            informers = self._informers(client, index, crds)
            gates = Gates(writer.impatient(), index, watches.gate_witness(informers))
            metrics = LoopMetrics(self.options.registry)
            statuses = self._statuses(writer, watches.jobset_version(informers))
            silent = watches.silence_of_pods(informers)
            works = self._works(
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
                        self._watch(tasks, informer.run(), f"informer of {informer.resource.plural}")
                    self._watch(tasks, self._fill(informers, groups), "filling")
                    if self.page is not None:
                        self._watch(tasks, self.page.run(), "status page")
                    begin = partial(duty.begin, index.keys)
                    lead = partial(self._lead, [*works, *(groups.works if groups else ())], begin)
                    self._watch(tasks, elector.run(lead) if elector else lead(), "leading")
            finally:
                if health is not None:
                    await health.stop()

    async def _fill(self, informers: Sequence[watches.AnyInformer], groups: part.Groups | None) -> None:
        for informer in informers:
            if informer.resource not in (JOBSETS, CRDS):  # those come when JobSet is installed
                await informer.wait_synced()
        if groups is not None:
            await groups.filled()
        self.serving.set()

    async def _lead(self, works: Sequence[Work], begin: Callable[[], None]) -> None:
        """What only the leader does; not before its caches are full, so that nobody is missing merely in them."""
        await self.serving.wait()
        _log.info("leading", identity=self.options.identity)
        begin()
        self.leading.set()
        if not self.options.leader_elect:
            self._plumbing.leading(True)
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in works:
                    self._watch(tasks, work(), work.__qualname__)
        finally:
            self.leading.clear()

    def _watch(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, None], name: str) -> None:
        self._liveness.watch(tasks.create_task(work, name=name))

    def _works(
        self,
        client: Client,
        writer: Client,
        index: Index,
        gangs: WorkQueue[Key],
        crds: WorkQueue[str],
        *,
        gates: Gates,
        statuses: Statuses,
        silent: Callable[[], float],
        told: Told,
        metrics: LoopMetrics,
    ) -> Sequence[Work]:
        """The patches, the gate stream and the three loops, with all that they need."""
        options = self.options
        measures = Measures(options.registry, options.clock)
        book = Announcements(index, options.clock, told)
        measures.open_requests(lambda: book.open)
        patches = Patches(writer, concurrency=options.patch_concurrency, sent=measures.patched, told=told)
        words: WorkQueue[Key] = self._plumbing.queue("status")
        heralds = Heralds(statuses, words, again=options.progress_every, failed=metrics.errors.labels("status").inc)
        reconciler = GangReconciler(
            index=index,
            gates=gates,
            announcements=book,
            patches=patches,
            heralds=heralds,
            closer=Closer(client),
            measures=measures,
            now=options.clock,
            silent=silent,
        )
        gang_loop = Loop("gang", gangs, reconciler.reconcile, metrics, workers=options.workers)
        word_loop = Loop("status", words, heralds.reconcile, metrics, workers=HERALDS)
        crd_loop = Loop("crd", crds, CrdReconciler(writer, self._plumbing.crd).reconcile, metrics, workers=1)
        self._liveness.asks(gang_loop.trouble, word_loop.trouble, crd_loop.trouble)
        works: list[Work] = [patches.run, gang_loop.run, word_loop.run, crd_loop.run]
        if options.stream_port is not None:
            self._stream = Stream(
                book,
                host=options.stream_host,
                port=options.stream_port,
                outcome=measures.stream_request,
                listening=self.streaming,
            )
            works.append(self._stream.run)
        return works

    def _statuses(self, writer: Client, version: Callable[[Key], Version | None]) -> Statuses:
        return Statuses(writer.impatient(), self.options.clock, self.options.progress_every, version=version)

    def _informers(self, client: Client, index: Index, crds: WorkQueue[str]) -> list[watches.AnyInformer]:
        options = self.options
        crd_changed = partial(crds.add, names.JOBSET_CRD) if options.extend_crd else None
        return watches.informers(
            client, index, crd_changed, namespace=options.watch_namespace, on_problem=self._plumbing.problem
        )

    def _groups(self, client: Client, writer: Client, index: Index, metrics: LoopMetrics) -> part.Groups | None:
        """Pod groups, if they are kept at all."""
        options = self.options
        if not options.groups.enabled:
            return None
        around = part.Surroundings(
            client=client,
            writer=writer,
            namespace=options.watch_namespace,
            clock=options.clock,
            registry=options.registry,
            plumbing=self._plumbing,
            metrics=metrics,
            on_problem=self._plumbing.problem,
            keep_crds=options.pod_group_crds,
            jobset=lambda namespace, name: index.jobset(Key(namespace, name)),
        )
        groups = part.Groups(options.groups, around)
        self._liveness.asks(*groups.troubles)
        return groups

    def _make_page(
        self,
        client: Client,
        index: Index,
        informers: Sequence[watches.AnyInformer],
        groups: part.Groups | None,
        elector: LeaderElector | None,
    ) -> Page | None:
        options = self.options
        if not options.page_port:
            return None
        around = wiring.Surroundings(
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
        return wiring.page(listen, around)

    def _touched(self, key: Key) -> None:
        if self.page is not None:
            self.page.touched(key)

    def _elector(self, client: Client) -> LeaderElector | None:
        options = self.options
        if not options.leader_elect:
            return None
        return LeaderElector(
            client,
            names.LEASE,
            options.namespace,
            options.identity,
            duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry=options.retry,
            clock=options.clock,
            on_status=self._plumbing.leading,
            on_problem=self._plumbing.lease_trouble,
        )

    async def _serve(self, informers: list[watches.AnyInformer], groups: part.Groups | None) -> Health | None:
        options = self.options
        if options.port is None:
            return None

        def ready() -> str:
            return watches.unlisted(informers) or ("" if groups is None else groups.unlisted())

        health = Health(
            options.registry, healthy=self._liveness.check, ready=ready, host=options.host, port=options.port
        )
        await health.start()
        self.url = health.url
        return health
