"""Our shell scripts are complete programs, and stop where something fails."""

import shutil
import subprocess
from pathlib import Path

import pytest

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


def names(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("script", [*SCRIPTS, *SOURCED], ids=names)
def test_a_shell_understands_it(script: Path) -> None:
    shell = shutil.which(interpreter(script) or "bash")
    assert shell
    ran = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)  # noqa: S603
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("script", [AIRGAP / "setup", *sorted((AIRGAP / "stages").iterdir())], ids=names)
def test_it_can_be_run_and_stops_at_the_first_failure(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in script.read_text()


def declared(stage: Path, what: str) -> list[str]:
    """The words of a stage's line `# uses: ...`."""
    start = f"# {what}: "
    lines = [line.removeprefix(start) for line in stage.read_text().splitlines() if line.startswith(start)]
    return " ".join(lines).split()


@pytest.mark.parametrize("stage", sorted((AIRGAP / "stages").iterdir()), ids=names)
def test_what_a_stage_uses_exists_and_comes_before_it(stage: Path) -> None:
    for used in declared(stage, "uses"):
        assert (AIRGAP / used).exists()
        assert not used.startswith("stages/") or used < f"stages/{stage.name}"


@pytest.mark.parametrize("stage", sorted((AIRGAP / "stages").iterdir()), ids=names)
def test_a_stage_says_all_that_it_uses_of_this_folder(stage: Path) -> None:
    """Its key is made of that: what is not said would be changed without effect."""
    text = stage.read_text()
    for folder in ("node", "go"):
        if f"$KIND_TOOLS/{folder}/" in text:
            assert any(used.startswith(folder) for used in declared(stage, "uses"))
    for sourced in SOURCED:
        if f"$KIND_TOOLS/{sourced.name}" in text and sourced.name != "lib.sh":  # that counts for every stage
            assert sourced.name in declared(stage, "uses")


def test_the_versions_are_those_of_the_control_plane_of_the_tests() -> None:
    env = (AIRGAP / "env.sh").read_text()
    modules = (AIRGAP / "go" / "kube" / "go.mod").read_text()
    assert f"KUBERNETES_VERSION={versions.KUBERNETES} " in env
    assert f"k8s.io/kubernetes {versions.KUBERNETES}\n" in modules
    assert f"go.etcd.io/etcd/server/v3 {versions.ETCD}\n" in modules
