"""Indexed Jobs that are gangs, as the webhook has them stored."""

from __future__ import annotations

import json
from typing import Any

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.injection import inject
from jobset_gate.settings import Barrier, Settings
from jobset_gate.sources.table import JOB

Json = dict[str, Any]
TOKEN = "t0ken"  # it opens nothing


def gated_job(
    name: str,
    namespace: str,
    *,
    pods: int = 2,
    timeout: int | None = 300,
    stream: str | None = None,
    notes: Json | None = None,
    **spec: Any,
) -> Json:
    """With the barrier, at epoch 0; `spec`: further fields of the Job's."""
    config = {} if timeout is None else {names.TIMEOUT_FIELD: timeout}
    job = {"completionMode": "Indexed"} | spec
    backoff_limit = None if "backoffLimitPerIndex" in spec else 0
    workers = manifests.replicated_job(parallelism=pods, backoff_limit=backoff_limit, job=job)
    workers["template"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    settings = Settings(barrier=Barrier.model_validate({"streamUrl": stream}))
    jobset = manifests.jobset(name, namespace, replicated_jobs=[workers], config=config)
    gated = inject.injected(jobset, None, settings=settings, token=TOKEN).document
    made: Json = gated["spec"]["replicatedJobs"][0]["template"]["spec"]
    template = made["template"]
    template["metadata"]["labels"] = {names.GATED: JOB.gated}
    for container in template["spec"]["initContainers"]:
        container["env"] = [_environment(it) for it in container["env"]]
    for volume in template["spec"]["volumes"]:
        for source in volume.get("projected", {}).get("sources", ()):
            if "configMap" in source:
                source["configMap"]["name"] = JOB.config_map_name(name)
    annotations = {names.CONFIG: json.dumps(config)} | (notes or {})
    meta = {"name": name, "namespace": namespace, "labels": {names.GATED: JOB.gated}, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": made}


def _environment(variable: Json) -> Json:
    match variable["name"]:
        case names.ENV_UID:
            return variable | {"valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{JOB.uid_label}']"}}}
        case names.ENV_ATTEMPT:
            return {"name": names.ENV_ATTEMPT, "value": "0"}
        case names.ENV_STREAM:
            return variable | {"value": variable["value"].replace("/v1/gangs/", f"/v1/{JOB.stream}/")}
        case _:
            return variable
