"""A shell understands each of our scripts."""

import shutil
import subprocess
from pathlib import Path

from tests.plane import versions
from tests.repo.files import ROOT, tracked

AIRGAP = ROOT / "e2e" / "airgap"


def interpreter(path: Path) -> str:
    """The shell that a script's first line names, or "" for other files."""
    with path.open("rb") as file:
        words = file.readline().removeprefix(b"#!").decode(errors="replace").split() or [""]
    name = words[-1].rsplit("/", 1)[-1]
    return name if name in ("sh", "bash") else ""


SCRIPTS = [path for path in tracked() if interpreter(path)]
SOURCED = sorted(AIRGAP.glob("*.sh"))


def test_a_shell_understands_each() -> None:
    for script in (*SCRIPTS, *SOURCED):
        shell = shutil.which(interpreter(script) or "bash")
        assert shell
        ran = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)  # noqa: S603
        assert (ran.returncode, ran.stderr) == (0, ""), script


def test_the_versions_are_those_of_the_control_plane_of_the_tests() -> None:
    env = (AIRGAP / "env.sh").read_text()
    modules = (AIRGAP / "go" / "kube" / "go.mod").read_text()
    assert f"KUBERNETES_VERSION={versions.KUBERNETES} " in env
    assert f"k8s.io/kubernetes {versions.KUBERNETES}\n" in modules
    assert f"go.etcd.io/etcd/server/v3 {versions.ETCD}\n" in modules
