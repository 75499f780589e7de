"""How the played nodes behave: their capacity, their speed, and the faults that a test injects into single pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from jobset_gate.fake.kubelet.pods import KubeletPod

USUAL = {"cpu": "64", "memory": "256Gi"}


@dataclass(frozen=True, slots=True)
class FakeNode:
    """A node: it joins `ready_at` seconds after the start; `clock_skew` is added to all times that it writes.

    `allocatable`: cpu, memory and devices, with usual values for the rest. None: usual values, and the played scheduler
    counts pods only. `taints`: (key, value, effect).
    """

    name: str
    pods: int = 110
    ready_at: float = 0.0
    clock_skew: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] | None = None
    taints: tuple[tuple[str, str, str], ...] = ()

    @property
    def all_labels(self) -> dict[str, str]:
        """With those that every kubelet puts on its node."""
        return {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", **self.labels}

    @property
    def room(self) -> dict[str, str]:
        """Its capacity."""
        return {"pods": str(self.pods), **USUAL, **(self.allocatable or {})}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Seconds that things take.

    `configmap_sync`: from a ConfigMap's change until the pods that mount it see it. `annotation_delay`: the same for a
    pod's own annotations; it refreshes the ConfigMap, too. `barrier_poll`: from a readable verdict to the barrier's
    end. `main_seconds`: how long main containers run, None: until stopped. `spread`: a random part of this is added to
    each pod's start. `crash_backoff` doubles with every restart after the first. `status_delay`: from a change of a pod
    until its kubelet reports it. `stream`: whether barriers use the gate stream where their environment names one;
    `stream_retry`: the first and the longest pause between two attempts.
    """

    configmap_sync: float = 60.0
    annotation_delay: float = 0.05
    sandbox_seconds: float = 0.5
    pull_seconds: float = 0.5
    init_seconds: float = 1.0
    barrier_poll: float = 0.2
    main_seconds: float | None = None
    stop_seconds: float = 0.1
    spread: float = 0.0
    crash_backoff: float = 10.0
    status_delay: float = 0.0
    stream: bool = True
    stream_retry: tuple[float, float] = (0.5, 10.0)


@dataclass(frozen=True, slots=True)
class PodMatch:
    """Selects pods: a glob over the name, or a slot. None means any."""

    name: str = "*"
    namespace: str | None = None
    replicated_job: str | None = None
    job_index: int | None = None
    index: int | None = None
    attempt: int | None = None
    node: str | None = None

    def matches(self, pod: KubeletPod) -> bool:
        wanted = (
            (self.namespace, pod.key[0]),
            (self.replicated_job, pod.replicated_job),
            (self.job_index, pod.job_index),
            (self.index, pod.index),
            (self.attempt, pod.attempt),
            (self.node, pod.node),
        )
        return fnmatchcase(pod.key[1], self.name) and all(given in (None, found) for given, found in wanted)


@dataclass(frozen=True, slots=True)
class PodFault:
    """What goes wrong with some pods while it is in force. Of several the first that sets a field wins.

    `unschedulable`: the scheduler's message. `image_pull_backoff`: a container whose image cannot be pulled.
    `slow_start`: seconds before the kubelet does anything. `crash_init`: an init container that ends with `crash_code`.
    `exit_codes`: of main containers by name, "*" for all. `main_seconds`: when they end. `firewalled`: no connection
    from these pods to the gate service; an open one breaks.
    """

    where: PodMatch = PodMatch()
    unschedulable: str = ""
    image_pull_backoff: str = ""
    slow_start: float = 0.0
    crash_init: str = ""
    crash_code: int = 1
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    main_seconds: float | None = None
    firewalled: bool = False


class FaultScript:
    """The behaviour and the faults in force."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.faults: list[PodFault] = []

    def unschedulable(self, pod: KubeletPod) -> str:
        return next((it.unschedulable for it in self._of(pod) if it.unschedulable), "")

    def cannot_pull(self, pod: KubeletPod, container: str) -> bool:
        return any(it.image_pull_backoff == container for it in self._of(pod))

    def slow_start(self, pod: KubeletPod) -> float:
        return next((it.slow_start for it in self._of(pod) if it.slow_start), 0.0)

    def firewalled(self, pod: KubeletPod) -> bool:
        return any(it.firewalled for it in self._of(pod))

    def init_exit(self, pod: KubeletPod, container: str) -> int:
        return next((it.crash_code for it in self._of(pod) if it.crash_init == container), 0)

    def main_end(self, pod: KubeletPod, container: str) -> tuple[float | None, int]:
        """(seconds it runs, None: until stopped; exit code)."""
        after, code = self.behaviour.main_seconds, 0
        for it in reversed(self._of(pod)):
            after = after if it.main_seconds is None else it.main_seconds
            code = it.exit_codes.get(container, it.exit_codes.get("*", code))
        return after, code

    def _of(self, pod: KubeletPod) -> list[PodFault]:
        return [it for it in self.faults if it.where.matches(pod)]
