"""Builds Helm from Go modules (tests/tools/gomod): go.sum names the hash of everything that goes into it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.plane.build import compiled
from tests.tools import versions

MODULE = Path(__file__).parent / "gomod"


def helm(major: int, output: Path, say: Callable[[str], None], env: Mapping[str, str] = os.environ) -> str:
    """Helm 3 or Helm 4 at `output`; the answer is the version of Go that made it. plane.build.BuildFailed."""
    package = f"helm.sh/helm/v{major}/cmd/helm"
    return compiled(MODULE, package, output, stamps=stamps(major), say=say, env=env)


def stamps(major: int) -> dict[str, str]:
    """What Helm's own release sets: its version, and that of Kubernetes which `helm template` assumes."""
    own = {f"helm.sh/helm/v{major}/internal/version.version": versions.HELM[major]}
    if major != 3:
        return own  # it finds out by itself
    minor = required("k8s.io/client-go").split(".")[1]
    packages = [f"helm.sh/helm/v3/pkg/{name}.k8sVersion" for name in ("chartutil", "lint/rules")]
    return own | {f"{package}Major": "1" for package in packages} | {f"{package}Minor": minor for package in packages}


def required(module: str) -> str:
    """The version of a module that go.mod asks for."""
    lines = (line.split() for line in (MODULE / "go.mod").read_text().splitlines())
    return next(words[1] for words in lines if words[:1] == [module])
