"""`make setup` says what is missing; `make image` and `make e2e` pass on what they are given, and no more."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repo.files import ROOT


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone as far as `make setup` looks, and a folder `bin` for the PATH with no Python in it."""
    (tmp_path / "requirements").mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements/dev.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for tool in ("make", "sh", "sed", "touch"):
        found = shutil.which(tool)
        assert found
        (tmp_path / "bin" / tool).symlink_to(found)
    return tmp_path


def python(clone: Path, name: str, version: str, *, has_venv: bool = True, runs: bool = True) -> None:
    """A program that answers what the Makefile asks as such a Python would, and marks that it made a venv."""
    old = tuple(map(int, version.split("."))) < (3, 11)
    path = clone / "bin" / name
    path.write_text(
        "#!/bin/sh\n"
        + ("" if runs else "exit 127\n")
        + f"case \"$2\" in *print*) echo {version};; *'< (3, 11)'*) exit {int(old)};;\n"
        + f"  *ensurepip*) exit {int(not has_venv)};; venv) echo {name} >> made; exit 9;; esac\n"
    )
    path.chmod(0o755)


def setup(clone: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(clone / "bin"), "HOME": os.environ.get("HOME", "/")}
    command = [str(clone / "bin" / "make"), "setup", *args]
    return subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, check=False)  # noqa: S603


NEEDS = "jobset-gate needs Python 3.11 or newer with the venv module: "


def test_without_a_python_that_will_do_it_says_what_is_missing(clone: Path) -> None:
    assert NEEDS + "none of python3.13, python3.12, python3.11, python3 was found." in setup(clone).stderr
    python(clone, "python3", "3.9")
    assert NEEDS + "python3 is Python 3.9." in setup(clone).stderr
    python(clone, "python3", "3.11", has_venv=False)
    ran = setup(clone)
    assert ran.returncode != 0
    assert "python3 (3.11) lacks the venv module (on Debian and Ubuntu: apt install python3.11-venv)." in ran.stderr


def test_the_newest_that_works_is_taken(clone: Path) -> None:
    """A shim may be there for a Python that is not; another may lack venv."""
    python(clone, "python3.13", "3.13", runs=False)
    python(clone, "python3.12", "3.12", has_venv=False)
    python(clone, "python3.11", "3.11")
    python(clone, "python3", "3.11")
    assert "packages as locked in requirements/dev.txt" in setup(clone).stdout
    assert (clone / "made").read_text() == "python3.11\n"


def dry(*args: str, **env: str) -> str:
    """What make would run, as it is here."""
    make = shutil.which("make")
    assert make
    command = [make, "--no-print-directory", "--dry-run", *args]
    without = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "KEEP", "MAKEFLAGS")}
    env = {**without, **env}
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)  # noqa: S603
    return ran.stdout


def test_e2e_goes_to_a_cluster_that_is_named_and_not_to_that_of_the_environment() -> None:
    """A person's KUBECONFIG may well be the one of production."""
    assert 'KUBECONFIG="mine" KEEP="1" ' in dry("e2e", "KUBECONFIG=mine", "KEEP=1")
    assert 'env -u KUBECONFIG KEEP="" ' in dry("e2e", KUBECONFIG="production")
    assert 'env -u KUBECONFIG KEEP="" ' in dry("e2e-programs", KUBECONFIG="production")


def test_the_image_is_built_without_network_from_wheels_for_its_base() -> None:
    said = dry("image", "IMAGE=a:b", "BASE=c:d", "MACHINES=x y")
    assert "requirements/wheels.py c:d build/wheels +x +y requirements/image.txt requirements/build.txt" in said
    assert "--network none --build-arg BASE=c:d --build-arg WHEELS=build/wheels" in said
    assert "--tag a:b ." in said
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    (base,) = [line.removeprefix("ARG BASE=") for line in lines if line.startswith("ARG BASE=")]
    assert f"--build-arg BASE={base} " in dry("image")


def test_no_folder_of_the_same_name_keeps_a_target_from_being_made() -> None:
    """There is a folder e2e, for one."""
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert phony
    explained = re.findall(r"^([a-z0-9-]+):.*## ", text, re.MULTILINE)
    assert set(explained) <= set(phony[1].split())
