"""JobSets with the barrier as the webhook injects it, which does not run in these tests."""

from __future__ import annotations

from typing import Any

from jobset_gate import names
from jobset_gate.fake import manifests

Json = dict[str, Any]


def barrier(limit: str = "", stream: str = "") -> Json:
    def own(field: str) -> Json:
        return {"valueFrom": {"fieldRef": {"fieldPath": field}}}

    streamed = [{"name": names.ENV_STREAM, "value": stream}, {"name": names.ENV_POD, **own("metadata.uid")}]
    return {
        "name": names.BARRIER_CONTAINER,
        "image": "busybox:1.37",
        "env": [
            {"name": names.ENV_UID, **own(f"metadata.labels['{names.JS_UID}']")},
            {"name": names.ENV_ATTEMPT, **own(f"metadata.labels['{names.JS_RESTART_ATTEMPT}']")},
            {"name": names.ENV_EPOCH, **own(f"metadata.annotations['{names.EPOCH}']")},
            {"name": names.ENV_LIMIT, "value": limit},
            *(streamed if stream else ()),
        ],
        "volumeMounts": [{"name": names.VOLUME, "mountPath": names.MOUNT_PATH, "readOnly": True}],
    }


def volume(jobset: str) -> Json:
    verdict = {"key": names.KEY_VERDICT, "path": names.VERDICT_FILE}
    annotation = {
        "path": names.ANNOTATION_FILE,
        "fieldRef": {"fieldPath": f"metadata.annotations['{names.VERDICT}']"},
    }
    sources = [
        {"configMap": {"name": names.config_map_name(jobset), "optional": True, "items": [verdict]}},
        {"downwardAPI": {"items": [annotation]}},
    ]
    return {"name": names.VOLUME, "projected": {"sources": sources}}


def gated(
    name: str = "gang",
    *,
    jobs: int = 1,
    pods: int = 2,
    limit: str = "",
    stream: str = "",
    epoch: int = 0,
    restart_policy: str = "OnFailure",
    init: tuple[Json, ...] = (),
    backoff_limit: int | None = 6,
    job: Json | None = None,
    **spec: Any,
) -> Json:
    """A JobSet `name` with one replicatedJob `workers` whose pods hold at the barrier."""
    workers = manifests.replicated_job(
        replicas=jobs,
        parallelism=pods,
        backoff_limit=backoff_limit,
        init_containers=[*init, barrier(limit, stream)],
        pod={"volumes": [volume(name)], "restartPolicy": restart_policy},
        pod_metadata={"labels": {names.GATED: names.GATED_VALUE}, "annotations": {names.EPOCH: str(epoch)}},
        metadata={"labels": {names.GATED: names.GATED_VALUE}},
        job=job,
    )
    return manifests.jobset(name, replicated_jobs=[workers], **spec)


def plain(name: str = "set", *, jobs: int = 1, pods: int = 1, backoff_limit: int | None = 0, **spec: Any) -> Json:
    """A JobSet without a barrier."""
    workers = manifests.replicated_job(replicas=jobs, parallelism=pods, backoff_limit=backoff_limit)
    return manifests.jobset(name, replicated_jobs=[workers], **spec)
