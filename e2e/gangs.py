"""Manifests of small gangs whose containers print when they start, and end at once on SIGTERM."""

from collections.abc import Mapping
from typing import Any

from jobset_gate import names
from jobset_gate_demo.fake import manifests

Json = dict[str, Any]
PRINTS_START = "main is running"
WORK = f"trap 'exit 0' TERM; trap 'exit 1' USR1; echo {PRINTS_START}; sleep 3600 & wait"
FAIL = ("sh", "-c", "(sleep 1; kill -USR1 1) >/dev/null 2>&1 &")
"""To be executed in a main container that does WORK: it fails a moment later, when nothing is being executed there."""
SHORT_WORK = f"echo {PRINTS_START}; sleep 1"


def main(image: str, *, work: str = WORK, name: str = "main", **fields: Any) -> Json:
    """A main container."""
    return manifests.container(name, image, command=["sh", "-c", work], **fields)


def workers(
    image: str,
    *,
    name: str = "workers",
    jobs: int = 2,
    pods: int = 2,
    work: str = WORK,
    resources: Json | None = None,
    restart_policy: str = "Never",
    pod: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Json:
    """A replicatedJob. `resources` are the main container's, `pod` further fields of the pod's spec."""
    containers = [main(image, work=work, resources=resources or {})]
    spec = {"restartPolicy": restart_policy, **(pod or {})}
    return manifests.replicated_job(name, replicas=jobs, parallelism=pods, containers=containers, pod=spec, **fields)


def gang(*replicated_jobs: Json, timeout: int | None = None, targets: list[str] | None = None, **fields: Any) -> Json:
    """A JobSet named `gang` that is held until all pods (of `targets`) have started."""
    config: Json = {} if timeout is None else {names.TIMEOUT_FIELD: timeout}
    if targets:
        config[names.TARGETS_FIELD] = targets
    return manifests.jobset("gang", replicated_jobs=list(replicated_jobs), config=config, **fields)


def on_two_nodes(image: str, node: str, extended: Json) -> Json:
    """Four pods: the two of `near` run on that node, each of the two of `far` requests the extended resource."""
    on = {"nodeSelector": {"kubernetes.io/hostname": node}}
    near = workers(image, name="near", jobs=1, pods=2, pod=on)
    far = workers(image, name="far", jobs=1, pods=2, resources=extended)
    return gang(near, far, timeout=300)
