"""The Jobs and the Service that a JobSet's spec asks for."""

from __future__ import annotations

import copy
import hashlib

from jobset_gate import names
from jobset_gate.fake.jobset.children import job_restarts
from jobset_gate.fake.objects import FakeObject, Json, owned_by

POD_NAMES_IN_DNS = "enableDNSHostnames"


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
    if names_in_dns(jobset):
        spec["template"]["spec"]["subdomain"] = subdomain(jobset)
    spec["suspend"] = bool(jobset.spec.get("suspend"))
    return {
        "metadata": {
            "name": job_name(jobset.metadata.name, replicated_job["name"], index),
            "namespace": jobset.metadata.namespace,
            "labels": {**(meta.get("labels") or {}), **marks},
            "annotations": {**(meta.get("annotations") or {}), **marks},
            "ownerReferences": [_owner(jobset)],
        },
        "spec": spec,
    }


def service(jobset: FakeObject) -> Json:
    """The headless Service that gives the pods their names in DNS."""
    return {
        "metadata": {
            "name": subdomain(jobset),
            "namespace": jobset.metadata.namespace,
            "ownerReferences": [_owner(jobset)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {names.JS_NAME: jobset.metadata.name},
            "publishNotReadyAddresses": jobset.spec["network"].get("publishNotReadyAddresses", True),
        },
    }


def names_in_dns(jobset: FakeObject) -> bool:
    return bool((jobset.spec.get("network") or {}).get(POD_NAMES_IN_DNS))


def subdomain(jobset: FakeObject) -> str:
    given: str = (jobset.spec.get("network") or {}).get("subdomain") or ""
    return given or jobset.metadata.name


def _owner(jobset: FakeObject) -> Json:
    return owned_by(names.JOBSET_API_VERSION, "JobSet", jobset.metadata)


def _marks(jobset: FakeObject, replicated_job: Json, index: int) -> dict[str, str]:
    """What stands on each Job and pod, as labels and as annotations alike."""
    all_jobs = jobset.spec["replicatedJobs"]
    group = replicated_job.get("groupName", "default")
    in_group = [job for job in all_jobs if job.get("groupName", "default") == group]
    name = replicated_job["name"]
    full_name = job_name(jobset.metadata.name, name, index)
    marks = {
        names.JS_NAME: jobset.metadata.name,
        names.JS_UID: jobset.metadata.uid,
        names.JS_REPLICATED_JOB: name,
        names.JS_REPLICATED_JOB_REPLICAS: str(replicas(replicated_job)),
        names.JS_GLOBAL_REPLICAS: str(sum(map(replicas, all_jobs))),
        names.JS_JOB_INDEX: str(index),
        names.JS_JOB_GLOBAL_INDEX: str(_jobs_before(name, all_jobs) + index),
        names.JS_JOB_KEY: _hash(f"{jobset.metadata.namespace}/{full_name}"),
        names.JS_RESTART_ATTEMPT: str(jobset.status.get("restarts", 0)),
        names.JS_GROUP_NAME: group,
        names.JS_GROUP_REPLICAS: str(sum(map(replicas, in_group))),
        names.JS_JOB_GROUP_INDEX: str(_jobs_before(name, in_group) + index),
    }
    if _restarts_single_jobs(jobset):
        marks[names.JS_JOB_RESTART_ATTEMPT] = str(job_restarts(jobset, name, replicas(replicated_job))[index])
    if coordinator := jobset.spec.get("coordinator"):
        marks[names.JS_COORDINATOR] = _endpoint(jobset, coordinator)
    return marks


def _restarts_single_jobs(jobset: FakeObject) -> bool:
    """The real one has a feature gate for it, off by default, and no such mark without: here the policy decides."""
    rules = (jobset.spec.get("failurePolicy") or {}).get("rules") or ()
    return any(rule["action"].startswith("RestartJob") and "JobSet" not in rule["action"] for rule in rules)


def replicas(replicated_job: Json) -> int:
    return int(replicated_job.get("replicas", 1))


def _endpoint(jobset: FakeObject, coordinator: Json) -> str:
    host = job_name(jobset.metadata.name, coordinator["replicatedJob"], coordinator.get("jobIndex", 0))
    return f"{host}-{coordinator.get('podIndex', 0)}.{subdomain(jobset)}"


def _jobs_before(name: str, jobs: list[Json]) -> int:
    total = 0
    for job in jobs:
        if job["name"] == name:
            break
        total += replicas(job)
    return total


def _hash(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
