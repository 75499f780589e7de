"""A CRD like JobSet's, in a group of its own: the planes' real one belongs to other tests."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from jobset_gate.kube.resources import Resource
from jobset_gate_demo.fake import jobset_crd


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
        made = jobset_crd.manifest()
        spec = made["spec"]
        (version,) = spec["versions"]
        versions = [version | {"name": "v1alpha1", "storage": False}, version]
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        return kind | {"metadata": {"name": self.name}, "spec": spec | {"group": self.group, "versions": versions}}
