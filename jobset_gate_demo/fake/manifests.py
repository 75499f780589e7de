"""Builders of JobSet manifests for tests, demo and benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_gate import names
from jobset_gate_demo.fake.objects import Json


def container(name: str = "main", image: str = "busybox:1.37", **fields: Any) -> Json:
    return {"name": name, "image": image, **fields}


def replicated_job(
    name: str = "workers",
    *,
    replicas: int = 1,
    parallelism: int = 1,
    completions: int | None = None,
    backoff_limit: int | None = 0,
    containers: Sequence[Mapping[str, Any]] = (),
    init_containers: Sequence[Mapping[str, Any]] = (),
    pod: Mapping[str, Any] | None = None,
    pod_metadata: Mapping[str, Any] | None = None,
    job: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Json:
    """An entry of spec.replicatedJobs. `completions` is `parallelism` unless given.

    `pod`, `job` and `fields` are further fields of the pod's spec, of the Job's spec and of the entry.
    """
    pod_spec: Json = {"containers": [dict(item) for item in containers or [container()]], **(pod or {})}
    if init_containers:
        pod_spec["initContainers"] = [dict(item) for item in init_containers]
    template: Json = {"spec": pod_spec}
    if pod_metadata:
        template["metadata"] = dict(pod_metadata)
    job_spec: Json = {
        "parallelism": parallelism,
        "completions": parallelism if completions is None else completions,
        **({} if backoff_limit is None else {"backoffLimit": backoff_limit}),
        **(job or {}),
        "template": template,
    }
    return {"name": name, "replicas": replicas, **fields, "template": {"spec": job_spec}}


def jobset(
    name: str = "gang",
    namespace: str = "default",
    *,
    replicated_jobs: Sequence[Mapping[str, Any]] | None = None,
    config: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """A JobSet. `config` is its groupSchedulingConfig (None: no gang); `spec` are further fields such as suspend."""
    metadata: Json = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = dict(annotations)
    jobs = [replicated_job()] if replicated_jobs is None else replicated_jobs
    wanted: Json = {} if config is None else {names.CONFIG_FIELD: dict(config)}
    return {
        "apiVersion": names.JOBSET_API_VERSION,
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {**wanted, **spec, "replicatedJobs": [dict(job) for job in jobs]},
    }


def gang(
    name: str = "gang",
    namespace: str = "default",
    *,
    jobs: int = 3,
    pods: int = 100,
    timeout: int | None = 300,
    max_restarts: int | None = None,
    **fields: Any,
) -> Json:
    """A gang of `jobs` Jobs of `pods` pods each, in one replicatedJob `workers`; timeout None: it waits for ever."""
    config = {} if timeout is None else {names.TIMEOUT_FIELD: timeout}
    if max_restarts is not None:
        fields["failurePolicy"] = {"maxRestarts": max_restarts}
    workers = replicated_job(replicas=jobs, parallelism=pods)
    return jobset(name, namespace, replicated_jobs=[workers], config=config, **fields)
