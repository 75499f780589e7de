"""One controller process of this world: the real index, queue, loop, reconciler and patches on late and torn views.

Each kind of object comes through an inbox of its own, so that one may be late while another is not. What the real
informer does with an event (is it news? apply it, tell the index) is done here with the informer's own store.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from controllers.announcements import Announcements
from controllers.closer import Closer
from controllers.gang import GangReconciler
from controllers.gates import Gates, LookAgain
from controllers.heralds import Heralds
from controllers.index import Index
from controllers.keys import Key
from controllers.loop import Loop, LoopMetrics
from controllers.measures import Measures
from controllers.patches import Patches
from controllers.queue import WorkQueue
from controllers.statuses import Statuses
from controllers.told import Told
from jobset_gate import read, wire
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.kube.store import Store, Version
from jobset_gate.kube.witness import Witness
from jobset_gate.model import GangSeen
from tests.jobset_gate.world.api import WATCHED, Api, Json
from tests.jobset_gate.world.client import Answer, Call, MemoryClient
from tests.jobset_gate.world.loop import InstantLoop

SHAPES: dict[Resource, Any] = {JOBSETS: wire.JobSet, JOBS: wire.Job, PODS: wire.Pod, CONFIGMAPS: wire.ConfigMap}
READERS: dict[Resource, Callable[[Any], Any]] = {
    JOBSETS: read.jobset,
    JOBS: read.job,
    PODS: read.pod,
    CONFIGMAPS: read.gate,
}
METRICS = LoopMetrics(CollectorRegistry())


@dataclass(slots=True)
class Waiting:
    """A call that stands at the door."""

    call: Call
    answer: asyncio.Future[Answer]


@dataclass(frozen=True, slots=True)
class _List:
    """All of a kind, as it was at a version."""

    version: int
    objects: list[Any]


@dataclass(slots=True)
class View:
    """What the pass under way, or the last one, decides on."""

    seen: GangSeen | None = None
    at: float = 0.0
    """The true time at which it looked."""
    closer: bool = False
    """Jobs and pods were read from the API for it."""
    recalled: bool = False
    """The JobSet's condition was."""
    held: frozenset[str] = frozenset()
    """UIDs of the pods that really held a request open then."""


class _NotingIndex(Index):
    def __init__(
        self, view: View, queue: WorkQueue[Key], told: Told, true_now: Callable[[], float], held: Counter[str]
    ) -> None:
        super().__init__(queue.add, queue.add_after, told)
        self._view, self._true_now, self._held = view, true_now, held

    def observe(self, key: Key) -> GangSeen | None:
        self._view.seen, self._view.at = super().observe(key), self._true_now()
        self._view.closer = self._view.recalled = False
        self._view.held = frozenset(+self._held)
        return self._view.seen

    def announced(self, key: Key) -> dict[str, float]:
        found = super().announced(key)
        assert self._view.seen is not None
        self._view.seen = msgspec.structs.replace(self._view.seen, announced=found)
        self._view.held = frozenset(+self._held)
        return found


class _NotingCloser(Closer):
    def __init__(self, view: View, client: Client) -> None:
        super().__init__(client)
        self._view = view

    async def look(self, seen: GangSeen, *, reasons: bool = True) -> GangSeen:
        self._view.seen, self._view.closer = await super().look(seen, reasons=reasons), True
        return self._view.seen

    async def recall(self, seen: GangSeen) -> GangSeen:
        self._view.seen, self._view.recalled = await super().recall(seen), True
        return self._view.seen

    async def settle(self, seen: GangSeen) -> GangSeen:
        self._view.seen, self._view.recalled = await super().settle(seen), True
        return self._view.seen


