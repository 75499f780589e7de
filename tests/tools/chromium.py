"""The browser for the tests of the status page: found, or installed from the system's packages as root.

Unlike the other tools it cannot be unpacked into the cache: it needs libraries and fonts of the system. A person's own
choice comes first (CHROMIUM: the path of a program), then the PATH.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.plane.progress import Progress
from tests.tools.places import FoundTool, ToolNotFound
from tests.tools.provide import Unobtainable

TITLE = "Chromium"
PROGRAM = "chromium"
VARIABLE = "CHROMIUM"
NAMES = (PROGRAM, "chromium-browser", "google-chrome", "google-chrome-stable", "chromium-headless-shell")
OLDEST = 120
"""The oldest major version that will do; whoever names one by CHROMIUM knows why."""

_ASKING_TAKES_AT_MOST = 60.0  # seconds
_INSTALLING_TAKES_AT_MOST = 600.0  # 125 MB
_WAITS = "--option=DPkg::Lock::Timeout=300"  # for another apt-get on this machine
_INSTALL = ("apt-get", "install", "--yes", "--quiet", _WAITS, "--no-install-recommends", PROGRAM)
_UPDATE = ("apt-get", "update", "--quiet", _WAITS)


def find(env: Mapping[str, str] = os.environ) -> FoundTool:
    """The first that will do; `Missing` with what was wrong with each place."""
    passed_over = []
    for path, place in _places(env):
        version = version_of(path)
        if version and (version >= OLDEST or place == VARIABLE):
            return FoundTool(path, f"{place}, {version}")
        fault = f"is {version}, the tests want {OLDEST}" if version else "does not run"
        passed_over.append(f"{place}: {path} {fault}")
    raise ToolNotFound(TITLE, "; ".join(passed_over) or f"none of {', '.join(NAMES)} is on the PATH")


def provide(env: Mapping[str, str] = os.environ, *, root: bool | None = None) -> FoundTool:
    """Finds it, or installs it. Says on stderr what it does. Unobtainable says what a person can do."""
    try:
        return find(env)
    except ToolNotFound as missing:
        why = missing.why
    if not (os.geteuid() == 0 if root is None else root):
        raise _unobtainable(why, "only root can install it here")
    if not shutil.which("apt-get", path=env.get("PATH")):
        raise _unobtainable(why, "there is no apt-get to install it with")
    print(f"tools: {TITLE} is not here ({why})", file=sys.stderr, flush=True)
    with Progress(f"installing Debian's package {PROGRAM}"):
        said = _install(env)
    try:
        return FoundTool(find(env).path, f"Debian's package {PROGRAM}, installed now")
    except ToolNotFound as missing:
        raise _unobtainable(missing.why, said) from missing


def version_of(path: Path) -> int | None:
    """The major version, or None if the program does not run or says something else."""
    try:
        ran = subprocess.run(  # noqa: S603 - the browser that is being looked at
            [str(path), "--version"], capture_output=True, text=True, timeout=_ASKING_TAKES_AT_MOST, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\b(\d+)(\.\d+){3}\b", ran.stdout)
    return int(match[1]) if ran.returncode == 0 and match else None


def _places(env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if chosen := env.get(VARIABLE):
        yield Path(chosen), VARIABLE
    for name in NAMES:
        if on_path := shutil.which(name, path=env.get("PATH")):
            yield Path(on_path), "the PATH"


def _install(env: Mapping[str, str]) -> str:
    """What apt-get said at last. By the lists of packages that lie here, or else by fresh ones."""
    code, said = _run(_INSTALL, env)
    if code != 0:
        _run(_UPDATE, env)
        _, said = _run(_INSTALL, env)
    return said


def _run(command: tuple[str, ...], env: Mapping[str, str]) -> tuple[int, str]:
    quiet = {**env, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        ran = subprocess.run(  # noqa: S603 - apt-get
            command, env=quiet, capture_output=True, text=True, timeout=_INSTALLING_TAKES_AT_MOST, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, f"{' '.join(command[:2])} does not end"
    return ran.returncode, " ".join((ran.stderr or ran.stdout).split())[-500:]


def _unobtainable(why: str, reason: str) -> Unobtainable:
    return Unobtainable(
        f"not here ({why}), and {reason}. The tests of the status page need it: on Debian and Ubuntu "
        f"`sudo apt-get install {PROGRAM}`; elsewhere put it on the PATH, or its path into {VARIABLE}"
    )
