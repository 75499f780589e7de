"""The Jobs and the Service that a JobSet's spec asks for."""

from __future__ import annotations

import copy
import hashlib

from jobset_gate import names
from jobset_gate.fake.jobset_policies import replicas
from jobset_gate.fake.objects import FakeObject, Json, owned_by


def job_name(jobset: str, replicated_job: str, index: int) -> str:
    return f"{jobset}-{replicated_job}-{index}"


def job(jobset: FakeObject, replicated_job: Json, index: int) -> Json:
    """The Job of that index, suspended if the JobSet is."""
    template = copy.deepcopy(replicated_job["template"])
    marks = _marks(jobset, replicated_job, index)
    meta = template.get("metadata") or {}
    spec: Json = template["spec"]
    pod_meta = spec["template"].setdefault("metadata", {})
    for kind in ("labels", "annotations"):
        pod_meta[kind] = {**(pod_meta.get(kind) or {}), **marks}
    if has_dns_names(jobset):
        spec["template"]["spec"]["subdomain"] = _subdomain(jobset)
    spec["suspend"] = bool(jobset.spec.get("suspend"))
    return {
        "metadata": {
            "name": job_name(jobset.metadata.name, replicated_job["name"], index),
            "namespace": jobset.metadata.namespace,
            "labels": {**(meta.get("labels") or {}), **marks},
            "annotations": {**(meta.get("annotations") or {}), **marks},
            "ownerReferences": [owned_by(names.JOBSET_API_VERSION, "JobSet", jobset.metadata)],
        },
        "spec": spec,
    }


def service(jobset: FakeObject) -> Json:
    """The headless Service that gives the pods their DNS names."""
    return {
        "metadata": {
            "name": _subdomain(jobset),
            "namespace": jobset.metadata.namespace,
            "ownerReferences": [owned_by(names.JOBSET_API_VERSION, "JobSet", jobset.metadata)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {names.JS_NAME: jobset.metadata.name},
            "publishNotReadyAddresses": jobset.spec["network"].get("publishNotReadyAddresses", True),
        },
    }


def has_dns_names(jobset: FakeObject) -> bool:
    return bool((jobset.spec.get("network") or {}).get("enableDNSHostnames"))


def _subdomain(jobset: FakeObject) -> str:
    given: str = (jobset.spec.get("network") or {}).get("subdomain") or ""
    return given or jobset.metadata.name


def _marks(jobset: FakeObject, replicated_job: Json, index: int) -> dict[str, str]:
    """What each Job and pod carries, as labels and as annotations alike."""
    all_jobs = jobset.spec["replicatedJobs"]
    group = replicated_job.get("groupName", "default")
    in_group = [job for job in all_jobs if job.get("groupName", "default") == group]
    name = replicated_job["name"]
    key = f"{jobset.metadata.namespace}/{job_name(jobset.metadata.name, name, index)}"
    marks = {
        names.JS_NAME: jobset.metadata.name,
        names.JS_UID: jobset.metadata.uid,
        names.JS_REPLICATED_JOB: name,
        names.JS_REPLICATED_JOB_REPLICAS: str(replicas(replicated_job)),
        names.JS_GLOBAL_REPLICAS: str(sum(map(replicas, all_jobs))),
        names.JS_JOB_INDEX: str(index),
        names.JS_JOB_GLOBAL_INDEX: str(_jobs_before(name, all_jobs) + index),
        names.JS_JOB_KEY: hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest(),
        names.JS_RESTART_ATTEMPT: str(jobset.status.get("restarts", 0)),
        names.JS_GROUP_NAME: group,
        names.JS_GROUP_REPLICAS: str(sum(map(replicas, in_group))),
        names.JS_JOB_GROUP_INDEX: str(_jobs_before(name, in_group) + index),
    }
    if coordinator := jobset.spec.get("coordinator"):
        host = job_name(jobset.metadata.name, coordinator["replicatedJob"], coordinator.get("jobIndex", 0))
        marks[names.JS_COORDINATOR] = f"{host}-{coordinator.get('podIndex', 0)}.{_subdomain(jobset)}"
    return marks


def _jobs_before(name: str, jobs: list[Json]) -> int:
    names_in_order = [job["name"] for job in jobs]
    return sum(map(replicas, jobs[: names_in_order.index(name)]))
