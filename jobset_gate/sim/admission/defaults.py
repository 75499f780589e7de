"""What JobSet fills into a JobSet when it is created, and only then."""

from __future__ import annotations

from jobset_gate.sim.objects import Json

Operation = Json
"""One operation of a JSON patch (RFC 6902)."""


def operations(jobset: Json) -> list[Operation]:
    """The JSON patch that adds the defaults to a JobSet."""
    spec = jobset["spec"]
    found = [
        *_missing(spec, "/spec", {"successPolicy": {"operator": "All"}}),
        *_missing(spec, "/spec", {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}),
        *_network(spec),
    ]
    for index, job in enumerate(spec.get("replicatedJobs") or ()):
        path, job_spec = f"/spec/replicatedJobs/{index}/template/spec", job["template"]["spec"]
        found += _missing(job_spec, path, {"completionMode": "Indexed"})
        found += _missing(job_spec["template"]["spec"], f"{path}/template/spec", {"restartPolicy": "OnFailure"})
    for index, rule in enumerate((spec.get("failurePolicy") or {}).get("rules") or ()):
        found += _missing(rule, f"/spec/failurePolicy/rules/{index}", {"name": f"failurePolicyRule{index}"})
    return found


def _network(spec: Json) -> list[Operation]:
    wanted = {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    if spec.get("network") is None:
        return _missing(spec, "/spec", {"network": wanted})
    return _missing(spec["network"], "/spec/network", wanted)


def _missing(where: Json, path: str, wanted: Json) -> list[Operation]:
    return [
        {"op": "add", "path": f"{path}/{key}", "value": value}
        for key, value in wanted.items()
        if where.get(key) in (None, "")
    ]
