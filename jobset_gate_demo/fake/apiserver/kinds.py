"""The kinds that the server keeps: the built-in ones, and those of stored CRDs with their pruning and defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jobset_gate_demo.fake.apiserver.responses import Obj, copy

_IDENTITY = ("apiVersion", "kind", "metadata")
_LOOSE: Obj = {"x-kubernetes-preserve-unknown-fields": True}


@dataclass(frozen=True, slots=True, eq=False)
class ServedKind:
    """A resource with what the server must know to keep it.

    status: it has the subresource of that name. generation: metadata.generation counts its spec changes.
    schema: the OpenAPI schema of a custom kind, else None.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    schema: dict[str, Any] | None = None
    custom: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As messages name it: "jobs.batch", "pods"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.plural


def _kind(api_version: str, kind: str, plural: str, marks: str = "") -> ServedKind:
    """`marks`: c = cluster-scoped, s = has a status subresource, g = has a generation."""
    group, _, version = api_version.rpartition("/")
    return ServedKind(
        group, version, plural, kind, namespaced="c" not in marks, status="s" in marks, generation="g" in marks
    )


_ADMISSION = "admissionregistration.k8s.io/v1"

BUILTIN: tuple[ServedKind, ...] = (
    _kind("v1", "Pod", "pods", "sg"),
    _kind("v1", "ConfigMap", "configmaps"),
    _kind("v1", "Secret", "secrets"),
    _kind("v1", "Service", "services", "s"),
    _kind("v1", "Namespace", "namespaces", "cs"),
    _kind("v1", "Node", "nodes", "cs"),
    _kind("v1", "Event", "events"),
    _kind("v1", "ResourceQuota", "resourcequotas", "s"),
    _kind("batch/v1", "Job", "jobs", "sg"),
    _kind("apps/v1", "Deployment", "deployments", "sg"),
    _kind("apps/v1", "ReplicaSet", "replicasets", "sg"),
    _kind("apps/v1", "StatefulSet", "statefulsets", "sg"),
    _kind("coordination.k8s.io/v1", "Lease", "leases"),
    _kind(_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "cg"),
    _kind(_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "cg"),
    _kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "csg"),
    _kind("authentication.k8s.io/v1", "TokenReview", "tokenreviews", "c"),
    _kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", "c"),
)
_BY_KEY = {kind.key: kind for kind in BUILTIN}
NAMESPACES = _BY_KEY["", "namespaces"]
CRD_KIND = _BY_KEY["apiextensions.k8s.io", "customresourcedefinitions"]
MUTATING = _BY_KEY["admissionregistration.k8s.io", "mutatingwebhookconfigurations"]
VALIDATING = _BY_KEY["admissionregistration.k8s.io", "validatingwebhookconfigurations"]


class ServedKinds:
    """The kinds that exist now. Custom ones come with their CRDs, and stay."""

    def __init__(self) -> None:
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in BUILTIN}

    def at(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._by_path.get((group, version, plural))

    def put(self, kind: ServedKind) -> None:
        self._by_path[kind.group, kind.version, kind.plural] = kind

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._by_path.values())


def kinds_of_crd(crd: Obj) -> list[ServedKind]:
    """The served versions of a CRD."""
    spec = crd["spec"]
    return [_custom_kind(spec, version) for version in spec["versions"] if version.get("served", True)]


def _custom_kind(spec: Obj, version: Obj) -> ServedKind:
    return ServedKind(
        spec["group"],
        version["name"],
        spec["names"]["plural"],
        spec["names"]["kind"],
        namespaced=spec.get("scope") != "Cluster",
        status="status" in (version.get("subresources") or {}),
        generation=True,
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        custom=True,
    )


def prune(value: Any, schema: Obj, path: str = "") -> Iterator[str]:
    """Remove fields that the schema does not know; their paths."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from prune(item, schema.get("items", _LOOSE), f"{path}[{place}]")
    elif isinstance(value, dict):
        properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        loose = extra or "x-kubernetes-preserve-unknown-fields" in schema
        for name in list(value):
            at = f"{path}.{name}" if path else name
            if not path and name in _IDENTITY:
                continue
            known = properties.get(name, extra)
            if name in properties or loose:
                yield from prune(value[name], known if isinstance(known, dict) else _LOOSE, at)
            else:
                del value[name]
                yield at


def default_custom(value: Any, schema: Obj) -> None:
    """Drop nulls where the schema has none, fill in its defaults."""
    if isinstance(value, list):
        for item in value:
            default_custom(item, schema.get("items") or {})
    elif isinstance(value, dict):
        properties = schema.get("properties") or {}
        for name, part in properties.items():
            if name in value and value[name] is None and not part.get("nullable"):
                del value[name]
            if "default" in part and name not in value:
                value[name] = copy(part["default"])
        extra = schema.get("additionalProperties")
        for name, part in value.items():
            default_custom(part, properties.get(name) or (extra if isinstance(extra, dict) else {}))
