"""What JobSet fills into a JobSet when it is created, and only then."""

from __future__ import annotations

from jobset_gate.fake.objects import Json

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
        found += _empties(job["template"], f"/spec/replicatedJobs/{index}/template")
    for index, rule in enumerate((spec.get("failurePolicy") or {}).get("rules") or ()):
        found += _missing(rule, f"/spec/failurePolicy/rules/{index}", {"name": f"failurePolicyRule{index}"})
    for index, policy in enumerate(spec.get("volumeClaimPolicies") or ()):
        found += _missing(policy, f"/spec/volumeClaimPolicies/{index}", {"retentionPolicy": {"whenDeleted": "Delete"}})
    return found


def _empties(template: Json, path: str) -> list[Operation]:
    """Members that Go's types write even when they are empty: the real webhook answers with the whole typed object."""
    pods, under = template["spec"]["template"], f"{path}/spec/template"
    found = [*_missing(template, path, {"metadata": {}}), *_missing(pods, under, {"metadata": {}})]
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(pods["spec"].get(kind) or ()):
            found += _missing(container, f"{under}/spec/{kind}/{index}", {"resources": {}})
    for index, volume in enumerate(pods["spec"].get("volumes") or ()):
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim is not None:
            where = f"{under}/spec/volumes/{index}/ephemeral/volumeClaimTemplate"
            found += [
                *_missing(claim, where, {"metadata": {}}),
                *_missing(claim["spec"], f"{where}/spec", {"resources": {}}),
            ]
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
