"""Which kinds of objects the server keeps: the built-in ones, and those that stored CRDs add."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jobset_gate.fake.apiserver.shapes import GRANULAR, Shape, builtin_shape
from jobset_gate.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A resource with what the server must know to keep it.

    status: it has the subresource of that name. generation: metadata.generation counts its spec changes.
    shape: how its lists and maps merge. schema: the OpenAPI schema of a custom kind, else None.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    short: tuple[str, ...] = ()
    shape: Shape = GRANULAR
    schema: dict[str, Any] | None = None
    custom: bool = False
    singular_name: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As messages name it: "jobs.batch", "pods"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def singular(self) -> str:
        return self.singular_name or self.kind.lower()

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.plural


def _kind(api_version: str, kind: str, plural: str, marks: str = "", *short: str) -> ServedKind:
    """`marks`: c = cluster-scoped, s = has a status subresource, g = has a generation."""
    group, _, version = api_version.rpartition("/")
    return ServedKind(
        group,
        version,
        plural,
        kind,
        namespaced="c" not in marks,
        status="s" in marks,
        generation="g" in marks,
        short=short,
        shape=builtin_shape(group, kind),
    )


_ADMISSION = "admissionregistration.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"

BUILTIN: tuple[ServedKind, ...] = (
    _kind("v1", "Pod", "pods", "sg", "po"),
    _kind("v1", "ConfigMap", "configmaps", "", "cm"),
    _kind("v1", "Secret", "secrets"),
    _kind("v1", "Service", "services", "s", "svc"),
    _kind("v1", "ServiceAccount", "serviceaccounts", "", "sa"),
    _kind("v1", "Namespace", "namespaces", "cs", "ns"),
    _kind("v1", "Node", "nodes", "cs", "no"),
    _kind("v1", "Event", "events", "", "ev"),
    _kind("v1", "Endpoints", "endpoints", "", "ep"),
    _kind("v1", "LimitRange", "limitranges", "", "limits"),
    _kind("v1", "ResourceQuota", "resourcequotas", "s", "quota"),
    _kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "s", "pvc"),
    _kind("batch/v1", "Job", "jobs", "sg"),
    _kind("batch/v1", "CronJob", "cronjobs", "sg", "cj"),
    _kind("apps/v1", "Deployment", "deployments", "sg", "deploy"),
    _kind("apps/v1", "ReplicaSet", "replicasets", "sg", "rs"),
    _kind("apps/v1", "StatefulSet", "statefulsets", "sg", "sts"),
    _kind("apps/v1", "DaemonSet", "daemonsets", "sg", "ds"),
    _kind("coordination.k8s.io/v1", "Lease", "leases"),
    _kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    _kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "sg", "pdb"),
    _kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "g", "netpol"),
    _kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "cg", "pc"),
    _kind(_RBAC, "Role", "roles"),
    _kind(_RBAC, "RoleBinding", "rolebindings"),
    _kind(_RBAC, "ClusterRole", "clusterroles", "c"),
    _kind(_RBAC, "ClusterRoleBinding", "clusterrolebindings", "c"),
    _kind(_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "cg"),
    _kind(_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "cg"),
    _kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "csg", "crd", "crds"),
)


class ServedKinds:
    """The kinds that exist now. Custom ones come and go with their CRDs."""

    def __init__(self) -> None:
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in BUILTIN}

    def at(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._by_path.get((group, version, plural))

    def of(self, resource: Resource) -> ServedKind:
        """The kind that is kept for a resource. Errors: KeyError for one that is not served."""
        return self._by_path[resource.group, resource.version, resource.plural]

    def named(self, api_version: str, kind: str) -> ServedKind | None:
        """The kind an owner reference means."""
        return next((item for item in self if item.kind == kind and item.api_version == api_version), None)

    def put(self, kind: ServedKind) -> None:
        self._by_path[kind.group, kind.version, kind.plural] = kind

    def drop(self, group: str, plural: str) -> None:
        """Forget all versions of a custom kind."""
        self._by_path = {path: kind for path, kind in self._by_path.items() if kind.key != (group, plural)}

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._by_path.values())
