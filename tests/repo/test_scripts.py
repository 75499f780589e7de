"""`make image` and `make e2e` pass on what they are given and no more, and a shell understands each script."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.repo.files import ROOT, tracked


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


# --- Scripts ----------------------------------------------------------------------------------------------------------

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
