"""The JobSet CRD around a Job template's schema: JobSet's own fields, their defaults and their immutability."""

from __future__ import annotations

from jobset_gate import names
from jobset_gate.fake.objects import Json

_STRING: Json = {"type": "string"}
_BOOL: Json = {"type": "boolean"}
_INT32: Json = {"type": "integer", "format": "int32"}
_NATURAL: Json = {"type": "integer", "format": "int32", "minimum": 0}
_NAMES: Json = {"type": "array", "items": _STRING, "x-kubernetes-list-type": "atomic"}
_ORDER_OR_DEPENDENCY = (
    "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
    "self.replicatedJobs.exists(x, has(x.dependsOn)))"
)


def crd(job_template: Json, claim_spec: Json) -> Json:
    """The CustomResourceDefinition; the arguments are the schemas of a JobTemplateSpec and of a volume claim's spec."""
    columns = (
        ("TerminalState", "string", ".status.terminalState"),
        ("Restarts", "string", ".status.restarts"),
        ("Completed", "string", '.status.conditions[?(@.type=="Completed")].status'),
        ("Suspended", "string", ".spec.suspend"),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    schema = _object(
        {
            "apiVersion": _STRING,
            "kind": _STRING,
            "metadata": {"type": "object"},
            "spec": _spec(job_template, claim_spec),
            "status": _status(),
        }
    )
    return {
        "metadata": {"name": names.JOBSET_CRD},
        "spec": {
            "group": names.JOBSET_GROUP,
            "names": {"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": names.JOBSET_VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": kind, "jsonPath": path} for name, kind, path in columns
                    ],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _spec(job_template: Json, claim_spec: Json) -> Json:
    spec = _object(
        {
            "coordinator": _object(
                {"replicatedJob": _STRING, "jobIndex": {"type": "integer"}, "podIndex": {"type": "integer"}},
                "replicatedJob",
            ),
            "failurePolicy": _immutable(_failure_policy()),
            "managedBy": _STRING,
            "network": _immutable(
                _object({"enableDNSHostnames": _BOOL, "publishNotReadyAddresses": _BOOL, "subdomain": _STRING})
            ),
            "replicatedJobs": _map_list("name", _replicated_job(job_template)),
            "startupPolicy": _immutable(
                _object({"startupPolicyOrder": _enum("AnyOrder", "InOrder")}, "startupPolicyOrder")
            ),
            "successPolicy": _immutable(
                _object({"operator": _enum("All", "Any"), "targetReplicatedJobs": _NAMES}, "operator")
            ),
            "suspend": _BOOL,
            "ttlSecondsAfterFinished": _NATURAL,
            "volumeClaimPolicies": _immutable(_volume_claim_policies(claim_spec)),
        }
    )
    message = "startupPolicy InOrder and dependsOn exclude each other"
    return spec | {"x-kubernetes-validations": [{"rule": _ORDER_OR_DEPENDENCY, "message": message}]}


def _replicated_job(job_template: Json) -> Json:
    needed = _object({"name": _STRING, "status": _enum("Ready", "Complete")}, "name", "status")
    return _object(
        {
            "name": _STRING,
            "groupName": {"type": "string", "default": "default"},
            "replicas": _NATURAL | {"default": 1},
            "template": job_template,
            "dependsOn": _immutable(_map_list("name", needed) | {"maxItems": 5}),
        },
        "name",
        "template",
    )


def _failure_policy() -> Json:
    texts = {"type": "array", "items": _STRING}
    actions = ("RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob", "RestartJobAndIgnoreMaxRestarts")
    rule = _object(
        {
            "name": _STRING,
            "action": _enum("FailJobSet", *actions),
            "onJobFailureReasons": texts,
            "onJobFailureMessagePatterns": texts,
            "targetReplicatedJobs": _NAMES,
        },
        "action",
        "name",
    )
    return _object(
        {
            "maxRestarts": _INT32,
            "restartStrategy": _enum("Recreate", "BlockingRecreate", "InPlaceRestart") | {"default": "Recreate"},
            "rules": {"type": "array", "items": rule},
        }
    )


def _volume_claim_policies(claim_spec: Json) -> Json:
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    claim = _object({"apiVersion": _STRING, "kind": _STRING, "metadata": loose, "spec": claim_spec, "status": loose})
    templates = {"type": "array", "items": claim, "maxItems": 50, "x-kubernetes-list-type": "atomic"}
    retention = _object({"whenDeleted": _enum("Delete", "Retain") | {"default": "Delete"}})
    policy = _object({"templates": templates, "retentionPolicy": retention})
    return {"type": "array", "items": policy, "maxItems": 50, "x-kubernetes-list-type": "atomic"}


def _status() -> Json:
    condition = _object(
        {
            "type": {"type": "string", "maxLength": 316},
            "status": _enum("True", "False", "Unknown"),
            "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
            "message": {"type": "string", "maxLength": 32768},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
    )
    numbers = {"type": "array", "items": _INT32, "maxItems": 1024, "x-kubernetes-list-type": "atomic"}
    counts = ("active", "failed", "ready", "succeeded", "suspended")
    job = _object(
        {
            "name": _STRING,
            **dict.fromkeys(counts, _INT32),
            "jobRestarts": numbers,
            "jobRestartsCountTowardsMax": numbers,
        },
        "name",
        *counts,
    )
    return _object(
        {
            "conditions": _map_list("type", condition),
            "replicatedJobsStatus": _map_list("name", job),
            "restarts": _INT32,
            "restartsCountTowardsMax": _INT32,
            "terminalState": _STRING,
            "currentInPlaceRestartAttempt": _NATURAL,
            "previousInPlaceRestartAttempt": _NATURAL,
        }
    )


def _object(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def _map_list(key: str, items: Json) -> Json:
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
    }


def _enum(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


def _immutable(schema: Json) -> Json:
    return schema | {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "may not change"}]}
