"""One pod on its node, from its first container to its last: a state machine driven by timers and events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jobset_gate import names
from jobset_gate.fake.kubelet.barrier import BarrierContainer, BarrierExit
from jobset_gate.fake.kubelet.pod_status import (
    ContainerRecord,
    PodRecord,
    RunningState,
    State,
    TerminatedState,
    WaitingState,
)
from jobset_gate.fake.kubelet.pods import Behaviour, FakeNode, KubeletPod

if TYPE_CHECKING:
    from jobset_gate.fake.kubelet.kubelets import Kubelets
from jobset_gate.fake.objects import Json

FIRST_PULL_ERROR_SECONDS = 1.0  # from ErrImagePull to ImagePullBackOff
_NOT_YET = ("PodInitializing", "ContainerCreating")  # of containers whose turn has not come
CRASH_BACKOFF, LONGEST_CRASH_BACKOFF = 10.0, 300.0  # doubled with every restart after the first
KILLED = 137
STOPPED = 143


class PodWorker:
    """Synchronous; it calls `host.write` after each change that a kubelet would report."""

    def __init__(self, host: Kubelets, pod: KubeletPod, node: FakeNode) -> None:
        self.pod = pod
        self.node = node
        fresh = WaitingState("PodInitializing" if pod.init else "ContainerCreating")
        self.record = PodRecord(pod.restart_policy, _records(pod.init, fresh), _records(pod.mains, fresh))
        self.leaving = False
        self.gone = False
        self.host = host
        self._timers: set[asyncio.TimerHandle] = set()
        self._pulling: set[str] = set()
        self._specs = {container["name"]: container for container in [*pod.init, *pod.mains]}
        self._gate: BarrierContainer | None = None

    # --- Events -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """The kubelet has seen the pod for the first time."""
        self.record.started = self._now()
        self._write()
        slow = self.host.script.slow_start(self.pod)
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

    def end_container(self, container: str, code: int = KILLED) -> bool:
        """End a running container; the rest is up to the restart policy. False: it does not run."""
        record = self._record(container)
        if record is None or not record.running:
            return False
        self._ended(record, BarrierExit(code))
        return True

    def restart_sandbox(self) -> None:
        """All containers start again, init containers first; the pod and its volumes stay."""
        if self.leaving or self._gate is None or self.record.phase in ("Succeeded", "Failed"):
            return
        self._cancel()
        for record in self._records():
            if record.running:
                record.state = self._terminated(record, BarrierExit(KILLED))
            if isinstance(record.state, TerminatedState):
                record.last = record.state
                record.restarts += 1
            record.state = WaitingState("PodInitializing")
        self._write()
        self.host.mounts.mount(self.pod.config_map, self.pod.uid, self.refresh)
        self._gate.read()
        self.later(self._behaviour.sandbox_seconds, self._step)

    def retry(self) -> None:
        """A fault was cleared: pull again what could not be pulled."""
        for name in list(self._pulling):
            record = self._record(name)
            stuck = (
                record is not None and isinstance(record.state, WaitingState) and record.state.reason not in _NOT_YET
            )
            if stuck and record is not None and not self.host.script.cannot_pull(self.pod, name):
                self._pull(record)

    def drop(self) -> None:
        """The node or the pod is gone: cancel all timers."""
        self.gone = True
        self._cancel()

    # --- Starting ---------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Volumes are mounted first, then the sandbox is made; only then do containers start."""
        self.host.mounts.mount(self.pod.config_map, self.pod.uid, self.refresh)
        self._gate = BarrierContainer(self, self.host.mounts)
        spread = self.host.rng.uniform(0, self._behaviour.spread) if self._behaviour.spread else 0.0
        self.later(self._behaviour.sandbox_seconds + spread, self._step)

    def _step(self) -> None:
        """Start what may start now."""
        for record in self.record.init:
            if record.passed:
                continue
            self._begin(record)
            return
        for record in self.record.mains:
            self._begin(record)

    def _begin(self, record: ContainerRecord) -> None:
        fresh = isinstance(record.state, WaitingState) and record.state.reason in _NOT_YET
        if fresh and record.name not in self._pulling:
            self._pull(record)

    def _pull(self, record: ContainerRecord) -> None:
        self._pulling.add(record.name)
        if self.host.script.cannot_pull(self.pod, record.name):
            failed = WaitingState("ErrImagePull", f'failed to pull image "{record.image}": not found')
            self._become(record, failed)
            backing_off = WaitingState("ImagePullBackOff", f'Back-off pulling image "{record.image}"')
            self.later(FIRST_PULL_ERROR_SECONDS, lambda: self._back_off(record, backing_off))
            return
        self.later(self._behaviour.pull_seconds, lambda: self._run(record))

    def _back_off(self, record: ContainerRecord, state: WaitingState) -> None:
        if record.name in self._pulling and isinstance(record.state, WaitingState):
            self._become(record, state)

    def _run(self, record: ContainerRecord) -> None:
        self._pulling.discard(record.name)
        self._become(record, RunningState(self._now()))
        if record.name == names.BARRIER_CONTAINER and record in self.record.init and self._gate is not None:
            self._gate.start(self._specs[record.name], lambda ending: self._ended(record, ending))
        elif record in self.record.init:
            self._end_after(record, self._behaviour.init_seconds, 0)
        else:
            seconds, code = self.host.script.main_end(self.pod, record.name)
            if seconds is not None:
                self._end_after(record, seconds, code)

    def _end_after(self, record: ContainerRecord, seconds: float, code: int) -> None:
        attempt = record.restarts

        def end() -> None:
            if record.running and record.restarts == attempt:
                self._ended(record, BarrierExit(code))

        self.later(seconds, end)

    # --- Ending -----------------------------------------------------------------------------------------------------

    def _ended(self, record: ContainerRecord, ending: BarrierExit) -> None:
        if record.name == names.BARRIER_CONTAINER and self._gate is not None:
            self._gate.stop()
        self._become(record, self._terminated(record, ending))
        if self.leaving:
            if not any(it.running for it in self._records()):
                self._cancel()  # no need to wait for the grace period's end
                self._left()
            return
        if record in self.record.init and ending.code == 0:
            if record.name == names.BARRIER_CONTAINER:
                self.host.mounts.unmount(self.pod.config_map, self.pod.uid)
            self._step()
        elif ending.code != 0 and self.pod.restart_policy != "Never":
            self._restart_later(record)
        elif self.record.phase in ("Succeeded", "Failed"):
            self._cancel()  # no container runs again
            self._write()

    def _restart_later(self, record: ContainerRecord) -> None:
        """At once the first time, then with a growing pause."""
        assert isinstance(record.state, TerminatedState)  # noqa: S101  # just ended
        ended = record.state
        pause = 0.0
        if record.restarts:
            pause = min(LONGEST_CRASH_BACKOFF, CRASH_BACKOFF * 2 ** (record.restarts - 1))
            text = f"back-off {pause:.0f}s restarting failed container={record.name} pod={self.pod.key[1]}"
            record.last = ended
            self._become(record, WaitingState("CrashLoopBackOff", text))

        def again() -> None:
            record.last = ended
            record.restarts += 1
            self._run(record)

        self.later(pause, again)

    def _leave(self) -> None:
        """The pod is being deleted: containers get SIGTERM; once they have ended the object is removed."""
        self.leaving = True
        self._cancel()
        running = any(record.running for record in self._records())
        self.later(min(self.pod.grace, self._behaviour.stop_seconds) if running else 0.0, self._left)

    def _left(self) -> None:
        for record in self._records():
            if record.running:
                record.state = self._terminated(record, BarrierExit(STOPPED))
            elif isinstance(record.state, WaitingState):
                now = self._now()
                record.state = TerminatedState(KILLED, now, now, "never started", "ContainerStatusUnknown")
        self.record.killed = True
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
    def _behaviour(self) -> Behaviour:
        return self.host.script.behaviour

    def _become(self, record: ContainerRecord, state: State) -> None:
        record.state = state
        self._write()

    def _terminated(self, record: ContainerRecord, ending: BarrierExit) -> TerminatedState:
        now = self._now()
        started = record.state.at if isinstance(record.state, RunningState) else now
        return TerminatedState(ending.code, started, now, ending.message)

    def _write(self) -> None:
        self.host.write(self)

    def _now(self) -> float:
        return self.host.now(self.node)

    def _record(self, name: str) -> ContainerRecord | None:
        return next((record for record in self._records() if record.name == name), None)

    def _records(self) -> Iterator[ContainerRecord]:
        yield from self.record.init
        yield from self.record.mains

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._pulling.clear()
        if self._gate is not None:
            self._gate.stop()
        self.host.mounts.unmount(self.pod.config_map, self.pod.uid)


def _records(containers: list[Json], state: State) -> list[ContainerRecord]:
    return [ContainerRecord(item["name"], item.get("image", ""), state) for item in containers]
