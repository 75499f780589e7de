"""A CRD like JobSet's, in a group of its own: the planes' real one belongs to other tests."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from jobset_gate.kube.resources import Resource


@dataclass(frozen=True)
class JobSetLikeCrd:
    """`manifest` is what its owner applies; two versions, so that the place in the list matters."""

    group: str = field(default_factory=lambda: f"t{secrets.token_hex(4)}.example.com")

    @property
    def name(self) -> str:
        return f"jobsets.{self.group}"

    @property
    def resource(self) -> Resource:
        return Resource(self.group, "v1alpha2", "jobsets", "JobSet")

    @property
    def manifest(self) -> dict[str, Any]:
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "names": {"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"},
                "scope": "Namespaced",
                "versions": [_version("v1alpha1", stored=False), _version("v1alpha2", stored=True)],
            },
        }


def _version(name: str, *, stored: bool) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"suspend": {"type": "boolean"}}}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": spec,
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": stored, "schema": schema}
