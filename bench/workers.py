"""What runs in the pods of the benchmarks: the seed's bare example, or a container as training jobs have them."""

from __future__ import annotations

from typing import Any

from jobset_gate import names
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.objects import Json


def example(name: str, *, replicas: int, parallelism: int) -> Json:
    """The workers of the seed's first user story."""
    main = manifests.container("pytorch", "pytorch/pytorch:latest", command=["bash", "-c", "train.py"])
    return manifests.replicated_job(name, replicas=replicas, parallelism=parallelism, containers=[main])


def trainer(name: str, *, replicas: int, parallelism: int) -> Json:
    """Workers as training jobs have them."""
    settings = {
        "NCCL_DEBUG": "WARN",
        "NCCL_SOCKET_IFNAME": "eth0",
        "JAX_COORDINATOR_PORT": "1234",
        "OMP_NUM_THREADS": "16",
        "CHECKPOINT_DIR": "/checkpoints/run-2041",
        "DATASET": "/data/tokens/2026-04/train.idx",
    }
    index = {"fieldRef": {"fieldPath": f"metadata.labels['{names.JS_JOB_INDEX}']"}}
    resources = {"cpu": "12", "memory": "96Gi", "nvidia.com/gpu": "1"}
    main = manifests.container(
        "trainer",
        "registry.example.com/research/trainer:2026.11.2",
        command=["python", "-m", "trainer.main", "--config=/etc/trainer/config.yaml", "--mesh=8x4"],
        env=[{"name": key, "value": value} for key, value in settings.items()]
        + [{"name": "JOB_INDEX", "valueFrom": index}],
        ports=[{"containerPort": 1234, "name": "coordinator"}],
        resources={"requests": resources, "limits": resources},
        volumeMounts=[
            {"name": "dshm", "mountPath": "/dev/shm"},  # noqa: S108 - a path in a pod that nobody runs
            {"name": "checkpoints", "mountPath": "/checkpoints"},
            {"name": "data", "mountPath": "/data", "readOnly": True},
        ],
    )
    return manifests.replicated_job(
        name,
        replicas=replicas,
        parallelism=parallelism,
        containers=[main],
        pod={
            "nodeSelector": {"cloud.google.com/gke-nodepool": "accelerators"},
            "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}, _claim("checkpoints"), _claim("data")],
        },
        pod_metadata={"labels": {"app": "trainer", "team": "language-models"}},
    )


def _claim(name: str) -> Json:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def service_account(spec: Json) -> Json:
    """What the ServiceAccount admission plugin adds to a pod."""
    token: dict[str, Any] = {
        "name": "kube-api-access-x7k2p",
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
            ]
        },
    }
    mount = {"name": token["name"], "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    mains = [{**main, "volumeMounts": [*main.get("volumeMounts", ()), mount]} for main in spec["containers"]]
    return {"containers": mains, "volumes": [*spec["volumes"], token]}
