"""The project's own files, as a fresh clone would hold them."""

import ast
import shutil
import subprocess
from collections.abc import Iterator
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


def strings(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each string of the code, without docstrings."""
    tree = ast.parse(file.read_text())
    docs = {id(it.value) for it in ast.walk(tree) if isinstance(it, ast.Expr)}
    for it in ast.walk(tree):
        if isinstance(it, ast.Constant) and isinstance(it.value, str) and id(it) not in docs:
            yield it.lineno, it.value
