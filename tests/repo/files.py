"""The project's own files, as a fresh clone would hold them."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("jobset_gate", "jobset_gate_demo", "webhook", "controllers")


def tracked() -> list[Path]:
    """What git tracks or would track, that exists."""
    git = shutil.which("git")
    assert git, "git is needed to know which files are the project's"
    command = [git, "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()  # noqa: S603
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def shipped() -> list[Path]:
    """The Python files of the wheel."""
    return [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in PACKAGES]
