"""The two gangs of the demo, their nodes, and the faults that hold up the second one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.kubelet import Behaviour, FakeNode, PodFault, PodMatch

NAMESPACE: Final = "default"
TRAIN: Final = "train"
"""The gang whose nodes come late."""
STUCK: Final = "stuck"
"""The gang with two pods that cannot start."""

_POOL: Final = "pool"
_WAVES: Final = (0.4, 0.75, 1.0)
"""The part of the first gang's pods that has a node after each wave."""
_LARGEST_NODE: Final = 50
_NO_GPU: Final = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
_FETCH: Final = "fetch-data"
_PATIENCE: Final = 30.0

BEHAVIOUR: Final = Behaviour(sandbox_seconds=0.2, pull_seconds=0.2, init_seconds=0.2, spread=0.4)
"""Kubelets in a hurry, but a ConfigMap takes a minute to reach a pod, as it does in a cluster."""

STUCK_NODES: Final = tuple(FakeNode(f"cpu-{number}", pods=4, labels={_POOL: STUCK}) for number in range(3))
FAULTS: Final = (
    PodFault(PodMatch(f"{STUCK}-*", replicated_job="workers", job_index=0, index=2), image_pull_backoff=_FETCH),
    PodFault(PodMatch(f"{STUCK}-*", replicated_job="workers", job_index=1, index=1), unschedulable=_NO_GPU),
)
MISSING: Final = ("workers-0/2", "workers-1/1")
"""The slots of those faults, as a verdict names them."""


@dataclass(frozen=True, slots=True)
class GangPlan:
    """How large and how long the demo is."""

    jobs: int = 3
    pods: int = 100
    seconds: float = 8.0
    """From the first gang's creation to the arrival of its last nodes."""

    @property
    def size(self) -> int:
        """Pods of the first gang."""
        return self.jobs * self.pods

    @property
    def timeout(self) -> int:
        """Seconds that the second gang waits."""
        return max(2, math.ceil(self.seconds / 2))

    @property
    def patience(self) -> float:
        """Seconds after which the demo stops waiting for a gang."""
        return self.seconds + self.size / 20 + _PATIENCE

    def waves(self) -> Iterator[tuple[float, list[FakeNode]]]:
        """The nodes of the first gang: (seconds after its creation, nodes)."""
        ready = 0
        for number, part in enumerate(_WAVES):
            room = max(0, round(self.size * part) - ready)
            ready += room
            count = math.ceil(room / _LARGEST_NODE)
            sizes = (room // count + (index < room % count) for index in range(count))
            nodes = [
                FakeNode(f"gpu-{number}-{index}", pods=size, labels={_POOL: TRAIN}) for index, size in enumerate(sizes)
            ]
            yield self.seconds * number / (len(_WAVES) - 1), nodes

    def train(self) -> dict[str, Any]:
        """The JobSet of the first gang; its timeout is longer than the demo."""
        workers = manifests.replicated_job(
            replicas=self.jobs, parallelism=self.pods, pod={"nodeSelector": {_POOL: TRAIN}}
        )
        return manifests.jobset(
            TRAIN, NAMESPACE, replicated_jobs=[workers], config={names.TIMEOUT_FIELD: math.ceil(self.patience) + 300}
        )

    def stuck(self) -> dict[str, Any]:
        """The JobSet of the second gang: 1 + 2 x 4 pods; two of them never start."""
        pod = {"nodeSelector": {_POOL: STUCK}, "restartPolicy": "Never"}
        fetch = manifests.container(_FETCH, "registry.example/fetch-data:v7")
        jobs = [
            manifests.replicated_job("driver", pod=pod),
            manifests.replicated_job("workers", replicas=2, parallelism=4, pod=pod, init_containers=[fetch]),
        ]
        return manifests.jobset(STUCK, NAMESPACE, replicated_jobs=jobs, config={names.TIMEOUT_FIELD: self.timeout})
