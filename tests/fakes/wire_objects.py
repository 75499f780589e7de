"""Kubernetes objects as an API server sends them, and what the project reads out of them."""

from typing import Any

import msgspec

from jobset_gate.barrier import wire
from jobset_gate.barrier.model import ConfigMapSeen, JobSeen, PodSeen, WorkloadSeen
from jobset_gate.sources import decode

Json = dict[str, Any]

BARRIER = "group-scheduling-init"
TEN_O_CLOCK = 1785578400.0
"""2026-08-01T10:00:00Z"""


def pod(
    *init: Json, labels: Json | None = None, notes: Json | None = None, meta: Json | None = None, **rest: Any
) -> Json:
    """A pod of Job train-workers-2 at index 17, on its node, with these statuses of init containers."""
    made: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-workers-2-17-x7k2p",
            "generateName": "train-workers-2-17-",
            "namespace": "team-a",
            "uid": "pod-uid",
            "resourceVersion": "1234",
            "creationTimestamp": "2026-08-01T10:00:00Z",
            "labels": {
                "batch.kubernetes.io/controller-uid": "job-uid",
                "batch.kubernetes.io/job-completion-index": "17",
                "batch.kubernetes.io/job-name": "train-workers-2",
                "controller-uid": "job-uid",
                "jobset-gate.dev/gated": "true",
                "jobset.sigs.k8s.io/job-index": "2",
                "jobset.sigs.k8s.io/jobset-name": "train",
                "jobset.sigs.k8s.io/jobset-uid": "jobset-uid",
                "jobset.sigs.k8s.io/replicatedjob-name": "workers",
                "jobset.sigs.k8s.io/restart-attempt": "1",
            }
            | (labels or {}),
            "annotations": {"batch.kubernetes.io/job-completion-index": "17", "jobset-gate.dev/epoch": "3"}
            | (notes or {}),
            "ownerReferences": [owner("Job", "train-workers-2", "job-uid")],
            "finalizers": ["batch.kubernetes.io/job-tracking"],
        }
        | (meta or {}),
        "spec": {"nodeName": "node-7", "containers": [{"name": "pytorch", "image": "pytorch:2"}]},
        "status": {
            "phase": "Pending",
            "conditions": [
                {"type": "PodReadyToStartContainers", "status": "True"},
                {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-08-01T10:00:05Z"},
            ],
            "initContainerStatuses": list(init),
            "containerStatuses": [status("pytorch", waiting="PodInitializing")],
            "qosClass": "Burstable",
        },
    }
    return made | rest


JOB_UID = "run-uid"


def bare_job(*init: str, meta: Json | None = None, status: Json | None = None, **spec: Any) -> Json:
    """An Indexed Job of eight pods that is a gang itself, at its second resumption."""
    env = [{"name": "JOBSET_GATE_STREAM", "value": "http://gate:8082/v1/jobs/team-a/run/t0k-en_22"}]
    template = {
        "metadata": {"annotations": {"jobset-gate.dev/epoch": "2"}},
        "spec": {
            "initContainers": [{"name": it, "env": env} for it in init or (BARRIER,)],
            "containers": [{"name": "pytorch", "resources": {"limits": {"nvidia.com/gpu": "4"}}}],
        },
    }
    wanted = {"suspend": False, "parallelism": 8, "completions": 8, "completionMode": "Indexed", "template": template}
    return {
        "metadata": {
            "name": "run",
            "namespace": "team-a",
            "uid": JOB_UID,
            "resourceVersion": "77",
            "creationTimestamp": "2026-08-01T10:00:00Z",
            "labels": {"jobset-gate.dev/gated": "job"},
            "annotations": {"jobset-gate.dev/group-scheduling-config": '{"timeoutAfterSeconds": 300}'},
        }
        | (meta or {}),
        "spec": wanted | spec,
        "status": status or {},
    }


def bare_job_pod(index: int = 5, *init: Json, meta: Json | None = None) -> Json:
    made = pod(*init)
    labels = {
        "batch.kubernetes.io/controller-uid": JOB_UID,
        "batch.kubernetes.io/job-completion-index": str(index),
        "batch.kubernetes.io/job-name": "run",
        "jobset-gate.dev/gated": "job",
    }
    notes = {"batch.kubernetes.io/job-completion-index": str(index), "jobset-gate.dev/epoch": "2"}
    named = {"name": f"run-{index}-x7k2p", "uid": f"pod-{index}", "labels": labels, "annotations": notes}
    made["metadata"] |= named | {"ownerReferences": [owner("Job", "run", JOB_UID)]} | (meta or {})
    return made


_API_VERSIONS = {
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "Job": "batch/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Pod": "v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "MPIJob": "kubeflow.org/v2beta1",
}


def owner(kind: str, name: str, uid: str) -> Json:
    """The reference to the controller that made an object, as a Job carries one to its JobSet and a pod to its Job."""
    return {
        "apiVersion": _API_VERSIONS[kind],
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def status(
    name: str, *, waiting: str = "", message: str = "", last: Json | None = None, ready: bool = False, **state: Any
) -> Json:
    """A container status; `running="<time>"`, `exit=<code>`, or a reason for waiting. A sidecar that runs is ready."""
    if "running" in state:
        now: Json = {"running": {"startedAt": state["running"]}}
    elif "exit" in state:
        now = {"terminated": ended(state["exit"], state.get("reason", "Completed"))}
    else:
        now = {"waiting": {"reason": waiting, "message": message} if message else {"reason": waiting}}
    return {
        "name": name,
        "image": f"{name}:1",
        "imageID": "",
        "ready": ready or state.get("exit") == 0,
        "restartCount": 0 if last is None else 3,
        "started": "running" in state,
        "state": now,
        "lastState": {} if last is None else {"terminated": last},
    }


def ended(code: int, reason: str = "Error", message: str = "") -> Json:
    return {
        "exitCode": code,
        "reason": reason,
        "message": message,
        "startedAt": "2026-08-01T10:00:30Z",
        "finishedAt": "2026-08-01T10:00:40Z",
        "containerID": "containerd://abc",
    }


def read_pod(body: Json) -> PodSeen:
    return decode.pod(decoded(body, wire.Pod))


def read_job(body: Json) -> JobSeen:
    return decode.job(decoded(body, wire.Job))


def read_jobset(body: Json) -> WorkloadSeen | None:
    return decode.jobset(decoded(body, wire.JobSet))


def read_config_map(body: Json) -> ConfigMapSeen | None:
    return decode.config_map(decoded(body, wire.ConfigMap))


def decoded(body: Json, shape: Any) -> Any:
    """From its bytes, as everything comes."""
    return msgspec.json.decode(msgspec.json.encode(body), type=shape)
