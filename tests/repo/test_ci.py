"""`.ci/run`: every step's failure counts, its last line is one closing line for all."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repo.files import ROOT

PASSED = "===== 7 passed, 2 warnings in 1.50s ====="
TOGETHER = "===== 3 passed, 2 deselected in 2.00s ====="
ALONE = "===== 2 passed, 3 deselected in 3.25s (0:00:03) ====="
PREPARES, TESTS = "e2e E2E_ARGS=prepare", "test PYTEST_ARGS=--durations=40 --durations-min=1"
BENCH = "bench bench-groups --jobs=2 --output-sync BENCH_ARGS=--scale 0.01"


class CiClone:
    """A checkout with a fake `make` and a fake Docker daemon."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "kind"
        self.home.mkdir()
        (folder / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
        self.script("e2e/airgap/env.sh", "export KIND_HOME")
        self.script("e2e/airgap/teardown", f"echo torn down >> {folder}/teardowns")
        self.steps = {
            "prepare": "true",
            "test": f"echo '{PASSED}'",
            "e2e": f"echo '{TOGETHER}'; echo '{ALONE}'",
            "bench": "true",
        }
        self.script("bin/docker", "true")

    def script(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run(self) -> tuple[int, list[str]]:
        """Exit code and lines."""
        cases = "".join(f"{name}) {text} ;;\n" for name, text in self.steps.items())
        which = f'what=$1\n[ "$*" != "{PREPARES}" ] || what=prepare\n'
        self.script("bin/make", f'{which}echo "$*" >> {self.folder}/asked\ncase $what in\n{cases}esac')
        env = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "KIND_HOME": str(self.home)}
        ran = subprocess.run([self.folder / ".ci/run"], env=env, capture_output=True, text=True, check=False)  # noqa: S603
        return ran.returncode, ran.stdout.splitlines()

    def lines_of(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def clone(tmp_path: Path) -> CiClone:
    return CiClone(tmp_path)


def test_all_is_well(clone: CiClone) -> None:
    code, lines = clone.run()
    assert code == 0
    assert lines[-4:] == [PASSED, TOGETHER, ALONE, "=== 12 passed in 6.75s ==="]
    assert re.fullmatch(r"all is well after \d+ s", lines[-5])
    assert clone.lines_of("asked") == [PREPARES, TESTS, "e2e", BENCH]
    assert clone.lines_of("teardowns") != [], "a daemon that was not there before is stopped"


FAILS = "echo '===== 1 failed, 4 passed in 1.00s ====='; exit 2"


@pytest.mark.parametrize(
    ("step", "does", "code", "last", "asked"),
    [
        ("test", FAILS, 2, "=== 1 failed, 9 passed in 6.25s ===", [TESTS, "e2e"]),
        ("e2e", FAILS, 2, "=== 1 failed, 11 passed in 2.50s ===", [TESTS, "e2e"]),
        ("test", f"echo '{PASSED}'; exit 3", 3, "=== 12 passed, 1 error in 6.75s ===", [TESTS, "e2e"]),
        ("e2e", "true", 1, "=== 7 passed, 1 error in 1.50s ===", [TESTS, "e2e", BENCH]),
        ("prepare", "exit 1", 1, "=== 7 passed, 1 error in 1.50s ===", [TESTS]),
    ],
    ids=["a test fails", "one of e2e", "tests pass and the step fails", "no test is run", "no node image"],
)
def test_a_step_that_fails(clone: CiClone, *, step: str, does: str, code: int, last: str, asked: list[str]) -> None:
    """What needs nothing of it is run all the same; no benchmark of what has failed a test."""
    clone.steps[step] = does
    found, lines = clone.run()
    assert (found, lines[-1]) == (code, last)
    assert clone.lines_of("asked") == [PREPARES, *asked]
