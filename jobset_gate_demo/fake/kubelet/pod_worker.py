"""One pod on its node, from its first container to its last: a state machine driven by timers and events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobset_gate import names
from jobset_gate_demo.fake.kubelet import pod_status
from jobset_gate_demo.fake.kubelet.barrier import BarrierContainer, BarrierExit
from jobset_gate_demo.fake.kubelet.pod_status import ContainerRecord, PodRecord, terminated, waiting
from jobset_gate_demo.fake.kubelet.pods import Behaviour, FakeNode, KubeletPod
from jobset_gate_demo.fake.objects import Json

if TYPE_CHECKING:
    from jobset_gate_demo.fake.kubelet.kubelets import Kubelets

FIRST_PULL_ERROR_SECONDS = 1.0  # from ErrImagePull to ImagePullBackOff
_NOT_YET = ("PodInitializing", "ContainerCreating")  # of containers whose turn has not come
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff")
CRASH_BACKOFF, LONGEST_CRASH_BACKOFF = 10.0, 300.0  # doubled with every restart after the first
KILLED = 137
STOPPED = 143


class PodWorker:
    """Synchronous; it calls `host.write` after each change that a kubelet would report."""

    def __init__(self, host: Kubelets, pod: KubeletPod, node: FakeNode) -> None:
        self.pod = pod
        self.node = node
        fresh = waiting("PodInitializing" if pod.init else "ContainerCreating")
        self.record = PodRecord(pod.restart_policy, _records(pod.init, fresh), _records(pod.mains, fresh))
        self.leaving = False
        self.gone = False
        self.host = host
        self._timers: set[asyncio.TimerHandle] = set()
        self._specs = {container["name"]: container for container in [*pod.init, *pod.mains]}
        self._gate = BarrierContainer(self, host.mounts)

    # --- Events -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """The kubelet has seen the pod for the first time."""
        self.record.started = self._now()
        self._write()
        slow = self.host.script.slow_start(self.pod)
        if slow:
            self.later(slow, self._prepare)
        else:
            self._prepare()

    def update(self, pod: KubeletPod) -> None:
        """A newer version of the pod. Changed labels or annotations refresh its volumes, ConfigMap included."""
        old, self.pod = self.pod, pod
        if pod.deleting and not self.leaving:
            self._leave()
            return
        if (old.annotations, old.labels) != (pod.annotations, pod.labels):
            self.later(self._behaviour.annotation_delay, self._gate.read)

    def end_main(self, code: int) -> bool:
        """End the main containers that run; the rest is up to the restart policy. False: none runs."""
        running = [record for record in self.record.mains if record.running]
        for record in running:
            self._ended(record, BarrierExit(code))
        return bool(running)

    def restart_sandbox(self) -> None:
        """All containers start again, init containers first; the pod and its volumes stay."""
        if self.leaving or self.record.ended:
            return
        self._cancel()
        for record in self._records:
            if record.running:
                record.state = terminated(KILLED, self._now(), record.state)
            if record.exit_code is not None:
                record.start_again()
            record.state = waiting("PodInitializing")
        self._write()
        self._mount()

    def retry(self) -> None:
        """A fault was cleared: pull again what could not be pulled."""
        for record in self._records:
            if record.waits_for in _NO_IMAGE and not self.host.script.cannot_pull(self.pod, record.name):
                self._pull(record)

    def drop(self) -> None:
        """The node or the pod is gone: cancel all timers."""
        self.gone = True
        self._cancel()

    # --- Starting ---------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        spread = self.host.rng.uniform(0, self._behaviour.spread) if self._behaviour.spread else 0.0
        self._mount(spread)

    def _mount(self, spread: float = 0.0) -> None:
        """Volumes are mounted first, then the sandbox is made; only then do containers start."""
        self.host.mounts.mount(self.pod.config_map, self.pod.uid, self._gate.read)
        self._gate.read()
        self.later(self._behaviour.sandbox_seconds + spread, self._step)

    def _step(self) -> None:
        """Start what may start now: the first init container that has not passed, or else all others."""
        init = next((record for record in self.record.init if record.exit_code != 0), None)
        for record in self.record.mains if init is None else [init]:
            if record.waits_for in _NOT_YET:
                self._pull(record)

    def _pull(self, record: ContainerRecord) -> None:
        if not self.host.script.cannot_pull(self.pod, record.name):
            self.later(self._behaviour.pull_seconds, lambda: self._run(record))
            return
        self._become(record, waiting("ErrImagePull", f'failed to pull image "{record.image}": not found'))
        self.later(FIRST_PULL_ERROR_SECONDS, lambda: self._back_off(record))

    def _back_off(self, record: ContainerRecord) -> None:
        if record.waits_for == "ErrImagePull":
            self._become(record, waiting("ImagePullBackOff", f'Back-off pulling image "{record.image}"'))

    def _run(self, record: ContainerRecord) -> None:
        self._become(record, pod_status.running(self._now()))
        if record.name == names.BARRIER_CONTAINER:
            self._gate.start(self._specs[record.name], lambda ending: self._ended(record, ending))
        elif record in self.record.init:
            self._end_after(record, self._behaviour.init_seconds, 0)
        else:
            seconds, code = self.host.script.main_end(self.pod)
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
        if record.name == names.BARRIER_CONTAINER:
            self._gate.stop()
        self._become(record, terminated(ending.code, self._now(), record.state, ending.message))
        if self.leaving:
            return
        if record in self.record.init and ending.code == 0:
            if record.name == names.BARRIER_CONTAINER:
                self.host.mounts.unmount(self.pod.config_map, self.pod.uid)
            self._step()
        elif ending.code != 0 and self.pod.restart_policy != "Never":
            self._restart_later(record)
        elif self.record.ended:
            self._cancel()  # no container runs again

    def _restart_later(self, record: ContainerRecord) -> None:
        """At once the first time, then with a growing pause."""
        ended, pause = record.state, 0.0
        if record.restarts:
            pause = min(LONGEST_CRASH_BACKOFF, CRASH_BACKOFF * 2 ** (record.restarts - 1))
            text = f"back-off {pause:.0f}s restarting failed container={record.name} pod={self.pod.key[1]}"
            record.last = ended
            self._become(record, waiting("CrashLoopBackOff", text))

        def again() -> None:
            record.state = ended
            record.start_again()
            self._run(record)

        self.later(pause, again)

    def _leave(self) -> None:
        """The pod is being deleted: containers get SIGTERM; once they have ended the object is removed."""
        self.leaving = True
        self._cancel()
        any_runs = any(record.running for record in self._records)
        self.later(min(self.pod.grace, self._behaviour.stop_seconds) if any_runs else 0.0, self._left)

    def _left(self) -> None:
        for record in self._records:
            if record.running:
                record.state = terminated(STOPPED, self._now(), record.state)
            elif record.waits_for:
                record.state = terminated(KILLED, self._now(), {}, "never started", "ContainerStatusUnknown")
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

    @property
    def _records(self) -> list[ContainerRecord]:
        return [*self.record.init, *self.record.mains]

    def _become(self, record: ContainerRecord, state: Json) -> None:
        record.state = state
        self._write()

    def _write(self) -> None:
        self.host.write(self)

    def _now(self) -> float:
        return self.host.now(self.node)

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._gate.stop()
        self.host.mounts.unmount(self.pod.config_map, self.pod.uid)


def _records(containers: list[Json], state: Json) -> list[ContainerRecord]:
    return [ContainerRecord(item["name"], item.get("image", ""), state) for item in containers]
