"""A shell understands each of our scripts."""

import shutil
import subprocess
from pathlib import Path

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
