"""The objects that pods are made of: a Pod itself, and whatever holds a template of pods (G1)."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.jobset import replicated_jobs
from jobset_gate.objects.unstructured import Json, Path, as_map, format_path, nested
from jobset_gate.podgroups.model import RawMetadata

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


def pod_templates(obj: Any) -> list[tuple[Path, Json]]:
    """The pods or templates of pods of an object, each with its place in it; [] for every other kind."""
    kind = (nested(obj, "apiVersion"), nested(obj, "kind"))
    if kind == (names.JOBSET_API_VERSION, "JobSet"):
        return [(job.pod_path, job.pod_template) for job in replicated_jobs(obj)]
    if not all(isinstance(it, str) for it in kind) or kind not in _HOLDERS:
        return []
    path = _HOLDERS[kind]
    return [(path, as_map(nested(obj, *(str(it) for it in path))))]


def pod_metadata(obj: Any) -> Iterator[RawMetadata]:
    """The metadata that the pods of an object have or will have."""
    said = nested(obj, "metadata", "namespace")
    namespace = said if isinstance(said, str) else ""
    for path, holder in pod_templates(obj):
        yield RawMetadata.of_object(holder, namespace, format_path((*path, "metadata")))
