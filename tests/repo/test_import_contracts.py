"""The import contracts of pyproject.toml (`make contracts`) would notice if they did not hold."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.repo.files import PACKAGES, ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
FORBIDDEN = {
    "Arrows point inward": ("jobset_gate/kube/__init__.py", "import webhook"),
    "The rules are pure": ("jobset_gate/names.py", "import time"),
    "Client and runtime know no gang": ("jobset_gate/runtime/__init__.py", "import jobset_gate.podgroups.model"),
    "The controllers know each other": ("controllers/barrier/__init__.py", "import controllers.podgroups"),
    "Only the demo knows": ("webhook/__init__.py", "import jobset_gate.fake"),
    "Only the client speaks": ("controllers/__init__.py", "import aiohttp"),
    "Only the client uses": ("controllers/__init__.py", "import kubernetes_asyncio"),
    "Only the exporter knows": ("webhook/__init__.py", "import opentelemetry"),
}
"""By the name of the contract that notices: a file, and a line that must not stand there."""
IMPURE = {"cli", "fake", "kube", "runtime"}


def test_a_forbidden_import_is_noticed(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, line in FORBIDDEN.values():
        path = tmp_path / file
        path.write_text(f"{path.read_text()}\n{line}\n")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode != 0
    verdicts = " ".join(ran.stdout.split()).partition("Broken contracts")[0]  # it wraps its lines
    unseen = [name for name in FORBIDDEN if not re.search(rf"{name}[^.]*? BROKEN", verdicts)]
    assert unseen == [], ran.stdout
    assert len(FORBIDDEN) == len(CONTRACTS)


def test_every_package_of_the_rules_is_under_the_contract_of_the_pure() -> None:
    pure = next(contract for contract in CONTRACTS if contract["id"] == "pure")
    found = (
        path for path in (ROOT / "jobset_gate").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    )
    modules = {f"jobset_gate.{path.stem}" for path in found if path.stem not in IMPURE | {"__init__"}}
    assert set(pure["source_modules"]) == modules
