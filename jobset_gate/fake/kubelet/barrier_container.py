"""The barrier container of one pod while it runs: the texts it can read, its own generation, its own limit,
and its gate stream beside them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from jobset_gate import names
from jobset_gate.fake import barrier_rule
from jobset_gate.fake.barrier_rule import BarrierExit, BarrierIdentity
from jobset_gate.fake.kubelet.barrier_streams import BarrierStream, BarrierStreams
from jobset_gate.fake.kubelet.mounts import ConfigMapMounts
from jobset_gate.fake.kubelet.pods import ContainerSpec, KubeletPod


class BarrierPod(Protocol):
    """What the barrier needs of its pod."""

    pod: KubeletPod

    @property
    def streams(self) -> BarrierStreams: ...
    @property
    def poll_seconds(self) -> float: ...
    def later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle: ...


class BarrierContainer:
    """Made when the volumes are mounted, so it has read them once."""

    def __init__(self, run: BarrierPod, mounts: ConfigMapMounts) -> None:
        self._run = run
        self._mounts = mounts
        self._texts: tuple[str, str] = ("", "")
        self._own: BarrierIdentity | None = None
        self._end: Callable[[BarrierExit], None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._stream: BarrierStream | None = None
        self.read()

    def read(self) -> None:
        """The files are what ConfigMap and annotation are now."""
        pod = self._run.pod
        self._texts = (self._mounts.current(pod.config_map), pod.annotations.get(names.VERDICT, ""))
        self._look()

    def start(self, container: ContainerSpec, end: Callable[[BarrierExit], None]) -> None:
        """The container runs; `end` is called once, with how it ends."""
        self.stop()
        env = self._run.pod.env(container)
        self._own = own = BarrierIdentity.from_env(env)
        self._end = end
        if own.limit is not None:
            limit = own.limit + barrier_rule.ROUNDING
            self._limit = self._run.later(limit, lambda: self._finish(barrier_rule.exit_at_limit(own, limit)))
        self._stream = self._run.streams.hold(lambda: self._run.pod, env, self._finish)
        self._look()

    def stop(self) -> None:
        """The container does not run any more."""
        for timer in (self._ending, self._limit):
            if timer is not None:
                timer.cancel()
        if self._stream is not None:
            self._stream.close()
        self._own = self._end = self._ending = self._limit = self._stream = None

    def _look(self) -> None:
        if self._own is None or self._ending is not None:
            return
        ending = barrier_rule.read_verdict(self._own, self._texts)
        if ending is not None:
            self._ending = self._run.later(self._run.poll_seconds, lambda: self._finish(ending))

    def _finish(self, ending: BarrierExit | None) -> None:
        end = self._end
        if end is not None and ending is not None:
            self.stop()
            end(ending)
