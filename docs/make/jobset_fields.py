"""jobset_gate/cli/manifests/jobset_fields.txt: the fields of a JobSet, for `validate`, which reads no cluster.

The types of Job templates and volume claims are those of the newest Kubernetes that the package kubernetes-validate
knows, so that no field of an older one is missing. JobSet's own types are few and stand here, as of JobSet 0.12.
"""

import json
from importlib.resources import files
from typing import Any, Final

import kubernetes_validate

Json = dict[str, Any]

TABLE: Final = "jobset_gate/cli/manifests/jobset_fields.txt"
JOBSET_TYPES: Final = {
    "JobSet": "apiVersion:string kind:string metadata:ObjectMeta spec:JobSetSpec status:any",
    "JobSetSpec": (
        "coordinator:Coordinator failurePolicy:FailurePolicy groupSchedulingConfig:any managedBy:string "
        "network:Network replicatedJobs:[]ReplicatedJob startupPolicy:StartupPolicy "
        "successPolicy:JobSetSuccessPolicy suspend:boolean ttlSecondsAfterFinished:integer "
        "volumeClaimPolicies:[]VolumeClaimPolicy"
    ),
    "ReplicatedJob": "name!:string dependsOn:[]DependsOn groupName:string replicas:integer template!:JobTemplateSpec",
    "DependsOn": "name!:string status!:Complete|Ready",
    "Coordinator": "replicatedJob!:string jobIndex:integer podIndex:integer",
    "Network": "enableDNSHostnames:boolean publishNotReadyAddresses:boolean subdomain:string",
    "StartupPolicy": "startupPolicyOrder!:AnyOrder|InOrder",
    "JobSetSuccessPolicy": "operator!:All|Any targetReplicatedJobs:[]string",
    "FailurePolicy": (
        "maxRestarts:integer restartStrategy:BlockingRecreate|InPlaceRestart|Recreate rules:[]FailurePolicyRule"
    ),
    "FailurePolicyRule": (
        "name:string action!:FailJobSet|RestartJob|RestartJobAndIgnoreMaxRestarts|RestartJobSet"
        "|RestartJobSetAndIgnoreMaxRestarts onJobFailureMessagePatterns:[]string onJobFailureReasons:[]string "
        "targetReplicatedJobs:[]string"
    ),
    "VolumeClaimPolicy": "retentionPolicy:VolumeRetentionPolicy templates:[]PersistentVolumeClaim",
    "VolumeRetentionPolicy": "whenDeleted:Delete|Retain",
}
"""Checked by an API server once JobSet's webhook has set its defaults, such as the name of a FailurePolicyRule."""
_ROOTS: Final = ("io.k8s.api.batch.v1.JobTemplateSpec", "io.k8s.api.core.v1.PersistentVolumeClaim")
_PLAIN: Final = {"Quantity": "quantity", "IntOrString": "port", "Time": "string", "FieldsV1": "any"}
_LEFT_OUT: Final = ("status", "managedFields")
"""What an API server writes."""


def text() -> str:
    """One type on each line: its name, then `field:type`, with ! where it must be given."""
    folder = files(kubernetes_validate) / "kubernetes-json-schema"
    newest = max((it.name for it in folder.iterdir() if it.name.endswith("-local")), key=_version)
    definitions = json.loads((folder / newest / "_definitions.json").read_text())["$defs"]
    found: dict[str, str] = {}
    reached = list(_ROOTS)
    for each in reached:  # grows
        if _short(each) not in found:
            found[_short(each)] = " ".join(_fields(definitions[each], definitions, reached))
    if twice := found.keys() & JOBSET_TYPES.keys():
        raise ValueError(f"both JobSet and Kubernetes have {twice}")
    return "".join(f"{name} {its}\n" for name, its in sorted((found | JOBSET_TYPES).items()))


def _version(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.removeprefix("v").removesuffix("-local").split(".")))


def _fields(definition: Json, definitions: Json, reached: list[str]) -> list[str]:
    required = definition.get("required", ())
    return [
        f"{name}{'!' if name in required else ''}:{'any' if name in _LEFT_OUT else _type(its, definitions, reached)}"
        for name, its in sorted(definition["properties"].items())
    ]


def _type(node: Json, definitions: Json, reached: list[str]) -> str:
    if (ref := node.get("$ref", "").rpartition("/")[2]) in definitions:
        if (short := _short(ref)) in _PLAIN:
            return _PLAIN[short]
        if not definitions[ref].get("properties"):
            return "any"
        reached.append(ref)
        return short
    if "items" in node:
        return f"[]{_type(node['items'], definitions, reached)}"
    if "additionalProperties" in node:
        return f"{{}}{_type(node['additionalProperties'], definitions, reached)}"
    kinds = node.get("type", "any")
    return kinds if isinstance(kinds, str) else str(kinds[0])


def _short(name: str) -> str:
    return name.rpartition(".")[2]
