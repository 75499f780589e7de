"""What the image has to be, as far as its files say it, and which wheels are collected for it."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.repo.files import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
LINES = [line for line in DOCKERFILE.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
SCRIPT = ROOT / "requirements" / "wheels.py"


def arguments(word: str, lines: list[str]) -> list[str]:
    """What follows this instruction, each time it is given."""
    return [line.removeprefix(word).strip() for line in lines if line.startswith(word + " ")]


def last_stage() -> list[str]:
    return LINES[max(number for number, line in enumerate(LINES) if line.startswith("FROM ")) :]


def test_it_runs_as_a_number_that_is_not_root() -> None:
    """A number: with a name, the kubelet could not verify runAsNonRoot."""
    assert arguments("USER", last_stage()) == ["65532:65532"]


def test_the_base_image_is_an_argument_of_every_stage() -> None:
    assert LINES[0].startswith("ARG BASE=")
    assert {line.split()[0] for line in arguments("FROM", LINES)} == {"${BASE}"}


def test_the_default_base_names_no_host_and_is_always_the_same() -> None:
    (base,) = [line.removeprefix("BASE=") for line in arguments("ARG", LINES) if line.startswith("BASE=")]
    assert re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", base)


def test_every_package_is_locked() -> None:
    """One list of arguments for all that pip fetches."""
    assert [line for line in LINES if "set -- install" in line and "--require-hashes" in line]
    fetched = re.findall(r"pip (?:--python \S+ )?(install|wheel|\"\$@\")([^;]*)", " ".join(LINES))
    assert fetched
    assert [rest for verb, rest in fetched if verb != '"$@"' and "--no-index" not in rest] == []


def test_the_context_holds_all_that_is_copied() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        word.rstrip("/") for line in arguments("COPY", LINES) if "--from" not in line for word in line.split()[:-1]
    }
    for word in copied - {"${WHEELS:-requirements}"}:
        assert any(each == word or each.startswith(word + "/") for each in allowed), word
    assert "build/wheels" in allowed


def test_the_context_holds_neither_the_embedded_cluster_nor_the_demo() -> None:
    """The last line of .dockerignore that matches decides."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    for folder in ("jobset_gate/fake", "jobset_gate/cli/demo"):
        assert lines.index(folder) > lines.index("!jobset_gate")


@pytest.fixture
def docker(tmp_path: Path) -> dict[str, str]:
    """An environment whose docker says what the base image's Python would, and whose pip prints its arguments."""
    fake = tmp_path / "bin" / "docker"
    fake.parent.mkdir()
    facts = '{"python": "3.12", "machine": "x86_64", "glibc": "%s"}'
    fake.write_text(
        f"#!/bin/sh\ncase \"$*\" in *musl*) echo '{facts % ''}';; *) echo '{facts % 'glibc 2.36'}';; esac\n"
    )
    fake.chmod(0o755)
    pip = tmp_path / "pip"
    pip.mkdir()
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    return {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}", "PYTHONPATH": str(tmp_path)}


def collect(tmp_path: Path, env: dict[str, str], base: str, *args: str) -> list[list[str]]:
    """The arguments of each call of pip."""
    command = [sys.executable, str(SCRIPT), base, str(tmp_path / "wheels"), *args, "lock.txt"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stderr
    return [line.split() for line in ran.stdout.splitlines() if line.startswith("download ")]


def platforms(call: list[str]) -> list[str]:
    return [after for word, after in pairwise(call) if word == "--platform"]


def test_wheels_are_for_the_python_of_the_base_image_and_those_no_longer_locked_go_away(
    tmp_path: Path, docker: dict[str, str]
) -> None:
    old = tmp_path / "wheels" / "old-1.0-py3-none-any.whl"
    old.parent.mkdir()
    old.touch()
    (call,) = collect(tmp_path, docker, "some-base")
    assert list(old.parent.iterdir()) == []
    assert call[call.index("--python-version") + 1] == "3.12"
    assert "--require-hashes" in call
    assert platforms(call)[0] == "manylinux_2_36_x86_64"
    assert platforms(call)[-1] == "manylinux1_x86_64"
    assert platforms(call).index("manylinux2014_x86_64") == platforms(call).index("manylinux_2_17_x86_64") + 1
    (call,) = collect(tmp_path, docker, "a-musl-base")
    assert platforms(call) == ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64", "musllinux_1_0_x86_64"]


def test_wheels_for_several_machines(tmp_path: Path, docker: dict[str, str]) -> None:
    calls = collect(tmp_path, docker, "some-base", "+x86_64", "+aarch64")
    assert [platforms(call)[0] for call in calls] == ["manylinux_2_36_x86_64", "manylinux_2_36_aarch64"]
