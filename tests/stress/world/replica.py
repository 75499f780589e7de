"""One controller process of this world: the real index, queue, loop, reconciler and patches on late and torn views.

Each kind of object comes through an inbox of its own, so that one may be late while another is not. What the real
informer does with an event (is it news? apply it, tell the index) is done here with the informer's own store.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry

from controllers.barrier.cache import GangCache
from controllers.barrier.live_reader import LiveReader
from controllers.barrier.metrics import GangMetrics
from controllers.barrier.reconciler import GangReconciler
from controllers.barrier.status import GangStatusWriter
from controllers.barrier.stream.delivery import DeliveryLog
from controllers.barrier.stream.registry import WaiterRegistry
from controllers.barrier.verdict_patcher import VerdictPatcher
from controllers.barrier.verdict_store import VerdictStore
from controllers.barrier.workloads import WORKLOADS
from jobset_gate.barrier import lws_wire, wire
from jobset_gate.barrier.model import GangKey, GangSnapshot
from jobset_gate.barrier.source import Source
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, STATEFUL_SETS, Resource
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.store import Staleness, Store
from jobset_gate.runtime.workqueue import Requeue, WorkQueue
from jobset_gate.sources import decode, lws, startgroup
from tests.fakes.instant_loop import InstantLoop
from tests.fakes.memory_api import WATCHED, Api, Json
from tests.fakes.memory_client import Answer, Call, MemoryClient
from tests.fakes.wire_objects import decoded
from tests.stress.world.objects import JOBSET

KINDS: dict[Resource, tuple[Any, Callable[[Any], Any]]] = {
    JOBSETS: (wire.JobSet, decode.jobset),
    JOBS: (wire.Job, decode.job),
    PODS: (wire.Pod, decode.pod),
    CONFIGMAPS: (wire.ConfigMap, decode.config_map),
    STATEFUL_SETS: (lws_wire.WorkerSet, lws.worker_set),
}
"""Of each the shape on the wire, and what reads it."""
PODS_ALONE = {"startgroup": (wire.MemberPod, startgroup.pod), "lws": (wire.MemberPod, lws.pod)}
"""The same of pods that are gated one by one, by their source."""
METRICS = ControllerMetrics(CollectorRegistry())
SILENCE = 70.0
"""Seconds after which an informer notices that a watch is half open (faults.md 2)."""


@dataclass(slots=True)
class PendingCall:
    """A call that waits for its answer."""

    call: Call
    answer: asyncio.Future[Answer]


@dataclass(frozen=True, slots=True)
class _Event:
    """One event of a watch; `written_at`: when the API server wrote it."""

    what: str
    body: Json
    written_at: float


@dataclass(frozen=True, slots=True)
class _List:
    """All of a kind, as it was at a version; `start`: when the list began."""

    start: float
    version: int
    objects: list[Any]
    raw: list[Json]


@dataclass(frozen=True, slots=True)
class RawView:
    """Objects as a controller got them by watches or reads, and the UIDs of the pods whose requests it holds."""

    jobset: Json | None = None
    jobs: Sequence[Json] = ()
    pods: Sequence[Json] = ()
    announced: frozenset[str] = frozenset()


@dataclass(slots=True)
class View:
    """What the pass under way, or the last one, decides on."""

    raw: RawView = RawView()
    closer: bool = False
    """Jobs and pods were read from the API for it."""
    recalled: str | None = None
    """The message of the JobSet's condition, once that was."""


class _RecordingCache(GangCache):
    def __init__(
        self, view: View, queue: WorkQueue[GangKey], deliveries: DeliveryLog, raw: Callable[[], RawView]
    ) -> None:
        super().__init__(queue.add, queue.add_after, deliveries)
        self._view, self._raw = view, raw

    def snapshot(self, key: GangKey) -> GangSnapshot | None:
        self._view.raw, self._view.closer, self._view.recalled = self._raw(), False, None
        return super().snapshot(key)

    def peek(self, key: GangKey) -> GangSnapshot | None:
        """What was looked up in the API meanwhile is newer."""
        found, before = super().peek(key), self._view.raw
        if found is not None:
            raw = self._raw()
            self._view.raw = replace(raw, jobs=before.jobs, pods=before.pods) if self._view.closer else raw
        return found


class _RecordingLiveReader(LiveReader):
    def __init__(
        self, view: View, client: Client, staleness: Callable[[Source], float], looked_up: Mapping[Resource, list[Json]]
    ) -> None:
        super().__init__(client, staleness)
        self._view, self._looked_up = view, looked_up

    async def refresh(self, seen: GangSnapshot, *, reasons: bool = True) -> GangSnapshot:
        found = await super().refresh(seen, reasons=reasons)
        self._view.closer = True
        self._view.raw = replace(self._view.raw, jobs=self._looked_up.get(JOBS, ()), pods=self._looked_up[PODS])
        return found

    async def verify_config_map(self, seen: GangSnapshot) -> GangSnapshot:
        found = await super().verify_config_map(seen)
        if seen.workload.source.gates_pods:
            self._view.closer = True
            self._view.raw = replace(self._view.raw, pods=self._looked_up[PODS])
        self._view.recalled = found.workload.condition.message if found.workload.condition is not None else ""
        return found


