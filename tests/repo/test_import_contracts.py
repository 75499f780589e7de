"""The import contracts of pyproject.toml hold, and would notice if they did not."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.repo.files import PACKAGES, ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603


def test_the_import_contracts_hold() -> None:
    """The walls of the house, each with its reason as its name."""
    ran = lint(ROOT)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("jobset_gate/names.py", "import time", "The rules are pure"),
        ("jobset_gate/names.py", "import jobset_gate.kube.client", "The rules are pure"),
        ("jobset_gate/podgroups/merge.py", "import time", "The rules are pure"),
        ("webhook/__init__.py", "import controllers", "Arrows point inward"),
        ("jobset_gate/kube/__init__.py", "import webhook", "Arrows point inward"),
        ("controllers/__init__.py", "import aiohttp", "speak HTTP"),
        ("webhook/__init__.py", "import jobset_gate.fake", "know the embedded cluster"),
        ("controllers/__init__.py", "import kubernetes_asyncio", "uses kubernetes-asyncio"),
    ],
)
def test_a_forbidden_import_is_noticed(tmp_path: Path, file: str, line: str, broken: str) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / file
    path.write_text(f"{path.read_text()}\n{line}\n")
    ran = lint(tmp_path)
    assert ran.returncode != 0
    said = " ".join(ran.stdout.split())  # it wraps its lines
    assert re.search(rf"{broken}[^.]*? BROKEN", said.split("Broken contracts")[0]), ran.stdout


def test_every_package_of_rules_is_under_the_contract_of_the_pure() -> None:
    """A new module or package directly in jobset_gate is a rule, unless it is one of those that do I/O."""
    pure = next(contract for contract in CONTRACTS if contract["id"] == "pure")
    found = {path.stem for path in (ROOT / "jobset_gate").iterdir() if path.suffix in {"", ".py"}}
    doing_io = {"cli", "fake", "kube", "runtime", "__init__", "__pycache__"}
    assert set(pure["source_modules"]) == {f"jobset_gate.{name}" for name in found - doing_io}
