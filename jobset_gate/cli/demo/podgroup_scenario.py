"""What is played: a cluster too small for two gangs at once, and the two gangs, their pods created alternately."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jobset_gate import names
from jobset_gate.fake.kubelet import Behaviour, FakeNode

NAMESPACE: Final = "default"
GPU: Final = "nvidia.com/gpu"
GANGS: Final = ("a", "b")
"""`a` is the older one."""
BEHAVIOUR: Final = Behaviour(sandbox_seconds=0.5, pull_seconds=1.0, spread=1.0)

_SHARE: Final = 0.6
"""The part of the cluster that each gang needs."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodGroupPlan:
    """How large the cluster is, and how long things take in it, in its own seconds."""

    nodes: int = 10
    gpus: int = 4
    """On each node."""
    watched: float = 300.0
    """How long nothing moves before that is believed."""
    work: float = 120.0
    """What a gang does once all of its pods run."""
    patience: float = 600.0
    """After which a step of the story is given up."""

    @property
    def room(self) -> int:
        """GPUs in all."""
        return self.nodes * self.gpus

    @property
    def size(self) -> int:
        """Pods of one gang, and its minimum: with fewer it cannot work."""
        return round(self.room * _SHARE)

    @property
    def machines(self) -> list[FakeNode]:
        """The nodes."""
        return [FakeNode(f"gpu-{number}", allocatable={GPU: str(self.gpus)}) for number in range(self.nodes)]

    def pods(self) -> Iterator[Json]:
        """In the order of their creation: a-0, b-0, a-1, b-1 and so on."""
        for number in range(self.size):
            for gang in GANGS:
                yield _pod(gang, number)

    def pod_group(self, gang: str) -> Json:
        """What says how many pods a gang needs."""
        return {"metadata": {"name": gang}, "spec": {"minMember": self.size}}


def _pod(gang: str, number: int) -> Json:
    asked = {"limits": {GPU: "1"}, "requests": {GPU: "1"}}
    main = {"name": "main", "image": "registry.example/worker:v7", "resources": asked}
    return {
        "metadata": {"name": f"{gang}-{number}", "labels": {names.PLUGINS_NAME: gang}},
        "spec": {"restartPolicy": "Never", "containers": [main]},
    }