class Replica:
    """Runs after `boot`. Its calls wait at the door until `answer`."""

    def __init__(self, name: str, api: Api, loop: InstantLoop, now: Callable[[], float]) -> None:
        self.name, self.api, self._loop, self._true_now = name, api, loop, now
        self.clock_ahead = 0.0
        self.memory = MemoryClient(api, self._door)
        self.door: list[Waiting] = []
        self.inbox: dict[Resource, deque[tuple[str, Json]]] = {kind: deque() for kind in WATCHED}
        self._lists: dict[Resource, _List] = {}
        """Lists that are under way; meanwhile there is no watch of that kind."""
        self.torn: set[Resource] = set()
        """Kinds of which something was lost: only a list can put that right."""
        self.view = View()
        self.held: Counter[str] = Counter()
        """UIDs of pods, and how many requests of theirs the process holds open."""
        self.bugs: list[BaseException] = []
        self._task: asyncio.Task[None] | None = None
        api.watchers.append(lambda kind, what, body: self.inbox[kind].append((what, body)))

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
        """SIGKILL: nothing of it runs any more; calls at the door were never sent."""
        if self._task is None:
            return
        self._task.cancel()
        self._task = None
        self._loop.settle()
        self.door.clear()
        self._lists.clear()

    def _boot(self) -> None:
        self.queue: WorkQueue[Key] = WorkQueue(rng=random.Random(0))  # noqa: S311 - jitter
        self.view = View()
        self.held = Counter()
        told = Told()
        self.index = _NotingIndex(self.view, self.queue, told, self._true_now, self.held)
        self._handlers: dict[Resource, Callable[[Any], None]] = {
            JOBSETS: self.index.on_jobset,
            JOBS: self.index.on_job,
            PODS: self.index.on_pod,
            CONFIGMAPS: self.index.on_gate,
        }
        self._stores: dict[Resource, Store[Any]] = {kind: Store() for kind in WATCHED}
        witness = Witness(self._stores[CONFIGMAPS], read.gate)
        self.book = Announcements(self.index, self.now, told)
        self.patches = Patches(self.memory.client, concurrency=2, told=told)
        self.words: WorkQueue[Key] = WorkQueue(rng=random.Random(0))  # noqa: S311 - jitter
        jobsets = self._stores[JOBSETS]
        statuses = Statuses(
            self.memory.client, self.now, version=lambda key: jobsets.version((key.namespace, key.name))
        )
        self.heralds = Heralds(statuses, self.words)
        reconciler = GangReconciler(
            index=self.index,
            gates=Gates(self.memory.client, self.index, witness),
            announcements=self.book,
            patches=self.patches,
            heralds=self.heralds,
            closer=_NotingCloser(self.view, self.memory.client),
            measures=Measures(CollectorRegistry()),
            now=self.now,
        )
        for kind in WATCHED:
            self._begin_list(kind)
            self._end_list(kind)
        self._task = asyncio.get_running_loop().create_task(self._run(self._noting_bugs(reconciler.reconcile)))

    async def _run(self, reconcile: Callable[[Key], Awaitable[float | None]]) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.patches.run())
            tasks.create_task(Loop("gang", self.queue, reconcile, METRICS, workers=2).run())
            tasks.create_task(Loop("status", self.words, self.heralds.reconcile, METRICS, workers=2).run())

    def _noting_bugs(
        self, reconcile: Callable[[Key], Awaitable[float | None]]
    ) -> Callable[[Key], Awaitable[float | None]]:
        async def noting(key: Key) -> float | None:
            try:
                return await reconcile(key)
            except (LookAgain, KubeError):
                raise
            except Exception as bug:
                self.bugs.append(bug)
                raise

        return noting

    # --- What it sees ----------------------------------------------------------------------------------------------

    def hear(self, kind: Resource, many: int = 1_000) -> None:
        """So many events of this kind arrive."""
        if self.listing(kind):
            self.end_list(kind)
        if self.alive and self.inbox[kind]:
            self._loop.do(lambda: self._hear(kind, many))

    def listing(self, kind: Resource) -> bool:
        return kind in self._lists

    def begin_list(self, kind: Resource) -> None:
        """The informer lists this kind anew: the API has made its answer, and it is on its way."""
        if self.alive:
            self._begin_list(kind)

    def end_list(self, kind: Resource) -> None:
        """The answer arrives; the next watch tells of what came after it."""
        if self.alive:
            self._loop.do(lambda: self._end_list(kind))

    def _hear(self, kind: Resource, many: int) -> None:
        inbox, store = self.inbox[kind], self._stores[kind]
        for _ in range(min(many, len(inbox))):
            what, body = inbox.popleft()
            shaped = _shaped(kind, body)
            if what == "DELETED":
                change = store.remove(shaped.metadata)
            elif store.is_news(shaped.metadata):
                change = store.put(shaped.metadata, READERS[kind](shaped))
            else:
                continue
            if change is not None:
                self._handlers[kind](change)

    def _begin_list(self, kind: Resource) -> None:
        self.inbox[kind].clear()
        self.torn.discard(kind)
        self._stores[kind].list_begins()
        self._lists[kind] = _List(self.api.version, [_shaped(kind, body) for body in self.api.visible(kind)])

    def _end_list(self, kind: Resource) -> None:
        listed, arrived = {}, self._lists.pop(kind)
        for shaped in arrived.objects:
            meta = shaped.metadata
            listed[(meta.namespace, meta.name)] = (Version(meta.uid, meta.resource_version), READERS[kind](shaped))
        for change in self._stores[kind].replace(listed, str(arrived.version)):
            self._handlers[kind](change)

    # --- What it asks ----------------------------------------------------------------------------------------------

    def answer(self, number: int = 0, answer: Answer = Answer.DONE) -> None:
        """One call at the door goes through, or not."""
        if self.door:
            waiting = self.door.pop(number % len(self.door))
            waiting.answer.set_result(answer)
            self._loop.settle()

    async def _door(self, call: Call) -> Answer:
        waiting = Waiting(call, asyncio.get_running_loop().create_future())
        self.door.append(waiting)
        return await waiting.answer


def _shaped(kind: Resource, body: Json) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=SHAPES[kind])
