"""One wheel with everything in it, entry points that load, and a lock that covers what is asked for."""

import importlib.metadata
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.repo.files import PACKAGES, ROOT, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==\S+ \\$", re.MULTILINE)


def pins(name: str) -> set[str]:
    return {found.lower() for found in PIN.findall((ROOT / "requirements" / name).read_text())}


def normal(requirement: str) -> str:
    return re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@pytest.mark.parametrize("command", ["jobset-gate", "kubectl-jobset_gate"])
def test_the_command_is_installed_and_loads(command: str) -> None:
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name=command)
    assert callable(entry.load())
    assert (Path(sys.executable).parent / command).exists()


def test_the_wheel_holds_the_three_packages_and_nothing_else(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    ran = subprocess.run(build, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (wheel,) = tmp_path.glob("jobset_gate-*-py3-none-any.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    ours = {str(path.relative_to(ROOT)) for path in tracked()}
    assert inside == {name for name in ours if name.split("/")[0] in PACKAGES}
    assert {
        "jobset_gate/injection/barrier.sh",
        "jobset_gate/py.typed",
        "webhook/py.typed",
        "controllers/py.typed",
    } <= inside


def test_the_source_distribution_holds_what_the_wheel_is_made_of_and_nothing_else(tmp_path: Path) -> None:
    """Not tests/webhook, nor the chart's templates of that name."""
    build = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    ran = subprocess.run(build, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (archive,) = tmp_path.glob("jobset_gate-*.tar.gz")
    with tarfile.open(archive) as tar:
        inside = {Path(member.name).parts[1] for member in tar.getmembers() if member.isfile()}
    papers = {"pyproject.toml", "PKG-INFO", ".gitignore", "README.md", "CHANGELOG.md", "LICENSE"}
    assert inside == {*PACKAGES, *papers}


def test_every_dependency_is_locked() -> None:
    assert {normal(each) for each in PROJECT["dependencies"]} <= pins("runtime.txt")


def test_what_tests_need_is_locked_with_the_same_runtime() -> None:
    assert pins("runtime.txt") <= pins("dev.txt")
    wanted = [line for line in (ROOT / "requirements/dev.in").read_text().splitlines() if line[:1] not in ("#", "-")]
    assert {normal(each) for each in wanted} <= pins("dev.txt")


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt", "go.txt"])
def test_each_pin_has_hashes_and_no_option_sends_pip_elsewhere(name: str) -> None:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    assert [line for line in lines if line.startswith("-")] == []
    entries = [line for line in lines if line and line[0] not in " #"]
    following = [lines[number + 1] for number, line in enumerate(lines) if line and line[0] not in " #"]
    assert entries
    assert [line for line in entries if not line.endswith("\\")] == []
    assert [line for line in following if "--hash=sha256:" not in line] == []
