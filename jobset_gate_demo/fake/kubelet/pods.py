"""Pods as the played scheduler and kubelets see them, nodes, their speed, and the faults that a test injects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.podgroups.fit import constraints
from jobset_gate_demo.fake.objects import FakeObject, Json, Key

_REFERENCE = re.compile(r"\$\(([^)]+)\)")
_MARK = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "overhead", "resources", "containers", "initContainers")


class Placement(msgspec.Struct, frozen=True):
    """Selection and requests of a pod; the same object for all pods with equal ones."""

    selection: constraints.NodeSelection
    requests: constraints.Amounts


class KubeletPod:
    """One version of a pod. Slots come from the labels of JobSet and Job, -1 where there is none.

    `config_map`: that of the barrier's volume.
    """

    def __init__(self, pod: FakeObject) -> None:
        meta, spec = pod.metadata, pod.spec
        self.key: Key = meta.key
        self.uid = meta.uid
        self.labels, self.annotations = meta.labels, meta.annotations
        self.deleting = pod.deleting
        self.grace = 30 if meta.deletion_grace_period_seconds is None else meta.deletion_grace_period_seconds
        self.node: str = spec.get("nodeName") or ""
        self.ended = pod.status.get("phase") in ("Succeeded", "Failed")
        self.restart_policy: str = spec.get("restartPolicy") or "Always"
        self.gated = bool(spec.get("schedulingGates"))
        self.init: list[Json] = spec.get("initContainers") or []
        self.mains: list[Json] = spec["containers"]
        self.placement = _placement(msgspec.json.encode({name: spec.get(name) for name in _PLACEMENT}))
        name = _config_map(spec.get("volumes") or [])
        self.config_map: Key | None = (meta.namespace, name) if name else None
        self.replicated_job = meta.labels.get(names.JS_REPLICATED_JOB, "")
        self.job_index = verdict_codec.parse_number(meta.labels.get(names.JS_JOB_INDEX), -1)
        self.index = verdict_codec.parse_number(meta.annotations.get(names.JOB_COMPLETION_INDEX), -1)
        self.attempt = verdict_codec.parse_number(meta.labels.get(names.JS_RESTART_ATTEMPT), -1)

    def env(self, container: Json) -> dict[str, str]:
        """The container's environment as it is when it starts now. `$(NAME)` stands for an earlier variable."""
        values: dict[str, str] = {}
        for item in container.get("env") or ():
            values[item["name"]] = self._value(item, values)
        return values

    def _value(self, item: Json, earlier: Mapping[str, str]) -> str:
        path = ((item.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
        if path is None:
            return _REFERENCE.sub(lambda found: earlier.get(found[1], found[0]), item.get("value") or "")
        if found := _MARK.fullmatch(path):
            return (self.labels if found[1] == "labels" else self.annotations).get(found[2], "")
        simple = {"metadata.name": self.key[1], "metadata.namespace": self.key[0], "metadata.uid": self.uid}
        return {**simple, "spec.nodeName": self.node}.get(path, "")


@lru_cache(maxsize=4096)
def _placement(said: bytes) -> Placement:
    spec = msgspec.json.decode(said)
    return Placement(selection=constraints.pod_node_selection(spec), requests=constraints.pod_requests(spec))


def _config_map(volumes: list[Json]) -> str:
    for volume in volumes:
        if volume["name"] == names.VOLUME:
            sources: list[Json] = [volume, *((volume.get("projected") or {}).get("sources") or ())]
            return next((source["configMap"]["name"] for source in sources if source.get("configMap")), "")
    return ""


USUAL = {"cpu": "64", "memory": "256Gi"}


@dataclass(frozen=True, slots=True)
class FakeNode:
    """A node. `clock_skew` is added to all times that it writes.

    `allocatable`: cpu, memory and devices, with usual values for the rest. None: usual values, and the played scheduler
    counts pods only.
    """

    name: str
    pods: int = 110
    clock_skew: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] | None = None

    @property
    def all_labels(self) -> dict[str, str]:
        """With those that every kubelet puts on its node."""
        return {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", **self.labels}

    @property
    def room(self) -> dict[str, str]:
        return {"pods": str(self.pods), **USUAL, **(self.allocatable or {})}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Seconds that things take.

    `configmap_sync`: from a ConfigMap's change until the pods that mount it see it. `annotation_delay`: the same for a
    pod's own annotations; it refreshes the ConfigMap, too. `barrier_poll`: from a readable verdict to the barrier's
    end. `spread`: a random part of this is added to each pod's start. `status_delay`: from a change of a pod until its
    kubelet reports it. `stream`: whether barriers use the gate stream where their environment names one;
    `stream_retry`: the first and the longest pause between two attempts.
    """

    configmap_sync: float = 60.0
    annotation_delay: float = 0.05
    sandbox_seconds: float = 0.5
    pull_seconds: float = 0.5
    init_seconds: float = 1.0
    barrier_poll: float = 0.2
    stop_seconds: float = 0.1
    spread: float = 0.0
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

    def matches(self, pod: KubeletPod) -> bool:
        wanted = (
            (self.namespace, pod.key[0]),
            (self.replicated_job, pod.replicated_job),
            (self.job_index, pod.job_index),
            (self.index, pod.index),
            (self.attempt, pod.attempt),
        )
        return fnmatchcase(pod.key[1], self.name) and all(given in (None, found) for given, found in wanted)


@dataclass(frozen=True, slots=True)
class PodFault:
    """What goes wrong with some pods while it is in force. Of several the first that sets a field wins.

    `unschedulable`: the scheduler's message. `image_pull_backoff`: a container whose image cannot be pulled.
    `slow_start`: seconds before the kubelet does anything. `main_seconds`: after which main containers end, with
    `exit_code`.
    """

    where: PodMatch = PodMatch()
    unschedulable: str = ""
    image_pull_backoff: str = ""
    slow_start: float = 0.0
    exit_code: int = 0
    main_seconds: float | None = None


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

    def main_end(self, pod: KubeletPod) -> tuple[float | None, int]:
        """(seconds that its main containers run, None: until stopped; exit code)."""
        found = next((it for it in self._of(pod) if it.main_seconds is not None), PodFault())
        return found.main_seconds, found.exit_code

    def _of(self, pod: KubeletPod) -> list[PodFault]:
        return [it for it in self.faults if it.where.matches(pod)]
