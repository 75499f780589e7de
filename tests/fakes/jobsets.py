"""Builders of JobSets as JSON, and a reader of RFC 6902 patches, for the tests of admission."""

import copy
from typing import Any

from typing_extensions import Unpack

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.settings import Settings

Json = dict[str, Any]
SETTINGS = Settings()
TIMEOUT = {"timeoutAfterSeconds": 300}


def replicated(name: str = "workers", *, pod: Json | None = None, job: Json | None = None, **more: Any) -> Json:
    """A replicatedJob of 3 x 4 pods; `pod` and `job` are merged into the pod's and the Job's spec."""
    pod_spec = {"containers": [{"name": "main", "image": "train:1"}]} | (pod or {})
    job_spec = {"parallelism": 4, "completions": 4, "template": {"spec": pod_spec}} | (job or {})
    return {"name": name, "replicas": 3, "template": {"spec": job_spec}} | more


def jobset(
    *jobs: Json, config: Any = None, notes: Json | None = None, name: str = "gang", spec: Json | None = None
) -> Json:
    """A JobSet; without `config` it has `{timeoutAfterSeconds: 300}`, with False it has none."""
    field = TIMEOUT if config is None else config
    metadata: Json = {"name": name, "namespace": "default"}
    if notes is not None:
        metadata["annotations"] = notes
    whole: Json = {"replicatedJobs": list(jobs) or [replicated()]} | (spec or {})
    if field is not False:
        whole = {"groupSchedulingConfig": field} | whole
    return {"apiVersion": names.JOBSET_API_VERSION, "kind": "JobSet", "metadata": metadata, "spec": whole}


def injected(given: Json, settings: Settings = SETTINGS, **drawn: Unpack[inject.Drawn]) -> Json:
    """The new object as it is stored after our webhook; checks that the patch says the same as the document."""
    edit = inject.injected(given, None, settings=settings, **drawn)
    assert applied(given, edit.operations) == edit.document
    return copy.deepcopy(edit.document)


def created(given: Json, settings: Settings = SETTINGS, **drawn: Unpack[inject.Drawn]) -> Json:
    """The JobSet as it is stored after our webhook and JobSet's own defaults."""
    return defaulted(injected(given, settings, **drawn))


def updated(new: Json, old: Json, settings: Settings = SETTINGS) -> Json:
    """The JobSet as it is stored after an UPDATE; checks that the patch says the same as the document."""
    edit = inject.injected(new, old, settings=settings)
    assert applied(new, edit.operations) == edit.document
    return edit.document


def defaulted(it: Json) -> Json:
    """What JobSet's webhook fills in on CREATE (cluster.md)."""
    spec = it["spec"]
    spec.setdefault("successPolicy", {"operator": "All"})
    spec.setdefault("startupPolicy", {"startupPolicyOrder": "AnyOrder"})
    network = spec.setdefault("network", {})
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    for index, rule in enumerate(spec.get("failurePolicy", {}).get("rules", [])):
        rule.setdefault("name", f"failurePolicyRule{index}")
    for policy in spec.get("volumeClaimPolicies", []):
        policy.setdefault("retentionPolicy", {"whenDeleted": "Delete"})
    for job in spec["replicatedJobs"]:
        job["template"]["spec"].setdefault("completionMode", "Indexed")
        job["template"]["spec"]["template"]["spec"].setdefault("restartPolicy", "OnFailure")
    return it


def pod_template(it: Json, index: int = 0) -> Json:
    template: Json = it["spec"]["replicatedJobs"][index]["template"]["spec"]["template"]
    return template


def pod_spec(it: Json, index: int = 0) -> Json:
    spec: Json = pod_template(it, index)["spec"]
    return spec


def barrier(it: Json, index: int = 0) -> Json:
    (found,) = [c for c in pod_spec(it, index)["initContainers"] if c["name"] == names.BARRIER_CONTAINER]
    assert isinstance(found, dict)
    return found


def epoch(it: Json, index: int = 0) -> str | None:
    found = pod_template(it, index).get("metadata", {}).get("annotations", {}).get(names.EPOCH)
    assert found is None or isinstance(found, str)
    return found


def without(it: Json, *path: str | int) -> Json:
    copied = copy.deepcopy(it)
    parent: Any = copied
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return copied


def changed(it: Json, value: Any, *path: str | int) -> Json:
    copied = copy.deepcopy(it)
    parent: Any = copied
    for key in path[:-1]:
        parent = parent[key] if isinstance(key, int) else parent.setdefault(key, {})
    parent[path[-1]] = value
    return copied


def applied(document: Any, operations: list[Json]) -> Any:
    """The document after a patch, by the letter of RFC 6902: what a patch may not do raises."""
    document = copy.deepcopy(document)
    for operation in operations:
        *parents, last = [it.replace("~1", "/").replace("~0", "~") for it in operation["path"].split("/")[1:]]
        parent = document
        for key in parents:
            parent = parent[int(key)] if isinstance(parent, list) else parent[key]
        _apply(parent, last, operation)
    return document


def _apply(parent: Any, key: str, operation: Json) -> None:
    kind, value = operation["op"], copy.deepcopy(operation.get("value"))
    if isinstance(parent, list):
        index = int(key)
        assert 0 <= index <= len(parent) - (kind != "add"), operation
        if kind == "add":
            parent.insert(index, value)
        elif kind == "replace":
            parent[index] = value
        else:
            del parent[index]
        return
    assert isinstance(parent, dict), operation
    assert kind == "add" or key in parent, operation
    if kind == "remove":
        del parent[key]
    else:
        parent[key] = value


def dig(it: Any, *path: str | int) -> Any:
    """The value under a path; None when there is none."""
    for key in path:
        if isinstance(it, dict):
            it = it.get(key)
        elif isinstance(it, list) and isinstance(key, int) and key < len(it):
            it = it[key]
        else:
            return None
    return it
