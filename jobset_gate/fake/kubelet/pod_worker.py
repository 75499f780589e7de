"""One pod on its node, from its first container to its last: a state machine driven by timers and events."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Protocol

from jobset_gate import names
from jobset_gate.fake.barrier_rule import BarrierExit
from jobset_gate.fake.kubelet.barrier_container import BarrierContainer
from jobset_gate.fake.kubelet.barrier_streams import BarrierStreams
from jobset_gate.fake.kubelet.behaviour import Behaviour, FakeNode, FaultScript
from jobset_gate.fake.kubelet.mounts import ConfigMapMounts
from jobset_gate.fake.kubelet.pod_status import (
    ContainerRecord,
    PodRecord,
    RunningState,
    State,
    TerminatedState,
    WaitingState,
)
from jobset_gate.fake.kubelet.pods import ContainerSpec, KubeletPod

FIRST_PULL_ERROR_SECONDS = 1.0  # from ErrImagePull to ImagePullBackOff
_NOT_YET = ("PodInitializing", "ContainerCreating")  # of containers whose turn has not come
KILLED = 137
STOPPED = 143


class PodWorkerHost(Protocol):
    """What a run needs of the kubelets."""

    script: FaultScript
    mounts: ConfigMapMounts
    streams: BarrierStreams
    rng: random.Random

    def now(self, node: FakeNode) -> float: ...
    def write(self, run: PodWorker) -> None:
        """Its status has changed."""


class PodWorker:
    """Everything here is synchronous; `host.write` is called after each change that a kubelet would report."""

    def __init__(self, host: PodWorkerHost, pod: KubeletPod, node: FakeNode) -> None:
        self.pod = pod
        self.node = node
        fresh = WaitingState(_initial(pod))
        self.book = PodRecord(pod.uid, pod.restart_policy, _books(pod.init, fresh), _books(pod.mains, fresh))
        self.leaving = False
        self.gone = False
        self._host = host
        self._timers: set[asyncio.TimerHandle] = set()
        self._pulling: set[str] = set()
        self._specs = {container.name: container for container in [*pod.init, *pod.mains]}
        self._gate: BarrierContainer | None = None

    # --- What it is told --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """The kubelet has seen the pod for the first time."""
        self.book.started = self._now()
        self._write()
        slow = self._host.script.slow_start(self.pod)
        if slow:
            self.later(slow, self._prepare)
            return
        self._prepare()

    def update(self, pod: KubeletPod) -> None:
        """A newer version of the pod. Changed labels or annotations refresh its volumes, ConfigMap included."""
        old, self.pod = self.pod, pod
        if pod.deleting and not self.leaving:
            self._leave()
            return
        if (old.annotations, old.labels) != (pod.annotations, pod.labels):
            self.later(self._behaviour.annotation_delay, self.refresh)

    def refresh(self) -> None:
        """The volumes show what is current now."""
        if self._gate is not None:
            self._gate.read()

    def restart(self, container: str, code: int = KILLED) -> bool:
        """Kill a running container; what follows is up to the restart policy. False: it does not run."""
        book = self._book(container)
        if book is None or not book.running:
            return False
        self._ended(book, BarrierExit(code))
        return True

    def reboot(self) -> None:
        """The sandbox is lost: all init containers run again, then the main ones, in the same pod."""
        self._cancel()
        if self.leaving:
            self._left()  # a pod that is being deleted gets no other
            return
        for book in self._books():
            if not isinstance(book.state, WaitingState):
                book.last = self._terminated(book, BarrierExit(KILLED)) if book.running else book.last
                book.restarts += 1
                book.state = WaitingState("PodInitializing")
        self._write()
        self._prepare()

    def retry(self) -> None:
        """Trouble was lifted: pull again what could not be pulled."""
        for name in list(self._pulling):
            book = self._book(name)
            stuck = book is not None and isinstance(book.state, WaitingState) and book.state.reason not in _NOT_YET
            if stuck and book is not None and not self._host.script.cannot_pull(self.pod, name):
                self._pull(book)

    def drop(self) -> None:
        """Its node is gone or the pod is: no timer of it fires any more."""
        self.gone = True
        self._cancel()

    # --- Starting ---------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Volumes are mounted first, then the sandbox is made; only then do containers start."""
        self._host.mounts.mount(self.pod.config_map, self.pod.uid, self.refresh)
        self._gate = BarrierContainer(self, self._host.mounts)
        spread = self._host.rng.uniform(0, self._behaviour.spread) if self._behaviour.spread else 0.0
        self.later(self._behaviour.sandbox_seconds + spread, self._sandbox)

    def _sandbox(self) -> None:
        self.book.sandbox = True
        self._step()

    def _step(self) -> None:
        """Start what may start now."""
        for book in self.book.init:
            if book.passed:
                continue
            self._begin(book)
            return
        for book in self.book.mains:
            self._begin(book)

    def _begin(self, book: ContainerRecord) -> None:
        fresh = isinstance(book.state, WaitingState) and book.state.reason in _NOT_YET
        if fresh and book.name not in self._pulling:
            self._pull(book)

    def _pull(self, book: ContainerRecord) -> None:
        self._pulling.add(book.name)
        if self._host.script.cannot_pull(self.pod, book.name):
            failed = WaitingState("ErrImagePull", f'failed to pull image "{book.image}": not found')
            self._become(book, failed)
            backing_off = WaitingState("ImagePullBackOff", f'Back-off pulling image "{book.image}"')
            self.later(FIRST_PULL_ERROR_SECONDS, lambda: self._back_off(book, backing_off))
            return
        self.later(self._behaviour.pull_seconds, lambda: self._run(book))

    def _back_off(self, book: ContainerRecord, state: WaitingState) -> None:
        if book.name in self._pulling and isinstance(book.state, WaitingState):
            self._become(book, state)

    def _run(self, book: ContainerRecord) -> None:
        self._pulling.discard(book.name)
        self._become(book, RunningState(self._now()))
        if book.name == names.BARRIER_CONTAINER and book in self.book.init and self._gate is not None:
            self._gate.start(self._specs[book.name], lambda ending: self._ended(book, ending))
        elif book.sidecar:
            self._step()
        elif book in self.book.init:
            code = self._host.script.init_exit(self.pod, book.name, book.restarts)
            self._end_after(book, self._behaviour.init_seconds, code)
        else:
            seconds, code = self._host.script.main_end(self.pod, book.name)
            if seconds is not None:
                self._end_after(book, seconds, code)

    def _end_after(self, book: ContainerRecord, seconds: float, code: int) -> None:
        attempt = book.restarts

        def end() -> None:
            if book.running and book.restarts == attempt:
                self._ended(book, BarrierExit(code))

        self.later(seconds, end)

    # --- Ending -----------------------------------------------------------------------------------------------------

    def _ended(self, book: ContainerRecord, ending: BarrierExit) -> None:
        if book.name == names.BARRIER_CONTAINER and self._gate is not None:
            self._gate.stop()
        self._become(book, self._terminated(book, ending))
        if self.leaving:
            if not any(it.running for it in self._books()):
                self._cancel()  # no need to wait for the grace period's end
                self._left()
            return
        init = book in self.book.init
        if init and ending.code == 0 and not book.sidecar:
            if book.name == names.BARRIER_CONTAINER:
                self._host.mounts.unmount(self.pod.config_map, self.pod.uid)  # nobody reads it any more
            self._step()
        elif book.sidecar or (ending.code != 0 and self.pod.restart_policy != "Never"):
            self._restart_later(book)
        elif self.book.phase in ("Succeeded", "Failed"):
            self._over()

    def _restart_later(self, book: ContainerRecord) -> None:
        """At once the first time, then with a growing pause."""
        assert isinstance(book.state, TerminatedState)  # noqa: S101  # just ended
        ended = book.state
        pause = 0.0
        if book.restarts:
            longest = self._behaviour.longest_crash_backoff
            pause = min(longest, self._behaviour.crash_backoff * 2 ** (book.restarts - 1))
            text = f"back-off {pause:.0f}s restarting failed container={book.name} pod={self.pod.key[1]}"
            book.last = ended
            self._become(book, WaitingState("CrashLoopBackOff", text))

        def again() -> None:
            book.last = ended
            book.restarts += 1
            self._run(book)

        self.later(pause, again)

    def _over(self) -> None:
        """Nothing will run here again; sidecars stop."""
        self._cancel()
        for book in self.book.init:
            if book.running:
                book.state = self._terminated(book, BarrierExit(0))
        self._write()

    def _leave(self) -> None:
        """The pod is being deleted: containers get their SIGTERM, and once they have ended the object may go."""
        self.leaving = True
        self._cancel()
        running = any(book.running for book in self._books())
        self.later(min(self.pod.grace, self._behaviour.stop_seconds) if running else 0.0, self._left)

    def _left(self) -> None:
        for book in self._books():
            if book.running:
                book.state = self._terminated(book, BarrierExit(STOPPED))
            elif isinstance(book.state, WaitingState):
                now = self._now()
                book.state = TerminatedState(KILLED, now, now, "never started", "ContainerStatusUnknown")
        self.book.killed = True
        self._write()

    # --- Helpers ----------------------------------------------------------------------------------------------------

    def later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """A timer that ends with the pod."""

        def fire() -> None:
            self._timers.discard(handle)
            call()

        handle = asyncio.get_running_loop().call_later(seconds, fire)
        self._timers.add(handle)
        return handle

    @property
    def streams(self) -> BarrierStreams:
        return self._host.streams

    @property
    def poll_seconds(self) -> float:
        return self._behaviour.barrier_poll

    @property
    def _behaviour(self) -> Behaviour:
        return self._host.script.behaviour

    def _become(self, book: ContainerRecord, state: State) -> None:
        book.state = state
        self._write()

    def _terminated(self, book: ContainerRecord, ending: BarrierExit) -> TerminatedState:
        now = self._now()
        started = book.state.at if isinstance(book.state, RunningState) else now
        return TerminatedState(ending.code, started, now, ending.message)

    def _write(self) -> None:
        self._host.write(self)

    def _now(self) -> float:
        return self._host.now(self.node)

    def _book(self, name: str) -> ContainerRecord | None:
        return next((book for book in self._books() if book.name == name), None)

    def _books(self) -> Iterator[ContainerRecord]:
        yield from self.book.init
        yield from self.book.mains

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._pulling.clear()
        if self._gate is not None:
            self._gate.stop()
        self._host.mounts.unmount(self.pod.config_map, self.pod.uid)


def _initial(pod: KubeletPod) -> str:
    return "PodInitializing" if pod.init else "ContainerCreating"


def _books(containers: list[ContainerSpec], state: State) -> list[ContainerRecord]:
    return [ContainerRecord(item.name, item.image, state, sidecar=item.sidecar) for item in containers]
