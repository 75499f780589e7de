"""One wheel with everything in it, entry points that load, and a lock that covers all requirements."""

import importlib.metadata
import os
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


NOT_SHIPPED = "jobset_gate_demo/"
"""In the distribution jobset-gate-demo."""


def built(folder: Path, project: Path = ROOT, form: str = "wheel") -> Path:
    command = [sys.executable, "-m", "build", f"--{form}", "--no-isolation", "--outdir", str(folder), str(project)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def demo_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("demo"), ROOT / "release/demo")


def test_the_wheel_has_the_program_the_plugin_and_what_completes_it(wheel: Path) -> None:
    (found,) = importlib.metadata.distributions(path=[str(wheel)])
    assert {it.name for it in found.entry_points} == {
        "jobset-gate",
        "kubectl-jobset_gate",
        "kubectl_complete-jobset_gate",
    }
    assert all(callable(it.load()) for it in found.entry_points)


def inside(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_the_wheels_hold_the_three_packages_and_nothing_else(wheel: Path, demo_wheel: Path) -> None:
    ours = {str(path.relative_to(ROOT)) for path in tracked() if path.relative_to(ROOT).parts[0] in PACKAGES}
    demo = {name for name in ours if name.startswith(NOT_SHIPPED)}
    assert inside(wheel) == ours - demo
    assert inside(demo_wheel) == demo
    assert {
        "jobset_gate/injection/barrier.sh",
        "jobset_gate/py.typed",
        "webhook/py.typed",
        "controllers/py.typed",
    } <= inside(wheel)


def test_the_extra_demo_is_the_other_distribution_in_the_same_version() -> None:
    other = tomllib.loads((ROOT / "release/demo/pyproject.toml").read_text())["project"]
    assert other["version"] == PROJECT["version"]
    assert PROJECT["optional-dependencies"]["demo"] == [f"{other['name']}=={PROJECT['version']}"]
    assert other["dependencies"] == [f"jobset-gate=={PROJECT['version']}"]


def test_the_command_line_works_without_the_demo_and_names_what_to_install(
    wheel: Path, demo_wheel: Path, tmp_path: Path
) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-P", "-m", "jobset_gate.cli", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)  # noqa: S603

    # The virtual environment of a checkout has the checkout on its path.
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.path[:] = [it for it in sys.path if it != {str(ROOT)!r}]\n"
    )
    zipfile.ZipFile(wheel).extractall(tmp_path)  # noqa: S202 - built above
    assert "demo" in run("--help").stdout
    refused = run("demo")
    assert refused.returncode == 1
    assert "pip install 'jobset-gate[demo]'" in refused.stderr
    zipfile.ZipFile(demo_wheel).extractall(tmp_path)  # noqa: S202 - as above
    played = run("demo", "--pods", "2", "--jobs", "1", "--seconds", "0.5")
    assert (played.returncode, "Released: " in played.stdout) == (0, True), played.stdout + played.stderr


def test_the_source_distribution_holds_what_the_wheel_is_made_of_and_nothing_else(tmp_path: Path) -> None:
    """Not tests/webhook, nor the chart's templates of that name."""
    with tarfile.open(built(tmp_path, form="sdist")) as tar:
        files = {Path(*Path(member.name).parts[1:]) for member in tar.getmembers() if member.isfile()}
    assert [path for path in files if str(path).startswith(NOT_SHIPPED)] == []
    papers = {"pyproject.toml", "PKG-INFO", ".gitignore", "README.md", "CHANGELOG.md", "LICENSE"}
    assert {path.parts[0] for path in files} == {*PACKAGES, *papers} - {NOT_SHIPPED.rstrip("/")}


def test_every_dependency_is_locked_and_the_tests_have_the_same() -> None:
    assert {normal(each) for each in PROJECT["dependencies"]} <= pins("runtime.txt")
    assert pins("runtime.txt") <= pins("image.txt") <= pins("dev.txt")
    assert {normal(each) for each in PROJECT["optional-dependencies"]["traces"]} <= pins("image.txt")
    wanted = [line for line in (ROOT / "requirements/dev.in").read_text().splitlines() if line[:1] not in ("#", "-")]
    assert {normal(each) for each in wanted} <= pins("dev.txt")


def test_each_pin_has_hashes_and_no_option_sends_pip_elsewhere() -> None:
    for name in ("runtime.txt", "image.txt", "dev.txt", "go.txt"):
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        assert [line for line in lines if line.startswith("-")] == [], name
        entries = [number for number, line in enumerate(lines) if line and line[0] not in " #"]
        assert entries, name
        assert [lines[number] for number in entries if not lines[number].endswith("\\")] == [], name
        assert [lines[number] for number in entries if "--hash=sha256:" not in lines[number + 1]] == [], name
