"""What is in the cluster because of jobset-gate, asked of every kind of object that there is."""

import json
from collections.abc import Iterator
from typing import Any, Final

from e2e import gate
from e2e.cluster import E2eCluster

NONE: Final = "<none>"
COLUMNS: Final = {
    "namespace": ".metadata.namespace",
    "kind": ".kind",
    "name": ".metadata.name",
    "app": r".metadata.labels.app\.kubernetes\.io/name",
}
EVERY_NAMESPACES: Final = frozenset({"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"})
"""What the control plane puts into each."""
FLEETING: Final = frozenset({"events", "events.events.k8s.io", "componentstatuses"})
"""Kinds whose objects expire, or that are only views."""
NOT_NAMED_BY_US: Final = frozenset({"Node", "CSINode", "CertificateSigningRequest"})
"""Kinds whose names come from nodes, which may well be called after us."""


def all_of(cluster: E2eCluster) -> set[str]:
    """Labelled as ours anywhere, in our namespace, or without a namespace and named after us: as `Kind/name`."""
    kinds = set(cluster.kubectl("api-resources", "--verbs=list", "--output=name").split()) - FLEETING
    columns = ",".join(f"{title}:{path}" for title, path in COLUMNS.items())
    shown = ("--all-namespaces", "--no-headers", f"--output=custom-columns={columns}")
    return set(ours(cluster.kubectl("get", ",".join(sorted(kinds)), *shown)))


def ours(table: str) -> Iterator[str]:
    """Of the lines of such a table those that are because of us."""
    for line in table.splitlines():
        namespace, kind, name, app = line.split()
        inside = namespace == gate.NAMESPACE and f"{kind}/{name}" not in EVERY_NAMESPACES
        named = namespace == NONE and gate.RELEASE in name and kind not in NOT_NAMED_BY_US
        if app == gate.RELEASE or inside or (named and f"{kind}/{name}" != f"Namespace/{gate.NAMESPACE}"):
            yield f"{kind}/{name}"


def field_in_crd(cluster: E2eCluster, crd: str, field: str) -> bool:
    """Whether the kind's spec has that field."""
    found: dict[str, Any] = json.loads(cluster.kubectl("get", "crd", crd, "--output=json"))
    specs = (one["schema"]["openAPIV3Schema"]["properties"]["spec"] for one in found["spec"]["versions"])
    return any(field in spec["properties"] for spec in specs)
