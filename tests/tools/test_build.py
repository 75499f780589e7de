"""Building Helm from Go modules: which ones, and what it is told of itself. (make tools is the build itself.)"""

import subprocess
from pathlib import Path

import pytest

from tests.plane.test_build import fake_go
from tests.tools import build, places, versions


@pytest.mark.parametrize("major", versions.HELM)
def test_the_go_module_asks_for_the_versions_that_are_promised(major: int) -> None:
    assert build.required(f"helm.sh/helm/v{major}") == versions.HELM[major]


@pytest.mark.parametrize("major", versions.HELM)
def test_go_is_told_which_helm_to_build_and_what_it_calls_itself(major: int, tmp_path: Path) -> None:
    writes = f'pwd > {tmp_path}/where; echo "$*" > {tmp_path}/asked'
    env = fake_go(tmp_path / "bin", "go1.26.8", then=writes)
    assert build.helm(major, tmp_path / "helm", print, env) == "1.26.8"
    asked = (tmp_path / "asked").read_text()
    assert asked.endswith(f"-o {tmp_path}/helm helm.sh/helm/v{major}/cmd/helm\n")
    assert f"-X helm.sh/helm/v{major}/internal/version.version={versions.HELM[major]}" in asked
    assert (tmp_path / "where").read_text() == f"{build.MODULE}\n"


@pytest.mark.parametrize("major", versions.HELM)
def test_both_assume_the_kubernetes_they_are_made_of(major: int, tmp_path: Path) -> None:
    """Else `helm template` would take Helm 3 for one from the days of Kubernetes 1.20."""
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: a\nversion: 0.1.0\nkubeVersion: '>=1.30.0-0'\n")
    (chart / "templates" / "it.yaml").write_text("said: {{ .Capabilities.KubeVersion.Minor | quote }}\n")
    helm = places.helm(major)
    ran = subprocess.run([helm, "template", "a", str(chart)], capture_output=True, text=True, check=True)  # noqa: S603
    assert f'said: "{build.required("k8s.io/client-go").split(".")[1]}"' in ran.stdout
