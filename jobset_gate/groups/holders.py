"""The objects that pods are made of: a Pod itself, and whatever holds a template of pods (G1)."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.groups.model import Meta
from jobset_gate.template import Json, Path, dig, dotted, mapping, replicated_jobs

_TEMPLATE: Final[Path] = ("spec", "template")
_HOLDERS: Final[Mapping[tuple[str, str], Path]] = MappingProxyType(
    {
        ("v1", "Pod"): (),
        ("v1", "PodTemplate"): ("template",),
        ("v1", "ReplicationController"): _TEMPLATE,
        ("apps/v1", "Deployment"): _TEMPLATE,
        ("apps/v1", "ReplicaSet"): _TEMPLATE,
        ("apps/v1", "StatefulSet"): _TEMPLATE,
        ("batch/v1", "Job"): _TEMPLATE,
        ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    }
)
"""Where each kind holds its pods' metadata. No DaemonSet: its pods are never taken (G2)."""


def pods(obj: Any) -> list[tuple[Path, Json]]:
    """The pods or templates of pods of an object, each with its place in it; [] for every other kind."""
    kind = (dig(obj, "apiVersion"), dig(obj, "kind"))
    if kind == (names.JOBSET_API_VERSION, "JobSet"):
        return [(job.pod_path, job.pod_template) for job in replicated_jobs(obj)]
    if not all(isinstance(it, str) for it in kind) or kind not in _HOLDERS:
        return []
    path = _HOLDERS[kind]
    return [(path, mapping(dig(obj, *(str(it) for it in path))))]


def metas(obj: Any) -> Iterator[Meta]:
    """The metadata that the pods of an object have or will have."""
    said = dig(obj, "metadata", "namespace")
    namespace = said if isinstance(said, str) else ""
    for path, holder in pods(obj):
        yield Meta.of(holder, namespace, dotted((*path, "metadata")))