class Replica:
    """Runs after `boot`. Its calls wait until `answer`."""

    def __init__(self, api: Api, loop: InstantLoop, now: Callable[[], float], source: str) -> None:
        self.source, self._workloads = source, WORKLOADS.get(source, JOBSETS)
        self._kinds = KINDS | {PODS: PODS_ALONE.get(source, KINDS[PODS])}
        self.api, self._loop, self._true_now = api, loop, now
        self.clock_ahead = 0.0
        self.memory = MemoryClient(api, self._answer_call)
        self.pending_calls: list[PendingCall] = []
        self.inbox: dict[Resource, deque[_Event]] = {kind: deque() for kind in WATCHED}
        self._lists: dict[Resource, _List] = {}
        """Lists that are under way; meanwhile there is no watch of that kind."""
        self.torn: set[Resource] = set()
        """Kinds whose something was lost: only a list can put that right."""
        self.disordered: set[Resource] = set()
        """Kinds whose events came in another order than that of an API server, since their last list."""
        self.view = View()
        self.known: dict[Resource, dict[str, Json]] = {kind: {} for kind in WATCHED}
        """Objects by name as its watches last showed them, raw."""
        self._looked_up: dict[Resource, list[Json]] = {}
        """What it has last read of each kind without its watches."""
        self.memory.read = self._looked_up.__setitem__
        self.sent: Callable[[Call], None] = lambda _: None
        """Called for each request when it is sent."""
        self.silent: dict[Resource, float] = {}
        """Watches that are half open: nothing comes, and nobody has noticed; since when."""
        self.held: Counter[str] = Counter()
        """UIDs of pods, and how many requests of theirs the process holds open."""
        self.bugs: list[BaseException] = []
        self._task: asyncio.Task[None] | None = None
        api.watchers.append(lambda kind, what, body: self.inbox[kind].append(_Event(what, body, now())))

    # --- Life ------------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self._task is not None

    def now(self) -> float:
        return self._true_now() + self.clock_ahead

    def boot(self) -> None:
        """A new process with empty memory, that lists everything."""
        self._loop.do(self._boot)

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any more; pending calls were never sent."""
        if self._task is None:
            return
        self._task.cancel()
        self._task = None
        self._loop.settle()
        self.pending_calls.clear()
        self._lists.clear()

    def _boot(self) -> None:
        self.queue: WorkQueue[GangKey] = WorkQueue(rng=random.Random(0))  # noqa: S311 - jitter
        self.view = View()
        self.known = {kind: {} for kind in WATCHED}
        self.silent.clear()
        self.held = Counter()
        reported = DeliveryLog()
        self.index = _RecordingCache(self.view, self.queue, reported, self._raw)
        self._handlers: dict[Resource, Callable[[Any], None]] = {
            JOBSETS: self.index.on_workload,
            JOBS: self.index.on_job,
            PODS: self.index.on_pod,
            CONFIGMAPS: self.index.on_config_map,
            STATEFUL_SETS: self.index.on_worker_set,
        }
        self._stores: dict[Resource, Store[Any, Any]] = {kind: Store(self._kinds[kind][1]) for kind in WATCHED}
        self._staleness = {kind: Staleness(self.now) for kind in WATCHED}
        self.book = WaiterRegistry(self.index, self.now, reported)
        self.patches = VerdictPatcher(self.memory.client, concurrency=2, delivered=reported)
        self.words: WorkQueue[GangKey] = WorkQueue(rng=random.Random(0))  # noqa: S311 - jitter
        workloads = self._stores[self._workloads]
        store = VerdictStore(self.memory.without_retries(), self.index, self._stores[CONFIGMAPS])
        self.writer = GangStatusWriter(
            self.memory.without_retries(),
            self.now,
            self.words,
            version=lambda key: workloads.version_of((key.namespace, key.name)),
            annotate=store.annotate_condition,
        )
        reconciler = GangReconciler(
            cache=self.index,
            verdict_store=store,
            waiters=self.book,
            patcher=self.patches,
            status=self.writer,
            live_reader=_RecordingLiveReader(
                self.view, self.memory.client, lambda _: self._staleness[PODS].seconds, self._looked_up
            ),
            metrics=_metrics(self.source),
            now=self.now,
        )
        for kind in WATCHED:
            self._begin_list(kind)
            self._end_list(kind)
        self._task = asyncio.get_running_loop().create_task(self._run(reconciler))

    async def _run(self, reconciler: GangReconciler) -> None:
        async def reconcile(key: GangKey) -> float | None:
            try:
                return await reconciler.reconcile(key)
            except (Requeue, KubeError):
                raise
            except Exception as bug:
                self.bugs.append(bug)
                raise

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.patches.run())
            tasks.create_task(Controller("gang", self.queue, reconcile, METRICS, workers=2).run())
            tasks.create_task(Controller("status", self.words, self.writer.reconcile, METRICS, workers=2).run())

    # --- What it sees ----------------------------------------------------------------------------------------------

    def hear(self, kind: Resource, many: int = 1_000) -> None:
        """So many events of this kind arrive."""
        if kind in self.silent:
            return
        if self.listing(kind):
            self.end_list(kind)
        if self.alive and self.inbox[kind]:
            self._loop.do(lambda: self._hear(kind, many))

    def unheard(self) -> list[Resource]:
        """The kinds whose events or lists are on their way."""
        if not self.alive:
            return []
        return [kind for kind in WATCHED if (self.inbox[kind] or kind in self._lists) and kind not in self.silent]

    def lose(self, kind: Resource) -> None:
        """The next event arrives as a line that nobody can read."""
        self.inbox[kind].popleft()
        self.torn.add(kind)
        self._staleness[kind].observe_loss()

    def disorder(self, kind: Resource) -> None:
        """The last event comes before all others."""
        self.inbox[kind].rotate(1)
        self.disordered.add(kind)

    def fall_silent(self, kind: Resource) -> None:
        """This watch is half open from now on: nothing comes, and nothing says that it ended."""
        if self.alive and not self.listing(kind):
            self.silent.setdefault(kind, self._true_now())

    def notice_silence(self, after: float = SILENCE) -> None:
        """The informer gives up watches that were silent for so long, and lists again (faults.md 2)."""
        for kind, since in list(self.silent.items()):
            if self._true_now() - since >= after:
                del self.silent[kind]
                self.begin_list(kind)
                self.end_list(kind)

    def listing(self, kind: Resource) -> bool:
        return kind in self._lists

    def begin_list(self, kind: Resource) -> None:
        """The informer lists this kind again: the API has made its answer, and it is on its way."""
        if self.alive:
            self._begin_list(kind)

    def end_list(self, kind: Resource) -> None:
        """The answer arrives; the next watch tells of what came after it."""
        if self.alive:
            self._loop.do(lambda: self._end_list(kind))

    def _hear(self, kind: Resource, many: int) -> None:
        inbox, store = self.inbox[kind], self._stores[kind]
        for _ in range(min(many, len(inbox))):
            event = inbox.popleft()
            body = event.body
            shaped = self._shaped(kind, body)
            if event.what == "DELETED":
                change = store.remove(shaped.metadata)
                if change is not None:
                    self.known[kind].pop(body["metadata"]["name"], None)
            else:
                change = store.put(shaped)
                self._staleness[kind].observe_event(event.written_at)
                if store.has_version(shaped.metadata):
                    self.known[kind][body["metadata"]["name"]] = body
            if change is not None:
                self._handlers[kind](change)

    def _begin_list(self, kind: Resource) -> None:
        self.inbox[kind].clear()
        self.torn.discard(kind)
        self._stores[kind].begin_list()
        raw = self.api.visible(kind)
        self._lists[kind] = _List(self._loop.now, self.api.version, [self._shaped(kind, body) for body in raw], raw)

    def _end_list(self, kind: Resource) -> None:
        listed, arrived = {}, self._lists.pop(kind)
        self._staleness[kind].observe_list(arrived.start)
        self.disordered.discard(kind)
        for shaped in arrived.objects:
            listed[(shaped.metadata.namespace, shaped.metadata.name)] = self._stores[kind].listed(shaped)
        self.known[kind] = {body["metadata"]["name"]: body for body in arrived.raw}
        for change in self._stores[kind].replace(listed, str(arrived.version)):
            self._handlers[kind](change)

    # --- What it asks ----------------------------------------------------------------------------------------------

    def answer(self, number: int = 0, answer: Answer = Answer.DONE) -> None:
        """One pending call goes through, or not."""
        if self.pending_calls:
            waiting = self.pending_calls.pop(number % len(self.pending_calls))
            waiting.answer.set_result(answer)
            self._loop.settle()

    async def _answer_call(self, call: Call) -> Answer:
        self.sent(call)
        waiting = PendingCall(call, asyncio.get_running_loop().create_future())
        self.pending_calls.append(waiting)
        return await waiting.answer

    def _raw(self) -> RawView:
        """As the watches showed it, at this moment."""
        jobset, held = self.known[self._workloads].get(JOBSET), frozenset(+self.held)
        return RawView(jobset, [*self.known[JOBS].values()], [*self.known[PODS].values()], held)

    def _shaped(self, kind: Resource, body: Json) -> Any:
        return decoded(body, self._kinds[kind][0])


@cache
def _metrics(source: str) -> GangMetrics:
    """The same for all schedules: nothing reads them here, and to make them takes a tenth of a schedule."""
    return GangMetrics(CollectorRegistry(), sources=[source])
